"""What the value of a generated partition column says of the columns that it was computed from.

A file of the partition `day = 2024-01-01`, where `day` is generated as `cast(ts as date)`, holds only times of that
day: bounds of `ts`, as good as statistics, for files that may have none. Derived bounds serve every predicate that
statistics serve, and only to leave files out.

Specification: "Generated Columns": "writers [...] must enforce that any data writing to the table satisfy the condition
`(<value> <=> <generation expression>) IS TRUE`". In which time zone is not said: a timestamp's local day or hour may
be that of any zone, so bounds of timestamps are as wide as zones lie apart.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.columns.generated_columns import FEATURE as GENERATED_COLUMNS
from alluvium.delta.features.columns.generated_columns import KEY
from alluvium.delta.features.feature import is_supported_for_writers
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import AlluviumError
from alluvium.expr import tree
from alluvium.expr.skipping.monotone import is_sortable_pattern
from alluvium.expr.skipping.prune import FileStatistics
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import char_lengths
from alluvium.schema.types import DataType, Decimal, Struct

Path = tuple[str, ...]

#: Spark takes no zone farther from UTC.
_ANY_ZONE = dt.timedelta(hours=18)
#: And no clock was ever moved by more than a day (Samoa, 2011); with the zone, the farthest that a local time gets.
_MOVED = dt.timedelta(hours=26) + _ANY_ZONE
#: The longest that a unit of `trunc` and `date_trunc` can be.
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), dt.timedelta(days=366)),
    "QUARTER": dt.timedelta(days=92),
    **dict.fromkeys(("MONTH", "MM", "MON"), dt.timedelta(days=31)),
    "WEEK": dt.timedelta(days=7),
    **dict.fromkeys(("DAY", "DD"), dt.timedelta(days=1)),
    "HOUR": dt.timedelta(hours=1),
    "MINUTE": dt.timedelta(minutes=1),
    "SECOND": dt.timedelta(seconds=1),
}
_CLOCK = ("year", "month", "day", "hour")
_NUMBERS = re.compile(r"[0-9]+")
#: No text that people write sorts after this one and yet begins as it does.
_LAST = "\U0010ffff" * 64

#: Bounds of one value, both inclusive; None: nothing is known.
_Bounds = tuple[object, object] | None


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of which partition columns tell something.

    Attributes:
        path: The column.
        type: Its type.
        partitions: Partition columns that are computed from it alone and are null where it is.
        bounds: From the values of these columns (none of them null) to bounds of the column.
    """

    path: Path
    type: DataType
    partitions: tuple[str, ...]
    bounds: Callable[[tuple[object, ...]], _Bounds]


def generated_origins(config: TableConfig) -> tuple[Origin, ...]:
    """The columns that the table's generated partition columns are computed from, where we know the expression.

    None where the protocol has no generated columns: then nobody had to compute them, whatever the metadata says.
    """
    if not is_supported_for_writers(GENERATED_COLUMNS, config.protocol):
        return ()
    origins: list[Origin] = []
    parts: dict[Path, dict[str, str]] = {}
    types: dict[Path, DataType] = {}
    for name in config.partition_columns:
        found = config.schema.find(name)
        text = None if found is None else found.metadata.get(KEY)
        node = _parsed(text, config.schema) if isinstance(text, str) else None
        # A text of type char(n) may have been padded after it was computed.
        if found is None or node is None or char_lengths(found):
            continue
        column = _clock_column(node)
        if column is not None and isinstance(node, tree.Call):
            parts.setdefault(column.path, {})[node.name] = name
            types[column.path] = column.type
        else:
            origin = _origin(node, name, found.type)
            origins += [] if origin is None else [origin]
    for path, by_unit in parts.items():
        units = [unit for unit in _CLOCK if unit in by_unit]
        # A month alone says little: `month = 1` is of every year.
        if units == list(_CLOCK[: len(units)]):
            origins.append(_clock_origin(path, types[path], tuple(by_unit[unit] for unit in units)))
        elif "year" in by_unit:
            known = tuple(by_unit[unit] for unit, expected in zip(units, _CLOCK, strict=False) if unit == expected)
            origins.append(_clock_origin(path, types[path], known))
    return tuple(origins)


def _parsed(text: str, schema: Struct) -> tree.Expression | None:
    try:
        # Predicates are what the parser reads: `IS NULL` makes one of any expression.
        whole = parse_predicate(f"({text}) IS NULL", schema)
    except AlluviumError:
        return None
    return whole.child if isinstance(whole, tree.IsNull) else None


