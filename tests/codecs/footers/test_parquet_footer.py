"""Footers of real Parquet files: exact bounds, null counts, and silence where nothing is certain."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn, read_footer
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType


def footer(table: pa.Table, columns: Mapping[tuple[str, ...], DataType], **options: object) -> FileFooter:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    wanted = tuple(FooterColumn(path, data_type) for path, data_type in columns.items())
    return read_footer(pa.BufferReader(sink.getvalue()), wanted)


def one(values: pa.Array, data_type: DataType, **options: object) -> ColumnStats:
    return footer(pa.table({"c": values}), {("c",): data_type}, **options).columns[("c",)]


LATE = 253402214400000000
DECIMALS = [Decimal("-12345678901234567890123456789012345.678"), Decimal("9" * 35 + ".999"), None]


@pytest.mark.parametrize(
    ("values", "data_type", "low", "high"),
    [
        (pa.array([3, None, -1]), t.LONG, -1, 3),
        (pa.array([3, None, -1], pa.int8()), t.BYTE, -1, 3),
        (pa.array(["b", "é\U0001f600", None]), t.STRING, "b", "é\U0001f600"),
        (pa.array([b"\xff\x00", b"", None]), t.BINARY, b"", b"\xff\x00"),
        (pa.array([True, False, None]), t.BOOLEAN, False, True),
        (pa.array(DECIMALS, pa.decimal128(38, 3)), t.Decimal(38, 3), DECIMALS[0], DECIMALS[1]),
        (pa.array([date(1, 1, 1), date(9999, 12, 31), None]), t.DATE, -719162, 2932896),
        (pa.array([1, -1, None], pa.timestamp("us", "UTC")), t.TIMESTAMP, -1, 1),
        (pa.array([1, -1, None], pa.timestamp("ms", "UTC")), t.TIMESTAMP, -1000, 1000),
        (pa.array([datetime(9999, 12, 31), None, None], pa.timestamp("us")), t.TIMESTAMP_NTZ, LATE, LATE),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, pa.Array) else str(value.type),
)
def test_exact_bounds(values: pa.Array, data_type: DataType, low: object, high: object) -> None:
    nulls = values.null_count
    assert one(values, data_type) == ColumnStats(data_type, low, high, nulls)  # type: ignore[arg-type]
    # The same over several row groups.
    assert one(values, data_type, row_group_size=1) == ColumnStats(data_type, low, high, nulls)  # type: ignore[arg-type]


def test_decimals_stored_as_integers_and_nanoseconds() -> None:
    short = pa.array([Decimal("-1.5"), Decimal("2.25")], pa.decimal128(9, 2))
    assert one(short, t.Decimal(9, 2), store_decimal_as_integer=True).min == Decimal("-1.50")
    nanos = pa.array([-1, 1999], pa.timestamp("ns"))
    stats = one(nanos, t.TIMESTAMP_NTZ, version="2.6")
    # Read as microseconds, -1 ns is -1 us and 1999 ns are 1 us.
    assert (stats.min, stats.max) == (-1, 1)


def test_all_null_has_a_count_and_no_bounds() -> None:
    assert one(pa.nulls(3, pa.int64()), t.LONG) == ColumnStats(t.LONG, None, None, 3)
    mixed = pa.array([None, None, 5, 6])
    assert one(mixed, t.LONG, row_group_size=2) == ColumnStats(t.LONG, 5, 6, 2)


def test_floats_of_other_writers_have_no_upper_bound() -> None:
    # pyarrow leaves NaN out of its statistics, so that a maximum does not bound the NaN that may be there.
    stats = one(pa.array([1.5, float("nan")]), t.DOUBLE)
    assert (stats.min, stats.max) == (1.5, None)


def test_old_dates_of_the_hybrid_calendar_have_no_bounds() -> None:
    days = pa.array([date(1500, 1, 1), date(2024, 1, 1)])
    old = pa.table({"c": days}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    assert footer(old, {("c",): t.DATE}).columns[("c",)] == ColumnStats(t.DATE, None, None, 0)
    assert footer(old.slice(1), {("c",): t.DATE}).columns[("c",)].max == 19723


def test_int96_has_no_bounds() -> None:
    values = pa.array([datetime(2024, 1, 1, tzinfo=timezone.utc)], pa.timestamp("us", "UTC"))
    found = footer(pa.table({"c": values}), {("c",): t.TIMESTAMP}, use_deprecated_int96_timestamps=True)
    stats = found.columns.get(("c",))
    assert stats is None or (stats.min is None and stats.max is None)


def test_missing_statistics_missing_columns_and_lists_are_silent() -> None:
    table = pa.table({"a": [1], "l": [[1]]})
    columns: dict[tuple[str, ...], DataType] = {("a",): t.LONG, ("l",): Array(t.LONG), ("x",): t.LONG}
    assert footer(table, columns).columns.keys() == {("a",), ("l",)}
    # Sizes, which tell of lists, are written all the same.
    assert footer(table, columns, write_statistics=False).columns.keys() <= {("l",)}
    assert footer(table, {("v",): t.VOID}).columns[("v",)].null_count == 1


@pytest.mark.parametrize(("lists", "nulls"), [([[1], [2, 3]], 0), ([[1], None], 1), ([[1], []], 0), ([[1], [None]], 0)])
def test_lists_are_null_where_nothing_is_defined(lists: list, nulls: int | None) -> None:
    found = footer(pa.table({"l": lists}), {("l",): Array(t.LONG)}).columns.get(("l",))
    assert (None if found is None else found.null_count) == nulls


def test_a_column_of_another_type_gives_no_bounds() -> None:
    stats = one(pa.array(["1"]), t.LONG)
    assert (stats.min, stats.max, stats.null_count) == (None, None, 0)
    assert one(pa.array([2**63 + 1], pa.uint64()), t.LONG).max is None


def test_members_of_structs_even_with_dots_in_names() -> None:
    table = pa.table({"s": [{"x.y": 1, "z": 2}, None], "s.z": [10, 20], "s.x.y": [7, 8]})
    columns = {("s", "x.y"): t.LONG, ("s", "z"): t.LONG, ("s.z",): t.LONG, ("s.x.y",): t.LONG}
    found = footer(table, columns).columns
    assert {path: (s.min, s.max, s.null_count) for path, s in found.items()} == {
        ("s", "x.y"): (1, 1, 1),
        ("s", "z"): (2, 2, 1),
        ("s.z",): (10, 20, 0),
        ("s.x.y",): (7, 8, 0),
    }


def test_a_list_is_not_taken_for_a_struct() -> None:
    assert footer(pa.table({"l": [[1, 2]]}), {("l", "list", "element"): t.LONG}).columns == {}


def test_empty_file() -> None:
    assert footer(pa.table({"a": pa.array([], pa.int64())}), {("a",): t.LONG}) == FileFooter(
        0, {("a",): ColumnStats(t.LONG, None, None, 0)}
    )


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all, but long", b"PAR1" + b"\xff" * 40 + b"PAR1"])
def test_damaged_file(content: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        read_footer(pa.BufferReader(content), (), path="x.parquet")
    assert caught.value.path == "x.parquet"
