"""The rows of a Parquet file for which a predicate is true: its columns first, the others where it is.

Statistics of row groups and pages say where it may be true. The columns that it reads are decoded there; all others
only in the pages of rows that are left, unless that is no less than all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from alluvium.codecs.footers.page_index import Integers
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import FileConstant, Physical
from alluvium.portable.files.data_file import DataFile
from alluvium.portable.files.file_names import damaged
from alluvium.portable.files.file_rows import FileRows, KeptPlaces, Places, RowMaker, positions
from alluvium.portable.files.row_bounds import FileColumn, Lessons, RowBounds
from alluvium.portable.request import Request, matching, padded, projected

#: Where more than this part of the rows is left, columns are decoded together: Arrow does so side by side.
_DENSE = 0.25
#: Places in a row group, as they were read.
_Read: TypeAlias = "range | Integers"
#: Pages are looked at where at most one row in so many is left; with more of them, all pages are hit.
_FEW = 16


@dataclass(frozen=True, slots=True)
class _Late:
    """One file.

    Attributes:
        data: Open.
        request: What is asked.
        where: The predicate of it.
        first: Makes the columns that the predicate reads, of the file's in `first_names`.
        second: Makes the others, of those in `second_names`.
    """

    data: DataFile
    request: Request
    where: Expression
    first: RowMaker
    first_names: dict[str, str]
    second: RowMaker
    second_names: dict[str, str]


def late_batches(
    rows: FileRows, data: DataFile, request: Request, where: Expression, uri: str, lessons: Lessons
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that a request asks for.

    Args:
        rows: The file, as the plan has it.
        data: The file.
        request: What is asked.
        where: The predicate of it.
        uri: The file's address.
        lessons: Of all the files.

    Raises:
        CorruptTable: The file is damaged, or has values that its column cannot hold.
    """
    read_first = {path[0] for path in column_paths(where)}
    first = RowMaker(rows, read_first, uri, request.time_zone)
    second = RowMaker(rows, set(request.names) - read_first, uri, request.time_zone)
    late = _Late(data, request, where, first, first.own_names(data), second, second.own_names(data))
    bounds = _bounds(late, lessons)
    start = 0
    for row_group in range(data.reader.metadata.num_row_groups):
        candidates = bounds.candidates(row_group)
        num_rows = data.reader.metadata.row_group(row_group).num_rows
        counted = _Counted()
        if candidates is None and lessons.share > _DENSE:
            yield from _whole_batches(late, row_group, start, counted)
        elif candidates is None or len(candidates):
            yield from _row_group(late, row_group, start, candidates, counted)
        if num_rows:
            lessons.share = counted.rows / num_rows
        start += num_rows


def _bounds(late: _Late, lessons: Lessons) -> RowBounds:
    columns, constants = {}, {}
    for c in late.first.outputs:
        if isinstance(c.value, FileConstant) and c.value.type == c.type and c.value.name in late.first.rows.constants:
            constants[c.name] = late.first.rows.constants[c.value.name]
        elif isinstance(c.value, Physical) and len(c.value.path) == 1 and c.value.type == c.type:
            own = late.first_names.get(c.value.path[0])
            # Days of another calendar have other numbers.
            if own is not None and late.data.calendar is None:
                columns[c.name] = FileColumn(own, c.type)
    metadata, pages = late.data.reader.metadata, late.data.pages
    return RowBounds(metadata, pages, late.where, columns, constants, late.request.time_zone, lessons)


@dataclass
class _Counted:
    """How many rows were left."""

    rows: int = 0


def _whole_batches(late: _Late, row_group: int, start: int, counted: _Counted) -> Iterator[pa.RecordBatch]:
    """The rows of a row group of which most are left: all columns are decoded at once."""
    names, row = {**late.first_names, **late.second_names}, start
    shown = [c.name for c in late.first.outputs if c.name in late.request.names]
    for size, arrays in late.data.row_group_batches(row_group, names, late.request.batch_size):
        within = range(row, row + size)
        row += size
        table = late.first.made(within, arrays)
        table = None if table is None else padded(table, late.request)
        keep = matching(size, table, late.first.left(within), late.request, late.where)
        count = keep.true_count
        counted.rows += count
        if not count:
            continue
        places: Places = within if count == size else KeptPlaces(within, keep, count)
        found = {} if table is None else {name: table.column(name) for name in shown}
        second = {name: arrays[name] for name in late.second_names}
        if count < size:
            found, second = ({name: v.filter(keep) for name, v in one.items()} for one in (found, second))
        yield _joined(late, places, second, found)