def _clock_column(node: tree.Expression) -> tree.Column | None:
    """The column of `year(c)`, `month(c)`, `day(c)`, `hour(c)`; of any other expression None."""
    if not isinstance(node, tree.Call) or node.name not in _CLOCK:
        return None
    given, column = node.args[0], _time_column(node.args[0])
    if isinstance(given, tree.Cast) and given.type == t.TIMESTAMP:
        # As an instant a time that the zone's clock left out is of another hour.
        return column if column is not None and column.type == t.TIMESTAMP else None
    return column


def _time_column(node: tree.Expression) -> tree.Column | None:
    """A date or time, whether or not the function that takes it casts it."""
    inner = node.child if isinstance(node, tree.Cast) else node
    return inner if isinstance(inner, tree.Column) and inner.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ) else None


def _origin(node: tree.Expression, partition: str, partition_type: DataType) -> Origin | None:
    """An expression over one column that is one of those that order survives."""
    if isinstance(node, tree.Column):
        comparable = node.type == partition_type and (
            node.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.STRING, *t.INTEGRAL) or isinstance(node.type, Decimal)
        )
        return Origin(node.path, node.type, (partition,), lambda v: (v[0], v[0])) if comparable else None
    if isinstance(node, tree.Cast) and node.type == t.DATE and partition_type == t.DATE:
        column = _time_column(node)
        return None if column is None else _day_origin(column, partition, dt.timedelta(days=1))
    if not isinstance(node, tree.Call):
        return None
    constants = [arg.value if isinstance(arg, tree.Literal) else None for arg in node.args]
    if node.name == "trunc" and partition_type == t.DATE:
        column, length = _time_column(node.args[0]), _UNITS.get(str(constants[1]).upper())
        return None if column is None or length is None else _day_origin(column, partition, length)
    if node.name == "date_trunc" and partition_type == t.TIMESTAMP:
        column, length = _time_column(node.args[1]), _UNITS.get(str(constants[0]).upper())
        return None if column is None or length is None else _instant_origin(column, partition, length)
    if node.name == "date_format" and partition_type == t.STRING and is_sortable_pattern(constants[1]):
        column = _time_column(node.args[0])
        return None if column is None else _pattern_origin(column, partition)
    if node.name == "substring" and partition_type == t.STRING and constants[1] in (0, 1) and len(constants) == 3:
        return _prefix_origin(node.args[0], constants[2], partition)
    return None


def _local(column_type: DataType, low: dt.datetime, end: dt.datetime) -> _Bounds:
    """Bounds of a column from local times, the second of which lies beyond all of it."""
    last = end - dt.timedelta(microseconds=1)
    if column_type == t.DATE:
        return low.date(), last.date()
    if column_type == t.TIMESTAMP_NTZ:
        return low, last
    return (low - _ANY_ZONE).replace(tzinfo=dt.timezone.utc), (last + _ANY_ZONE).replace(tzinfo=dt.timezone.utc)


def _day_origin(column: tree.Column, partition: str, length: dt.timedelta) -> Origin:
    def bounds(values: tuple[object, ...]) -> _Bounds:
        day = values[0]
        if not isinstance(day, dt.date):
            return None
        start = dt.datetime(day.year, day.month, day.day)
        return _local(column.type, start, start + length)

    return Origin(column.path, column.type, (partition,), bounds)


def _instant_origin(column: tree.Column, partition: str, length: dt.timedelta) -> Origin:
    """`date_trunc` gives an instant that is not after the value and at most a unit before.

    Where the clock is set back within the unit, that much more: an hour, a day where zones changed sides.
    """

    def bounds(values: tuple[object, ...]) -> _Bounds:
        start = values[0]
        if not isinstance(start, dt.datetime):
            return None
        local = start.replace(tzinfo=None)
        turned_back = dt.timedelta(hours=1 if length < dt.timedelta(days=1) and local.year >= 1900 else 26)
        if column.type == t.TIMESTAMP:
            last = start + length + turned_back
            return start, last
        # A date, or a time without a zone, was made an instant by the clock of some zone.
        return _local(column.type, local - _MOVED, local + length + turned_back + _MOVED)

    return Origin(column.path, column.type, (partition,), bounds)


