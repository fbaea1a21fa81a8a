"""Which live files are written anew together: bins of small files, partitions to order, files with something to purge.

Sizes, ratios and the order of packing are those of the reference implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import has_vector, vectors_of
from alluvium.delta.log.replay import logical_file_keys
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.packing import Packed, grouped, sizes_of
from alluvium.delta.view.partitions import partition_keys
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable
from alluvium.plan.changes import EditFigures

#: Of the session's settings, where nobody says other ones: bytes, and a share of rows.
DEFAULT_FILE_BYTES = 1 << 30
DEFAULT_DELETED_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class FileSizes:
    """What a file should be like.

    Attributes:
        min_bytes: Smaller ones are written anew.
        max_bytes: What is put together into one file comes to this much at most.
        max_deleted_ratio: Files of whose rows a greater share is deleted by a vector are written anew, whatever their
            size.
    """

    min_bytes: int = DEFAULT_FILE_BYTES
    max_bytes: int = DEFAULT_FILE_BYTES
    max_deleted_ratio: float = DEFAULT_DELETED_RATIO


DEFAULT_SIZES = FileSizes()


@dataclass(frozen=True, slots=True)
class Bins:
    """Files to be written anew.

    Attributes:
        files: They (`FILES`), those of a bin side by side.
        numbers: The bin of each, from 0; all files of a bin are of one partition.
        counts: In how many parts each bin is written, one file or more each; by the bin's number.
    """

    files: pa.Table
    numbers: pa.Array
    counts: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(pc.unique(self.numbers))

    def only(self, kept: pa.Array) -> Bins:
        """Those of these numbers, which they keep."""
        chosen = pc.is_in(self.numbers, value_set=kept)
        return replace(self, files=self.files.filter(chosen), numbers=self.numbers.filter(chosen))


def compaction_bins(snapshot: Snapshot, files: pa.Table, sizes: FileSizes) -> Bins:
    """Small files of a partition, and those with many deleted rows, put together; one alone stays as it is.

    Args:
        snapshot: The version.
        files: Live files of it (`FILES`).
        sizes: What is small.
    """
    small = pc.less(files["size"], sizes.min_bytes)
    chosen = pc.or_(small, pc.greater(_deleted_ratios(snapshot, files), sizes.max_deleted_ratio))
    # The reference leaves a file alone even where most of its rows are deleted: that is what REORG is for.
    return _packed(snapshot, files.filter(chosen), sizes.max_bytes, smallest=2)


def purge_bins(snapshot: Snapshot, files: pa.Table, sizes: FileSizes) -> Bins:
    """All of these files, put together where they are small."""
    return _packed(snapshot, files, sizes.max_bytes, smallest=1)


def joined_bins(parts: Sequence[Bins]) -> Bins:
    """All of some bins, numbered on."""
    firsts = accumulate((len(one.counts) for one in parts), initial=0)
    return Bins(
        pa.concat_tables([one.files for one in parts]),
        pa.concat_arrays([pc.add(one.numbers, first) for one, first in zip(parts, firsts, strict=False)]),
        tuple(count for one in parts for count in one.counts),
    )


def order_bins(snapshot: Snapshot, files: pa.Table, sizes: FileSizes) -> Bins:
    """All files of a partition in one bin, which becomes as many files as its bytes make."""
    bytes_of = sizes_of(files["size"])
    groups = grouped(_keys(snapshot, files), bytes_of)
    counts = np.maximum(1, groups.sums(bytes_of) // sizes.max_bytes)
    return bins_of(files, groups, tuple(counts.tolist()))


def with_vectors(files: pa.Table) -> pa.Table:
    """Those of some files (`FILES`) that have a deletion vector."""
    return files.filter(has_vector(vectors_of(files)))


def of_partitions(snapshot: Snapshot, files: pa.Table, keys: pa.Array) -> pa.Table:
    """Those of some files (`FILES`) that lie in partitions of these keys (`partition_keys`)."""
    return files.filter(pc.is_in(partition_keys(files, snapshot.config, snapshot.time_zone), value_set=keys))


def still_live(newest: Snapshot, files: pa.Table) -> pa.Array:
    """Whether each of some files (`FILES`) is live in a later version, with the same rows deleted."""
    return pc.is_in(_file_keys(files), value_set=_file_keys(newest.files))


def _file_keys(files: pa.Table) -> pa.Array:
    """A file and its vector, as one text each."""
    batches = files.select(["path", "deletionVector"]).to_batches()
    return pa.chunked_array([logical_file_keys(batch) for batch in batches], pa.string()).combine_chunks()


def ensure_all_rows(snapshot: Snapshot, bins: Bins, written: pa.Array, rows: pa.Array) -> None:
    """Refuses new files that do not hold as many rows as those in whose place they are to be, as far as these tell.

    Args:
        snapshot: The version that the bins are of.
        bins: What was written anew.
        written: The bin of each new file; null where nobody knows.
        rows: How many rows it has.

    Raises:
        CorruptTable: A bin has more or fewer (`num-records-differ`).
    """
    live, numbers = live_counts(snapshot, bins.files), bins.numbers
    if written.null_count:
        # They are compared as a whole.
        numbers, written = (pa.array([0] * len(some), pa.int64()) for some in (live, rows))
    before = _row_sums(numbers, live)
    found = pc.fill_null(_sum_of(_row_sums(written, rows), before["bin"]), 0)
    differs = pc.fill_null(pc.not_equal(before["rows"], found), False)
    for one in before.append_column("found", found).filter(differs).slice(0, 1).to_pylist():
        raise CorruptTable(
            f"files that are to be written anew say that they hold {one['rows']} rows, and {one['found']} were read",
            code="num-records-differ",
            path=bins.files["path"].filter(pc.equal(numbers, one["bin"]))[0].as_py(),
            hint="one of its files is shorter than the log says, or its statistics are wrong; nothing was changed",
        )


def _row_sums(bins: pa.Array, rows: pa.Array) -> pa.Table:
    """Rows of each bin; null where a file does not say."""
    known = pc.ScalarAggregateOptions(skip_nulls=False)
    groups = pa.table({"bin": bins, "rows": rows}).group_by("bin", use_threads=False)
    return groups.aggregate([("rows", "sum", known)]).rename_columns({"rows_sum": "rows"}).select(["bin", "rows"])


def _sum_of(sums: pa.Table, bins: pa.ChunkedArray) -> pa.ChunkedArray:
    return sums["rows"].take(pc.index_in(bins, value_set=sums["bin"].combine_chunks()))


def rewrite_metrics(figures: EditFigures, sizes: pa.ChunkedArray) -> dict[str, str]:
    """What the history says of files that were written anew; `sizes` are those of the new ones."""
    ordered = sorted(sizes.to_pylist()) or [0]
    last, count = ordered[-1], len(ordered)
    found = {
        "numRemovedFiles": figures.files_removed,
        "numRemovedBytes": figures.bytes_removed,
        "p25FileSize": ordered[count // 4],
        "numDeletionVectorsRemoved": figures.masks_removed,
        "minFileSize": ordered[0],
        "p75FileSize": ordered[count * 3 // 4],
        "p50FileSize": ordered[count // 2],
        "numAddedBytes": figures.bytes_added,
        "numAddedFiles": figures.files_added,
        "maxFileSize": last,
    }
    return {name: str(value) for name, value in found.items()}


def _deleted_ratios(snapshot: Snapshot, files: pa.Table) -> pa.Array:
    """The share of each file's rows that its vector deletes; 0 where it does not say how many it has."""
    deleted = pc.fill_null(pc.struct_field(vectors_of(files), "cardinality"), 0).cast(pa.float64())
    live = live_counts(snapshot, files).cast(pa.float64())
    rows = pc.add(live, deleted)
    return pc.if_else(pc.greater(pc.fill_null(rows, 0.0), 0.0), pc.divide(deleted, rows), 0.0)


def _packed(snapshot: Snapshot, files: pa.Table, max_bytes: int, smallest: int) -> Bins:
    sizes = sizes_of(files["size"])
    bins = grouped(_keys(snapshot, files), sizes).packed(sizes, max_bytes).at_least(smallest)
    return bins_of(files, bins, (1,) * len(bins.lengths))


def _keys(snapshot: Snapshot, files: pa.Table) -> pa.Array:
    return partition_keys(files, snapshot.config, snapshot.time_zone)


def bins_of(files: pa.Table, packed: Packed, counts: tuple[int, ...]) -> Bins:
    """Bins of some files (`FILES`), each written in so many parts."""
    return Bins(files.take(pa.array(packed.order)).select(FILES.names), pa.array(packed.numbers), counts)