def _row_group(
    late: _Late, row_group: int, start: int, candidates: Integers | None, counted: _Counted
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group that begins at a position of the file."""
    request = late.request
    shown = [c.name for c in late.first.outputs if c.name in request.names]
    found, masks = _Found([]), []
    for places, arrays in _first_batches(late, row_group, candidates):
        absolute = _moved(places, start)
        table = late.first.made(absolute, arrays)
        table = None if table is None else padded(table, request)
        keep = matching(len(places), table, late.first.left(absolute), request, late.where)
        count = keep.true_count
        masks.append((places, keep, count))
        counted.rows += count
        if not count:
            continue
        left = table
        if table is not None:
            left = table.select(shown) if count == len(places) else table.select(shown).filter(keep)
        if late.second.needed:
            found.batches.append(left)
        else:
            yield from _sliced(projected(left, count, request), request)
    if late.second.needed and any(count for _, _, count in masks):
        yield from _second_batches(late, row_group, start, masks, found)


@dataclass
class _Found:
    """The columns of the predicate where it is true, in order; taken off from the front."""

    batches: list[pa.RecordBatch | None]
    _done: int = 0

    def take(self, count: int) -> dict[str, pa.Array]:
        """The next rows."""
        pieces: list[pa.RecordBatch] = []
        while count and self.batches:
            batch = self.batches[0]
            if batch is None or not batch.num_columns:
                return {}
            piece = batch.slice(self._done, count)
            pieces.append(piece)
            count -= piece.num_rows
            self._done += piece.num_rows
            if self._done == batch.num_rows:
                self.batches.pop(0)
                self._done = 0
        columns = zip(*(piece.columns for piece in pieces), strict=True)
        names = pieces[0].schema.names
        return {
            name: one[0] if len(one) == 1 else pa.concat_arrays(one) for name, one in zip(names, columns, strict=True)
        }


def _first_batches(
    late: _Late, row_group: int, candidates: Integers | None
) -> Iterator[tuple[_Read, dict[str, pa.Array]]]:
    """What the predicate reads, where it may be true: positions counted from the row group's first row."""
    if candidates is not None:
        arrays = late.data.rows(row_group, late.first_names, candidates) if late.first_names else {}
        if arrays is not None:
            yield candidates, arrays
            return
    row = 0
    for num_rows, arrays in late.data.row_group_batches(row_group, late.first_names, late.request.batch_size):
        yield range(row, row + num_rows), arrays
        row += num_rows


def _second_batches(
    late: _Late,
    row_group: int,
    start: int,
    masks: Sequence[tuple[_Read, pa.BooleanArray, int]],
    found: _Found,
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group that are left, of which the columns of the predicate are there."""
    num_rows = late.data.reader.metadata.row_group(row_group).num_rows
    count = sum(count for _, _, count in masks)
    if not late.second_names or count * _FEW <= num_rows:
        hits = np.concatenate([_hits(places, keep) for places, keep, count in masks if count])
        arrays = late.data.rows(row_group, late.second_names, hits) if late.second_names else {}
        if arrays is not None:
            yield from _sliced(_joined(late, hits + start, arrays, found.take(count)), late.request)
            return
    kept = _Kept(masks)
    row = 0
    for size, arrays in late.data.row_group_batches(row_group, late.second_names, late.request.batch_size):
        keep = kept.of(row, size)
        if len(keep) != size:
            raise damaged(late.data.path, ValueError("its columns are not equally long"))
        within = range(start + row, start + row + size)
        row += size
        count = keep.true_count
        if count == 0:
            continue
        places: Places = within
        if count < size:
            places = KeptPlaces(within, keep, count)
            arrays = {name: values.filter(keep) for name, values in arrays.items()}
        yield _joined(late, places, arrays, found.take(count))


def _joined(late: _Late, places: Places, arrays: dict[str, pa.Array], first: dict[str, pa.Array]) -> pa.RecordBatch:
    made = late.second.made(places, arrays)
    second = {} if made is None else dict(zip(made.schema.names, padded(made, late.request).columns, strict=True))
    columns = {**first, **second}
    table = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)) if columns else None
    return projected(table, len(places), late.request)


def _moved(places: _Read, start: int) -> _Read:
    return range(places.start + start, places.stop + start) if isinstance(places, range) else places + start


def _hits(places: _Read, keep: pa.BooleanArray) -> Integers:
    """The places that a mask keeps."""
    if isinstance(places, range):
        return positions(KeptPlaces(places, keep, keep.true_count))
    return places[positions(KeptPlaces(range(len(places)), keep, keep.true_count))]


class _Kept:
    """Masks of parts of a row group as masks of other parts of it."""

    def __init__(self, masks: Sequence[tuple[_Read, pa.BooleanArray, int]]) -> None:
        self._whole: pa.BooleanArray | None = None
        self._hits: Integers | None = None
        if all(isinstance(places, range) for places, _, _ in masks):
            # All rows were asked, batch by batch.
            self._whole = pa.concat_arrays([keep for _, keep, _ in masks])
        else:
            self._hits = np.concatenate([_hits(places, keep) for places, keep, _ in masks])

    def of(self, start: int, size: int) -> pa.BooleanArray:
        """Which of some rows are left; fewer at the end of the row group."""
        if self._whole is not None:
            return self._whole.slice(start, size)
        assert self._hits is not None
        low, high = np.searchsorted(self._hits, [start, start + size])
        flags = np.zeros(size, np.bool_)
        flags[self._hits[low:high] - start] = True
        bits = np.packbits(flags, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), size, [None, pa.py_buffer(bits)])


def _sliced(batch: pa.RecordBatch, request: Request) -> Iterator[pa.RecordBatch]:
    for at in range(0, batch.num_rows, request.batch_size):
        yield batch.slice(at, request.batch_size)