def _clock_origin(path: Path, column_type: DataType, partitions: tuple[str, ...]) -> Origin:
    def bounds(values: tuple[object, ...]) -> _Bounds:
        numbers = [value for value in values if isinstance(value, int)]
        # A column of texts may hold anything: without its month a day is of any.
        return _span(column_type, numbers) if len(numbers) == len(values) else None

    return Origin(path, column_type, partitions, bounds)


def _pattern_origin(column: tree.Column, partition: str) -> Origin:
    def bounds(values: tuple[object, ...]) -> _Bounds:
        numbers = _numbers(str(values[0]))
        found = None if numbers is None else _span(t.TIMESTAMP_NTZ, numbers)
        if found is None or not isinstance(found[0], dt.datetime) or not isinstance(found[1], dt.datetime):
            return None
        # `date_format` takes instants: a local time that a zone's clock left out was moved on.
        moved = dt.timedelta() if column.type == t.TIMESTAMP else _MOVED
        return _local(column.type, found[0] - moved, found[1] + moved + dt.timedelta(microseconds=1))

    return Origin(column.path, column.type, (partition,), bounds)


def _numbers(text: str) -> list[int] | None:
    """The parts of a text of a sortable pattern: four digits, then two each."""
    runs = _NUMBERS.findall(text) if text[:1].isdigit() else []
    digits = "".join(runs)
    # Between the year and what follows separators may stand or not, but within a part never.
    if len(digits) < 4 or len(digits) % 2 or len(runs[0]) < 4 or any(len(run) % 2 for run in runs):
        return None
    return [int(digits[:4]), *(int(digits[i : i + 2]) for i in range(4, len(digits), 2))]


def _span(column_type: DataType, numbers: list[int]) -> _Bounds:
    """Bounds from a year, and perhaps month, day, hour, minute, second."""
    if not 1 <= numbers[0] <= 9998:
        return None
    year, month, day, hour, minute, second = [*numbers, *(1, 1, 0, 0, 0)[len(numbers) - 1 :]]
    start = dt.datetime(year, month, day, hour, minute, second)
    if len(numbers) == 1:
        end = start.replace(year=start.year + 1)
    elif len(numbers) == 2:
        end = (start + dt.timedelta(days=32)).replace(day=1)
    else:
        names = ("days", "hours", "minutes", "seconds")
        end = start + dt.timedelta(**{names[len(numbers) - 3]: 1})
    return _local(column_type, start, end)


def _prefix_origin(child: tree.Expression, length: object, partition: str) -> Origin | None:
    if not isinstance(child, tree.Column) or child.type != t.STRING or not isinstance(length, int) or length < 1:
        return None

    def bounds(values: tuple[object, ...]) -> _Bounds:
        prefix = str(values[0])
        return prefix, prefix if len(prefix) < length else prefix + _LAST

    return Origin(child.path, child.type, (partition,), bounds)


