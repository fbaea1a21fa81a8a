"""Compaction of append tables without buckets: which small files become larger ones.

Specification: `org.apache.paimon.append.AppendCompactCoordinator`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.expr.skipping.whole import decide_whole
from alluvium.expr.tree import Expression
from alluvium.paimon.features.deletion_vectors import vector_counts
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms import options as o
from alluvium.paimon.view.stats import EntryStatistics

#: "compactionFileSize: (fileSize / 10) * 7"
_SMALL_PART = 0.7
#: A task is full with so many target sizes.
_FULL = 2


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the options say.

    Attributes:
        target: Size of a file, bytes.
        open_cost: What a file counts beside its size, bytes.
        least: So many small files are worth a compaction.
        deleted: So much of a file may be deleted, as a part of 1.
    """

    target: int
    open_cost: int
    least: int
    deleted: float


def ensure_append_compactable(snapshot: Snapshot) -> None:
    """Refuses append tables whose compaction has more to keep than rows.

    Raises:
        UnsupportedFeature: `"unsupported-compaction"`.
    """
    options, asked = snapshot.schema.options, None
    if o.BUCKET.get(options) > 0:
        asked = f"without a primary key and {o.BUCKET.key} = {options[o.BUCKET.key]}"
    elif o.DATA_EVOLUTION.get(options) and o.DELETION_VECTORS.get(options):
        asked = f"with {o.DATA_EVOLUTION.key} and {o.DELETION_VECTORS.key}"
    if asked is not None:
        raise UnsupportedFeature(
            f"tables {asked} are not compacted yet",
            code="unsupported-compaction",
            features=(asked,),
            hint="compact the table with Paimon's own engine",
        )


def choose_small_files(snapshot: Snapshot, where: Expression | None = None) -> pa.Table:
    """The files (`SCANNED_ENTRIES`) that are written anew: in each partition the small ones, where they are enough, and
    those of which much is deleted.

    Args:
        snapshot: The newest state.
        where: Of partitions: only those for which it is true.

    Raises:
        UnsupportedFeature: The condition is not about partition keys alone (`"replace-where-data"`).
    """
    entries = partitions_where(snapshot, snapshot.entries, where)
    if not entries.num_rows:
        return entries
    options = snapshot.schema.options
    rules = _Rules(
        o.TARGET_FILE_SIZE.get(options),
        o.SPLIT_OPEN_COST.get(options),
        o.COMPACTION_MIN_FILES.get(options),
        o.COMPACTION_DELETE_RATIO.get(options),
    )
    deleted = pc.fill_null(vector_counts(snapshot, entries["file_name"].combine_chunks()), 0)
    ratio = np.asarray(deleted) / np.maximum(entries["row_count"].to_numpy(), 1)
    sizes = entries["file_size"].to_numpy()
    wanted = np.flatnonzero((sizes < rules.target * _SMALL_PART) | (ratio > rules.deleted))
    partitions = entries["partition"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    order = wanted[np.lexsort((sizes[wanted], partitions[wanted]))]
    bounds = np.flatnonzero(np.diff(partitions[order], prepend=-1))
    chosen = [part for rows in np.split(order, bounds)[1:] for part in _packed(rows, sizes, ratio, rules)]
    rows = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
    return entries.take(pa.array(rows, pa.int64()))


def partitions_where(snapshot: Snapshot, entries: pa.Table, where: Expression | None) -> pa.Table:
    """The entries of partitions for which a condition is true.

    Raises:
        UnsupportedFeature: The condition is not about partition keys alone (`"replace-where-data"`).
    """
    if where is None or not entries.num_rows:
        return entries
    values = EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))
    found = decide_whole(where, values, snapshot.time_zone)
    if not found.is_decided:
        raise UnsupportedFeature(
            "which partitions are meant cannot be told by partition keys alone",
            code="replace-where-data",
            hint=f"partition keys: {', '.join(snapshot.schema.partition_keys) or 'none'}",
        )
    return entries.filter(found.every)


def _packed(rows: np.ndarray, sizes: np.ndarray, ratio: np.ndarray, rules: _Rules) -> Iterator[np.ndarray]:
    """Of the files of a partition, smallest first, those that make full tasks, and the rest where it is enough."""
    weights = sizes[rows] + rules.open_cost
    start, total = 0, 0
    for place, weight in enumerate(weights.tolist()):
        total += weight
        if place > start and total >= rules.target * _FULL:
            yield rows[start : place + 1]
            start, total = place + 1, 0
    rest = rows[start:]
    # "deletion ratio": such a file is written anew alone, too.
    yield rest if len(rest) >= rules.least else rest[ratio[rest] > rules.deleted]
