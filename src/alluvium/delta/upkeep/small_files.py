"""Partitions that auto compaction puts together after a commit: those it wrote to that have too many small files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.upkeep.optimize import FileSizes, of_partitions
from alluvium.delta.view.partitions import partition_fields, partition_keys
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot

#: Of the reference's settings.
DEFAULT_MIN_FILES = 50
DEFAULT_AUTO_BYTES = 128 << 20
DEFAULT_MOST_PARTITIONS = 128
_MOST_REMEMBERED = 64 << 10


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """When files are put together after a commit.

    Attributes:
        min_files: So many small files of a partition are too many.
        sizes: What is small, and what comes of it.
        most_partitions: No more of them are put together after one commit.
    """

    min_files: int
    sizes: FileSizes
    most_partitions: int = DEFAULT_MOST_PARTITIONS


@dataclass(frozen=True, slots=True)
class Crowded:
    """Partitions with too many small files.

    Attributes:
        keys: They (`partition_keys`).
        files: Their live files (`FILES`).
        shown: They, as the reference's history shows a condition.
    """

    keys: tuple[bytes, ...]
    files: pa.Table
    shown: tuple[str, ...]


def crowded_partitions(snapshot: Snapshot, written: pa.ChunkedArray, wanted: AutoCompaction) -> Crowded | None:
    """The partitions to put together; None: there is nothing to do.

    As in the reference, a partition is looked at whatever the number of its files the first time that this process
    writes to it, and later when there are enough of them.

    Args:
        snapshot: The newest version.
        written: Files that a commit added, as plans name them.
        wanted: What is too many.
    """
    files, config = with_stats_text(snapshot.files), snapshot.config
    keys = partition_keys(files, config, snapshot.time_zone)
    small = pc.less_equal(files["size"], wanted.sizes.min_bytes)
    touched = pc.unique(keys.filter(pc.is_in(data_paths(files), value_set=written.combine_chunks())))
    counted = pc.value_counts(keys.filter(pc.and_(small, pc.is_in(keys, value_set=touched))))
    found = sorted(counted.to_pylist(), key=lambda one: -one["counts"])
    table = config.metadata.id
    chosen = [
        one["values"] for one in found if one["counts"] >= wanted.min_files or not _SEEN.has((table, one["values"]))
    ][: wanted.most_partitions]
    if not chosen:
        return None
    inside = of_partitions(snapshot, files, pa.array(chosen, pa.binary()))
    return Crowded(tuple(chosen), inside, _shown(snapshot, inside))


def remember(snapshot: Snapshot, crowded: Crowded) -> None:
    """These partitions have been put together by this process."""
    _SEEN.add([(snapshot.config.metadata.id, key) for key in crowded.keys])


class _Seen:
    """Partitions by table, those forgotten that were not met for longest."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, one: tuple[str, bytes]) -> bool:
        with self._lock:
            if one not in self._known:
                return False
            self._known.move_to_end(one)
            return True

    def add(self, those: list[tuple[str, bytes]]) -> None:
        with self._lock:
            self._known.update(dict.fromkeys(those))
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)


_SEEN = _Seen()


def _shown(snapshot: Snapshot, files: pa.Table) -> tuple[str, ...]:
    """A condition that names the partitions of some files; nothing for a table without partitions."""
    fields, names = partition_fields(snapshot.config), snapshot.config.physical_names
    if not fields:
        return ()
    rows = dict.fromkeys(tuple(sorted(values)) for values in files["partitionValues"].to_pylist())
    parts = []
    for values in map(dict, rows):
        same = [f"('{names[f.name]} <=> cast({_text(values.get(names[f.name]))} as {f.type}))" for f in fields]
        parts.append(_joined(same, "AND"))
    return (_joined(parts, "OR"),)


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _joined(parts: list[str], word: str) -> str:
    joined = parts[0]
    for part in parts[1:]:
        joined = f"({joined} {word} {part})"
    return joined