class DerivedStatistics:
    """Statistics of files, sharpened by what their partitions say; implements `expr.prune.FileStatistics`.

    Args:
        partitions: Answers for partition columns.
        statistics: Answers for other columns; None: there are no others.
        origins: What the partition columns are computed from.
    """

    def __init__(
        self, partitions: FileStatistics, statistics: FileStatistics | None, origins: Iterable[Origin]
    ) -> None:
        self._partitions = partitions
        self._statistics = statistics
        self._origins = tuple(origins)
        self._derived: dict[Path, tuple[pa.Array, pa.Array, pa.Array]] = {}

    @property
    def num_files(self) -> int:
        return self._partitions.num_files

    def exact(self, path: Path) -> pa.Array | None:
        """As of the partitions."""
        return self._partitions.exact(path)

    def lower(self, path: Path) -> pa.Array | None:
        """The greater of both bounds."""
        return self._sharper(path, 0, None if self._statistics is None else self._statistics.lower(path))

    def upper(self, path: Path) -> pa.Array | None:
        """The lesser of both bounds."""
        return self._sharper(path, 1, None if self._statistics is None else self._statistics.upper(path))

    def null_count(self, path: Path) -> pa.Array | None:
        """0 where a partition value is not null, as the expressions are null where the column is."""
        known = None if self._statistics is None else self._statistics.null_count(path)
        found = self._bounds_of(path)
        if found is None:
            return known
        zero = pa.scalar(0, pa.int64())
        return pc.if_else(found[2], zero, pa.scalar(None, pa.int64()) if known is None else known)

    def num_rows(self) -> pa.Array | None:
        """As of the statistics."""
        return None if self._statistics is None else self._statistics.num_rows()

    def _sharper(self, path: Path, side: int, known: pa.Array | None) -> pa.Array | None:
        found = self._bounds_of(path)
        if found is None:
            return known
        if known is None:
            return found[side]
        return _sharper_of(known.cast(found[side].type), found[side], side)

    def _bounds_of(self, path: Path) -> tuple[pa.Array, pa.Array, pa.Array] | None:
        """Lower bounds, upper bounds, and whether some partition value is not null."""
        if path not in self._derived:
            for origin in self._origins:
                if origin.path == path:
                    self._derived[path] = _intersected(self._derived.get(path), self._compute(origin))
        return self._derived.get(path)

    def _compute(self, origin: Origin) -> tuple[pa.Array, pa.Array, pa.Array]:
        columns = [self._partitions.exact((name,)) for name in origin.partitions]
        values = pa.table([c for c in columns if c is not None], names=list(origin.partitions))
        codes = pa.repeat(pa.scalar(0, pa.int64()), self.num_files)
        for column in values.columns:
            encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
            # Numbered anew after each column, so that the product cannot overflow.
            codes = pc.add(pc.multiply(codes, len(encoded.dictionary) + 1), encoded.indices.cast(pa.int64()))
            codes = codes.dictionary_encode().indices.cast(pa.int64())
        first = pc.index_in(pa.array(range((pc.max(codes).as_py() or 0) + 1 if len(codes) else 0)), value_set=codes)
        bounds = [_safely(origin, row) for row in _python_rows(values.take(first))]
        arrow_type = to_arrow(origin.type)
        low, high = (pa.array([b and b[side] for b in bounds], arrow_type).take(codes) for side in (0, 1))
        present = pa.repeat(pa.scalar(False), self.num_files)
        for column in values.columns:
            present = pc.or_(present, column.is_valid().combine_chunks())
        return low, high, present


def _python_rows(values: pa.Table) -> Iterator[tuple[object, ...]]:
    """One tuple a row; null stands for what Python's calendar cannot hold, of which nothing is known then."""
    for place in range(values.num_rows):
        try:
            yield tuple(column[place].as_py() for column in values.columns)
        except (ValueError, OverflowError):
            yield (None,)


def _safely(origin: Origin, values: tuple[object, ...]) -> _Bounds:
    if None in values:
        return None
    try:
        return origin.bounds(values)
    except (ValueError, OverflowError):
        # A day that no calendar has, or one at the end of time.
        return None


def _intersected(
    one: tuple[pa.Array, pa.Array, pa.Array] | None, other: tuple[pa.Array, pa.Array, pa.Array]
) -> tuple[pa.Array, pa.Array, pa.Array]:
    if one is None:
        return other
    low, high = (_sharper_of(one[side], other[side], side) for side in (0, 1))
    return low, high, pc.or_(one[2], other[2])


def _sharper_of(one: pa.Array, other: pa.Array, side: int) -> pa.Array:
    """The greater of two lower bounds (side 0), the lesser of two upper ones (side 1); unknown ones do not count."""
    # Not `max_element_wise`, which knows no instants.
    is_sharper = pc.greater(one, other) if side == 0 else pc.less(one, other)
    return pc.if_else(pc.fill_null(is_sharper, one.is_valid()), one, other)


class PartitionsOnly:
    """Files of which nothing but partition values is known; implements `expr.prune.FileStatistics`.

    Args:
        files: Where the values come from.
    """

    def __init__(self, files: FileStatistics) -> None:
        self._files = files

    @property
    def num_files(self) -> int:
        return self._files.num_files

    def exact(self, path: Path) -> pa.Array | None:
        """The partition value."""
        return self._files.exact(path)

    def lower(self, path: Path) -> pa.Array | None:
        """Not known."""

    def upper(self, path: Path) -> pa.Array | None:
        """Not known."""

    def null_count(self, path: Path) -> pa.Array | None:
        """Not known."""

    def num_rows(self) -> pa.Array | None:
        """Not known."""


def origins_named(origins: Iterable[Origin], paths: Iterable[Path]) -> tuple[Origin, ...]:
    """Those of the origins that a predicate over these columns can use."""
    wanted = frozenset(paths)
    return tuple(origin for origin in origins if origin.path in wanted)
