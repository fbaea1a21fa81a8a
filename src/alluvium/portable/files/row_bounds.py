"""Which rows of a Parquet file may make a predicate true: by the statistics of row groups, then of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.codecs.columns import integer_column, long_column
from alluvium.codecs.footers.chunk_statistics import Bound, plain_value
from alluvium.codecs.footers.page_index import Integers, PageBounds, Pages
from alluvium.codecs.footers.parquet_footer import bound_converter, leaf_indices
from alluvium.errors import AlluviumError
from alluvium.expr.skipping.prune import prune
from alluvium.expr.tree import Expression
from alluvium.portable.files.page_rows import PageRows
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType

_MISSES = 3
#: Rows that are told one by one; a row group of more is a footer's lie, or read as a whole no slower.
_MOST_CANDIDATES = 1 << 24
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a predicate that is a column of the file, as it is.

    Attributes:
        own_name: In the file.
        type: In the table.
    """

    own_name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one column in some ranges of rows."""

    lower: pa.Array | None = None
    upper: pa.Array | None = None
    null_count: pa.Array | None = None
    exact: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of rows, to `prune` like files; implements `FileStatistics`."""

    sizes: Integers
    columns: Mapping[str, _Known]

    @property
    def num_files(self) -> int:
        return len(self.sizes)

    def exact(self, path: _Path) -> pa.Array | None:
        return self._of(path).exact

    def lower(self, path: _Path) -> pa.Array | None:
        return self._of(path).lower

    def upper(self, path: _Path) -> pa.Array | None:
        return self._of(path).upper

    def null_count(self, path: _Path) -> pa.Array | None:
        return self._of(path).null_count

    def num_rows(self) -> pa.Array | None:
        return integer_column(self.sizes)

    def _of(self, path: _Path) -> _Known:
        return self.columns.get(path[0], _NOTHING) if len(path) == 1 else _NOTHING


_NOTHING = _Known()


@dataclass
class Lessons:
    """What reading the files of a table has taught about the rest of them.

    Attributes:
        misses: How often the bounds of pages left nothing out, since they last did: where values are in no order, they
            never do.
        share: Of the rows of the last row group that was read, which part the predicate left.
    """

    misses: int = 0
    share: float = 0.0

    @property
    def spares_pages(self) -> bool:
        """Whether asking pages pays no more."""
        return self.misses >= _MISSES


