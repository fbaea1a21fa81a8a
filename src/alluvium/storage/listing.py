"""Listings as columns, for stores whose own are one by one; and what is left of one without hidden folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.storage.store import LISTED, ObjectInfo, Store

#: Rows that are put into columns together: what one has as Python objects meanwhile.
_ROWS = 20_000


@dataclass(slots=True)
class Rows:
    """Rows on their way into columns."""

    _paths: list[str] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _times: list[int] = field(default_factory=list)
    _kinds: list[bool] = field(default_factory=list)

    def add(self, path: str, size: int, modified_ms: int, is_directory: bool = False) -> None:
        """One row more."""
        self._paths.append(path)
        self._sizes.append(size)
        self._times.append(modified_ms)
        self._kinds.append(is_directory)

    @property
    def is_full(self) -> bool:
        """Whether it is time to `take` them."""
        return len(self._paths) >= _ROWS

    def take(self) -> pa.RecordBatch:
        """The rows as columns; there are none afterwards."""
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(self._paths, pa.string()),
                pa.array(self._sizes, pa.int64()),
                pa.array(self._times, pa.int64()),
                pa.array(self._kinds, pa.bool_()),
            ],
            schema=LISTED,
        )
        for column in (self._paths, self._sizes, self._times, self._kinds):
            column.clear()
        return batch


def as_columns(objects: Iterable[ObjectInfo]) -> Iterator[pa.RecordBatch]:
    """Objects as columns, those that are under way as Python objects a few at a time."""
    rows = Rows()
    for info in objects:
        rows.add(info.path, info.size, info.modified_ms)
        if rows.is_full:
            yield rows.take()
    yield rows.take()


def without_folders(batch: pa.RecordBatch, start: int, skips: Callable[[str], bool]) -> pa.RecordBatch:
    """What does not lie below a directory whose name is skipped, of a store that lists without asking.

    Args:
        batch: Schema `LISTED`.
        start: Characters of paths before the directory that was listed ends; its own name is not asked about.
        skips: As of `Store.list_columns`.
    """
    if not batch.num_rows:
        return batch
    below = pc.utf8_slice_codeunits(batch.column("path"), start) if start else batch.column("path")
    # A directory goes by its own name, too.
    below = pc.if_else(batch.column("is_directory"), pc.binary_join_element_wise(below, "", "/"), below)
    folders = pc.replace_substring_regex(below, r"[^/]*$", "").dictionary_encode()
    kept = [not any(skips(part) for part in folder.split("/") if part) for folder in folders.dictionary.to_pylist()]
    return batch.filter(pa.array(kept, pa.bool_()).take(folders.indices))


def list_folders(store: Store, directory: str) -> list[str]:
    """The names of the directories that lie in a directory itself, in order; what is in them is not listed where the
    store can do without.
    """
    found: set[str] = set()

    def note(name: str) -> bool:
        found.add(name)
        return True

    for _ in store.list_columns(directory, note):
        continue
    return sorted(found)
