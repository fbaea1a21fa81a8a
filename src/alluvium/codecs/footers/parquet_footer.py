"""Statistics of a Parquet file out of its footer: rows, and the bounds and null counts of columns.

Nothing but the footer is read. Bounds are exact values; a bound that the file does not give for certain is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.codecs.footers.chunk_statistics import (
    Bound,
    ChunkStatistics,
    statistics_by_arrow,
    statistics_by_field,
)
from alluvium.codecs.footers.definition_levels import null_collections
from alluvium.codecs.footers.parquet_pages import Footer, NoPages
from alluvium.codecs.footers.thrift_compact import DAMAGE
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Primitive
from alluvium.schema.types import Decimal as DecimalType

_INTEGRAL_PHYSICAL = ("INT32", "INT64")
#: Spark sets this key where it was told to write in the hybrid calendar; from 1900 on both calendars agree.
_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
_CALENDARS_AGREE: Mapping[DataType, int] = {
    t.DATE: -25_567,
    t.TIMESTAMP: -25_567 * 86_400_000_000,
    t.TIMESTAMP_NTZ: -25_567 * 86_400_000_000,
}
_PARQUET_MR = re.compile(r"parquet-mr version ([0-9]{1,4})\.([0-9]{1,4})")
_NANOS_PER_UNIT = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}


def ensure_members(fields: Iterable[pa.Field]) -> None:
    """Looks at columns of a Parquet file that are to be read: `ValueError`, a group at some depth has no members.

    Of columns without a leaf Arrow reads nothing but the count of rows, and takes memory for as many as it is told of.
    """
    todo = list(fields)
    while todo:
        one = todo.pop()
        members = [one.type.field(number) for number in range(one.type.num_fields)]
        if not members and pa.types.is_struct(one.type):
            raise ValueError(f"the group {one.name!r} has no members")
        todo += members


@dataclass(frozen=True, slots=True)
class FooterColumn:
    """A leaf whose statistics are taken from the Parquet footers: its path in the file and its type."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What a footer tells of one column.

    Attributes:
        type: The column's logical type.
        min: No value is less; None where it is unknown, or where all values are null.
        max: No value is greater; None likewise.
        null_count: Rows whose value is null (a null struct around it counts); None where it is unknown.
    """

    type: DataType
    min: Bound | None
    max: Bound | None
    null_count: int | None


@dataclass(frozen=True, slots=True)
class RunEnds:
    """What a footer does not tell of a file whose rows are in the order of a key.

    Attributes:
        first: Key of the first row.
        last: Key of the last one.
        retracts: Rows that take others back.
    """

    first: tuple[Bound, ...]
    last: tuple[Bound, ...]
    retracts: int


@dataclass(frozen=True, slots=True)
class FileFooter:
    """What a footer tells of a file: columns it lacks, or tells nothing of, have no entry.

    `ends` is None where rows have no order, or nobody has looked.
    """

    num_rows: int
    columns: Mapping[tuple[str, ...], ColumnStats] = field(default_factory=dict)
    ends: RunEnds | None = None


def read_footer(
    file: pa.NativeFile, columns: Sequence[FooterColumn], path: str | None = None, is_own: bool = False
) -> FileFooter:
    """Reads the footer of a Parquet file, and closes the file.

    Args:
        file: A seekable file.
        columns: The leaves to take statistics of, by their names in the file.
        path: For the error.
        is_own: Whether this process has just written it; else nothing in it is believed.

    Raises:
        CorruptTable: The file is not a Parquet file.
    """
    return read_described(file, columns, path, is_own)[1]


def read_described(
    file: pa.NativeFile, columns: Sequence[FooterColumn], path: str | None = None, is_own: bool = False
) -> tuple[pq.FileMetaData, FileFooter]:
    """The same, and the footer itself; arguments and errors as for `read_footer`."""
    try:
        with file:
            metadata = pq.read_metadata(file)
            # In a file without rows there is nothing to count.
            collections = [c.path for c in columns if isinstance(c.type, (t.Array, t.Map))] if metadata.num_rows else []
            is_foreign = bool(columns) and not is_own
            raw = _raw_footer(file, metadata.serialized_size) if collections or is_foreign else b""
            nulls = null_collections(raw, collections) if collections else {}
            opened = _Opened(metadata, leaf_indices(metadata), Footer(raw) if is_foreign else None)
            return metadata, _footer_of(opened, columns, nulls)
    except (pa.ArrowException, OSError, NoPages, *DAMAGE) as error:
        raise CorruptTable(
            f"the footer of a Parquet file cannot be read: {error}",
            code="damaged-file",
            path=path,
            hint="the file was cut or overwritten; restore it, or remove it from the table",
        ) from None


@dataclass(frozen=True)
class _Opened:
    """A footer that is being read.

    Attributes:
        metadata: As Arrow reads it.
        leaves: Index of each leaf by its path.
        fields: Field by field, where nothing in it is believed.
    """

    metadata: pq.FileMetaData
    leaves: Mapping[tuple[str, ...], int]
    fields: Footer | None

    @cached_property
    def row_groups(self) -> dict[int, int]:
        """How many rows those have that have any."""
        counts = {number: self.metadata.row_group(number).num_rows for number in range(self.metadata.num_row_groups)}
        return {number: count for number, count in counts.items() if count > 0}

    @cached_property
    def trusts_float_max(self) -> bool:
        """Whether the greatest float is one: "If the min is a NaN, it should be ignored [...] NaN may be present".

        Only parquet-mr leaves the bounds out when there is a NaN, from 1.10 on (PARQUET-1246), and NaN is greater than
        any number.
        """
        version = _PARQUET_MR.match(self.metadata.created_by or "")
        return version is not None and (int(version[1]), int(version[2])) >= (1, 10)

    def chunks(self, leaf: int) -> list[ChunkStatistics | None]:
        """What is told of a leaf in each of the row groups."""
        if self.fields is None:
            return statistics_by_arrow(self.metadata, list(self.row_groups), leaf)
        return statistics_by_field(self.fields, self.metadata.schema.column(leaf), list(self.row_groups), leaf)


def _footer_of(opened: _Opened, columns: Sequence[FooterColumn], nulls: Mapping[tuple[str, ...], int]) -> FileFooter:
    found: dict[tuple[str, ...], ColumnStats] = {}
    legacy_calendar = _LEGACY_CALENDAR in (opened.metadata.metadata or {})
    for column in columns:
        stats = _column_stats(opened, column)
        if stats is not None and legacy_calendar:
            stats = _without_old_dates(stats)
        if stats is None and column.path in nulls:
            stats = ColumnStats(column.type, None, None, nulls[column.path])
        if stats is not None:
            found[column.path] = stats
    return FileFooter(opened.metadata.num_rows, found)


def _raw_footer(file: pa.NativeFile, size_bytes: int) -> bytes:
    # Behind it come its length and the magic bytes, four of each.
    file.seek(file.size() - size_bytes - 8)
    return bytes(file.read(size_bytes))


def _without_old_dates(stats: ColumnStats) -> ColumnStats:
    """Drops bounds whose day number may mean another day in the calendar that the reader uses."""
    agree = _CALENDARS_AGREE.get(stats.type) if isinstance(stats.type, Primitive) else None
    if agree is None or not isinstance(stats.min, int) or stats.min >= agree:
        return stats
    return replace(stats, min=None, max=None)


def leaf_indices(metadata: pq.FileMetaData) -> dict[tuple[str, ...], int]:
    """Index of each leaf by its path of names; Parquet itself joins names by dots, which names may contain."""
    schema = metadata.schema
    dotted = [schema.column(i).path for i in range(metadata.num_columns)]
    by_dots = {tuple(path.split(".")): i for i, path in enumerate(dotted)}
    if not any("." in path for path in dotted):
        return by_dots
    try:
        arrow = schema.to_arrow_schema()
    except pa.ArrowException:
        # A type that pyarrow does not know (an older one: variant) must not cost the statistics of all others.
        return by_dots
    paths: list[tuple[str, ...]] = []
    for f in arrow:
        _append_leaves(f, (), paths)
    return {path: i for i, path in enumerate(paths)} if len(paths) == len(dotted) else by_dots


def _append_leaves(f: pa.Field, prefix: tuple[str, ...], paths: list[tuple[str, ...]]) -> None:
    path = (*prefix, f.name)
    kind = f.type.storage_type if isinstance(f.type, pa.BaseExtensionType) else f.type
    if pa.types.is_nested(kind) and kind.num_fields:
        for i in range(kind.num_fields):
            _append_leaves(kind.field(i), path, paths)
    else:
        paths.append(path)


def _collection_stats(opened: _Opened, column: FooterColumn) -> ColumnStats | None:
    """An array or map is nowhere null if nothing is missing in one of its leaves; else counts of nulls do not tell."""
    within = [index for path, index in opened.leaves.items() if path[: len(column.path)] == column.path]
    for index in within:
        if all(chunk is not None and chunk.null_count == 0 for chunk in opened.chunks(index)):
            return ColumnStats(column.type, None, None, 0)
    return None


def _column_stats(opened: _Opened, column: FooterColumn) -> ColumnStats | None:
    metadata = opened.metadata
    if isinstance(column.type, (t.Array, t.Map)):
        return _collection_stats(opened, column)
    # A variant is a group of two leaves; `metadata` is null exactly where the variant is.
    path = (*column.path, "metadata") if column.type == t.VARIANT else column.path
    index = opened.leaves.get(path)
    if index is None:
        return ColumnStats(column.type, None, None, metadata.num_rows) if column.type == t.VOID else None
    described = metadata.schema.column(index)
    if described.max_repetition_level > 0:
        return None
    convert = None if column.type == t.VARIANT else bound_converter(described, column.type)
    lows: list[Bound] = []
    highs: list[Bound] = []
    nulls: int | None = 0
    for chunk, num_rows in zip(opened.chunks(index), opened.row_groups.values(), strict=True):
        if chunk is None:
            return None
        nulls = None if nulls is None or chunk.null_count is None else nulls + chunk.null_count
        if convert is not None and chunk.bounds is not None:
            low, high = map(convert, chunk.bounds)
            if low is None or high is None:
                convert = None
            else:
                lows.append(low)
                highs.append(high)
        elif chunk.null_count != num_rows:
            # Values without bounds in one row group leave the file without bounds.
            convert = None
    if convert is None or not lows:
        return ColumnStats(column.type, None, None, nulls)
    bounded_above = opened.trusts_float_max or column.type not in t.FLOATING
    return ColumnStats(column.type, min(lows), max(highs) if bounded_above else None, nulls)


def bound_converter(described: pq.ColumnSchema, data_type: DataType) -> Callable[[Bound], Bound | None] | None:
    """Raw statistics to values of the logical type; None where the file's type is not one that Spark writes for it."""
    physical, logical = described.physical_type, described.logical_type.type
    if isinstance(data_type, DecimalType):
        return _decimal_converter(described) if logical == "DECIMAL" else None
    if data_type in t.INTEGRAL or data_type == t.DATE:
        signed = logical in ("NONE", "DATE") or (logical == "INT" and not str(described.converted_type).startswith("U"))
        return _as_is if physical in _INTEGRAL_PHYSICAL and signed else None
    if data_type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _timestamp_converter(described) if physical == "INT64" and logical == "TIMESTAMP" else None
    if data_type == t.TIME:
        return _as_is if physical == "INT32" and logical in ("NONE", "TIME") else None
    if data_type in t.FLOATING:
        return _number if physical in ("FLOAT", "DOUBLE") else None
    if data_type == t.BOOLEAN:
        return _as_is if physical == "BOOLEAN" else None
    if physical != "BYTE_ARRAY" or data_type not in (t.STRING, t.BINARY):
        return None
    return _text if data_type == t.STRING else _as_is


def _as_is(raw: Bound) -> Bound | None:
    return raw


def _number(raw: Bound) -> Bound | None:
    return raw if raw == raw else None


def _text(raw: Bound) -> Bound | None:
    assert isinstance(raw, bytes)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _decimal_converter(described: pq.ColumnSchema) -> Callable[[Bound], Bound | None]:
    scale = described.scale

    def convert(raw: Bound) -> Bound | None:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        assert isinstance(unscaled, int)
        # Built from its digits: arithmetic would round to the 28 digits of Python's context.
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    return convert


def _timestamp_converter(described: pq.ColumnSchema) -> Callable[[Bound], Bound | None] | None:
    text = described.logical_type.to_json()
    nanos = next((n for unit, n in _NANOS_PER_UNIT.items() if unit in text), None)
    if nanos is None:
        return None

    def convert(raw: Bound) -> Bound | None:
        assert isinstance(raw, int)
        return raw * nanos // 1_000

    return convert