@dataclass
class RowBounds:
    """The rows of an open file that a predicate leaves.

    Attributes:
        metadata: The file's footer.
        pages: Its pages.
        where: The predicate, over logical names.
        columns: The columns of it that the file has, by logical name; others tell nothing.
        constants: Those that are one value in the whole file.
        time_zone: The session's.
        lessons: Shared by the files of a table.
    """

    metadata: pq.FileMetaData
    pages: PageRows
    where: Expression
    columns: Mapping[str, FileColumn]
    constants: Mapping[str, pa.Scalar]
    time_zone: str
    lessons: Lessons
    _leaves: Mapping[_Path, int] = field(init=False)
    _kept: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self._leaves = leaf_indices(self.metadata) if self.columns else {}
        count = self.metadata.num_row_groups
        known = {name: self._of_groups(column, count) for name, column in self.columns.items()}
        sizes = np.array([self.metadata.row_group(i).num_rows for i in range(count)], np.int64)
        self._kept = self._pruned(sizes, known).to_pylist()

    def candidates(self, row_group: int) -> Integers | None:
        """The rows, counted from the row group's first, that may make the predicate true; None: all of them."""
        num_rows = self.metadata.row_group(row_group).num_rows
        if not self._kept[row_group]:
            return np.zeros(0, np.int64)
        if self.lessons.spares_pages:
            return None
        found = {
            name: bounds
            for name, column in self.columns.items()
            if self._converter(column) is not None
            and self._has_bounds(row_group, column)
            and (bounds := self.pages.bounds(row_group, column.own_name)) is not None
        }
        if not found:
            return None
        begins = np.unique(np.concatenate([pages.first_rows for pages, _ in found.values()]))
        ends = np.append(begins[1:], num_rows)
        known = {name: self._of_pages(self.columns[name], *one, begins, num_rows) for name, one in found.items()}
        keep = np.asarray(self._pruned(ends - begins, known))
        self.lessons.misses = self.lessons.misses + 1 if keep.all() else 0
        if keep.all() or (ends - begins)[keep].sum() > _MOST_CANDIDATES:
            return None
        ranges = [np.arange(*pair) for pair in zip(begins[keep], ends[keep], strict=True)]
        return np.concatenate(ranges).astype(np.int64) if ranges else np.zeros(0, np.int64)

    def _pruned(self, sizes: Integers, known: Mapping[str, _Known]) -> pa.BooleanArray:
        constants = {name: _Known(exact=pa.repeat(value, len(sizes))) for name, value in self.constants.items()}
        try:
            return prune(self.where, _Ranges(sizes, {**known, **constants}), self.time_zone)
        except (AlluviumError, pa.ArrowException):
            # What fails here fails on rows, too, where there are any.
            return pa.repeat(pa.scalar(True), len(sizes))

    def _leaf(self, column: FileColumn) -> int | None:
        index = self._leaves.get((column.own_name,))
        if index is None or self.metadata.schema.column(index).max_repetition_level > 0:
            return None
        return index

    def _converter(self, column: FileColumn) -> Callable[[Bound], Bound | None] | None:
        index = self._leaf(column)
        if index is None or not isinstance(column.type, (t.Primitive, t.Decimal)):
            return None
        described = self.metadata.schema.column(index)
        # Arrow cuts nanoseconds towards 1970, so that a bound may be passed by the value that is read.
        is_fine = described.logical_type.type == "TIMESTAMP" and "nanoseconds" in described.logical_type.to_json()
        return None if is_fine else bound_converter(described, column.type)

    def _has_bounds(self, row_group: int, column: FileColumn) -> bool:
        """Whether the footer has bounds, in an order that is known: that of pages is the same.

        A chunk of nulls alone has none, and pages of nulls need none.
        """
        index = self._leaf(column)
        if index is None:
            return False
        low, high, nulls = self.pages.statistics(row_group, index)
        return (low is not None and high is not None) or nulls == self.metadata.row_group(row_group).num_rows

    def _of_groups(self, column: FileColumn, count: int) -> _Known:
        convert, index = self._converter(column), self._leaf(column)
        if index is None:
            return _NOTHING
        found = [self.pages.statistics(row_group, index) for row_group in range(count)]
        physical = self.metadata.schema.column(index).physical_type
        lows = [None if low is None else _parse_raw(low, physical) for low, _, _ in found]
        highs = [None if high is None else _parse_raw(high, physical) for _, high, _ in found]
        return _known(column.type, convert, lows, highs, long_column([nulls for _, _, nulls in found]))

    def _of_pages(
        self, column: FileColumn, pages: Pages, bounds: PageBounds, begins: Integers, num_rows: int
    ) -> _Known:
        """The bounds of the pages, for ranges that each lie in one page of the column."""
        index = self._leaf(column)
        physical = self.metadata.schema.column(index).physical_type
        lows, highs = (
            [None if null else _parse_raw(one, physical) for one, null in zip(some, bounds.null_pages, strict=True)]
            for some in (bounds.lows, bounds.highs)
        )
        page = np.searchsorted(pages.first_rows, begins, "right") - 1
        sizes = np.append(begins[1:], num_rows) - begins
        rows = np.append(pages.first_rows[1:], num_rows) - pages.first_rows
        nulls: list[int | None] = []
        for number, size in zip(page.tolist(), sizes.tolist(), strict=True):
            count = None if bounds.null_counts is None else bounds.null_counts[number]
            if bounds.null_pages[number] or count == rows[number]:
                nulls.append(size)
            else:
                # Of the nulls of a page, nobody knows in which of its rows they are.
                nulls.append(0 if count == 0 else None)
        known = _known(column.type, self._converter(column), lows, highs, long_column(nulls))
        places = integer_column(page)
        lower, upper = (None if one is None else one.take(places) for one in (known.lower, known.upper))
        return _Known(lower, upper, known.null_count)


def _parse_raw(raw: bytes, physical: str) -> Bound | None:
    try:
        return plain_value(raw, physical)
    except ValueError:
        return None


def _known(
    data_type: DataType,
    convert: Callable[[Bound], Bound | None] | None,
    lows: Sequence[Bound | None],
    highs: Sequence[Bound | None],
    nulls: pa.Array,
) -> _Known:
    if convert is None:
        return _Known(null_count=nulls)
    try:
        lower, upper = (_typed([None if x is None else convert(x) for x in one], data_type) for one in (lows, highs))
    except (pa.ArrowException, AssertionError, OverflowError, ValueError, TypeError):
        return _Known(null_count=nulls)
    return _Known(lower, upper, nulls)


def _typed(values: Sequence[Bound | None], data_type: DataType) -> pa.Array:
    target = to_arrow(data_type)
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    if pa.types.is_date32(target) or pa.types.is_time32(target):
        return pa.array(values, pa.int32()).cast(target)
    return pa.array(values, target)
