"""Statistics of Parquet chunks read field by field: the same as Arrow reads, and without its end of the process."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.chunk_statistics import plain_value
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn, read_footer
from alluvium.codecs.footers.parquet_pages import Footer, NoPages
from alluvium.codecs.footers.thrift_compact import (
    CompactReader,
    binary_list_field,
    i64_field,
    struct_field,
    struct_list_field,
    struct_of,
    written_field,
)
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.types import DataType

Fields: TypeAlias = "dict[int, tuple[int, bytes]]"
Change: TypeAlias = "Callable[[Fields], object]"

INTEGER, BINARY, LIST, STRUCT = 5, 8, 9, 12
COLUMN_ORDERS = 7
#: To the first chunk of the first row group.
CHUNK = (4, 1)
METADATA = (*CHUNK, 3)
STATISTICS = (*METADATA, 12)
#: `max_value` and `max`, `min_value` and `min`.
MAX, MIN = (5, 1), (6, 2)
ROWS = pa.table({
    "i": pa.array([3, None, -7], pa.int32()), "l": [2**40, -1, None], "y": pa.array([1, 2, 3], pa.int8()),
    "f": pa.array([1.5, None, -0.0], pa.float32()), "d": [0.0, -1e300, 2.5], "b": [True, None, False],
    "s": ["b", None, "é\U0001f600"], "r": [b"\xff\x00", b"", None], "n": pa.nulls(3, pa.int64()),
    "c": pa.array([Decimal("-1.50"), None, Decimal("2.25")], pa.decimal128(20, 2)),
    "a": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
    "t": pa.array([-1, None, 1], pa.timestamp("us", "UTC")), "m": pa.array([-1, None, 1], pa.timestamp("ms")),
    "v": [[1], None, []], "w": [{"x": 1, "y": [None]}, None, {"x": None, "y": []}],
})  # fmt: skip
TYPES: dict[tuple[str, ...], DataType] = {
    ("i",): t.INTEGER, ("l",): t.LONG, ("y",): t.BYTE, ("f",): t.FLOAT, ("d",): t.DOUBLE, ("b",): t.BOOLEAN,
    ("s",): t.STRING, ("r",): t.BINARY, ("n",): t.LONG, ("c",): t.Decimal(20, 2), ("a",): t.DATE,
    ("t",): t.TIMESTAMP, ("m",): t.TIMESTAMP_NTZ, ("v",): t.Array(t.LONG), ("w", "x"): t.LONG,
    ("w", "y"): t.Array(t.LONG), ("missing",): t.LONG,
}  # fmt: skip


def written(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def read(data: bytes, is_own: bool = False, **columns: DataType) -> FileFooter:
    asked = {(name,): kind for name, kind in columns.items()} or TYPES
    return read_footer(pa.BufferReader(data), [FooterColumn(*one) for one in asked.items()], "x", is_own)


def changed(raw: bytes, path: Sequence[int], change: Change) -> bytes:
    """A struct in which the one at a path of fields is another; lists on the way have one element."""
    fields = {number: (kind, written) for number, (kind, _, written) in CompactReader(raw).written_fields().items()}
    if path:
        kind, inside = fields[path[0]]
        head = 1 if kind == LIST else 0
        fields[path[0]] = kind, inside[:head] + changed(inside[head:], path[1:], change)
    else:
        change(fields)
    return struct_of([written_field(number, kind, inside) for number, (kind, inside) in fields.items()])


def with_change(data: bytes, path: Sequence[int], change: Change) -> bytes:
    """A file with another footer."""
    length = int.from_bytes(data[-8:-4], "little")
    made = changed(data[-8 - length : -8], path, change)
    return data[: -8 - length] + made + len(made).to_bytes(4, "little") + b"PAR1"


def without_orders(data: bytes) -> bytes:
    """As writers before `column_orders` wrote it."""
    return with_change(data, (), lambda fields: fields.pop(COLUMN_ORDERS))


@pytest.mark.parametrize("options", [
    {}, {"row_group_size": 1}, {"version": "1.0"}, {"data_page_version": "2.0"}, {"write_statistics": ["i", "s"]},
    {"write_statistics": False}, {"store_decimal_as_integer": True}, {"use_deprecated_int96_timestamps": True},
    {"write_page_index": True}, {"compression": "zstd"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(1, 1), ROWS.slice(0, 0)], ids=["all", "one", "none"])
def test_fields_say_what_arrow_says(rows: pa.Table, options: dict[str, object]) -> None:
    data = written(rows, **options)
    found = read(data)
    assert found == read(data, is_own=True)
    assert found.columns or options == {"write_statistics": False}


def test_numbers_have_bounds_where_no_order_is_told() -> None:
    data = without_orders(written(ROWS))
    found, told = read(data), read(written(ROWS))
    for name in "ilyfdbatm":
        assert found.columns[(name,)] == told.columns[(name,)] != ColumnStats(TYPES[(name,)], None, None, 1)
    for name in "src":
        assert found.columns[(name,)] == ColumnStats(TYPES[(name,)], None, None, 1)


@pytest.mark.parametrize("which", [MAX, MIN])
@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize(("kind", "data_type"), [
    (pa.int64(), t.LONG), (pa.int32(), t.INTEGER), (pa.float64(), t.DOUBLE), (pa.float32(), t.FLOAT),
    (pa.decimal128(20, 0), t.Decimal(20, 0)),
], ids=str)  # fmt: skip
def test_a_bound_that_is_cut_off(kind: pa.DataType, data_type: DataType, is_old: bool, which: tuple[int, int]) -> None:
    def change(fields: Fields) -> None:
        (kind, value), number = fields[which[0]], which[is_old]
        fields[number] = kind, bytes([value[0] - 1]) + value[2:]

    data = with_change(written(pa.table({"x": pa.array([77], kind)})), STATISTICS, change)
    data = without_orders(data) if is_old else data
    if is_old and isinstance(data_type, t.Decimal):
        # Older bounds of bytes are not believed, so nobody looks at them.
        assert read(data, x=data_type).columns[("x",)] == ColumnStats(data_type, None, None, 0)
        return
    with pytest.raises(CorruptTable) as caught:
        read(data, x=data_type)
    assert (caught.value.code, caught.value.path) == ("damaged-file", "x")


def test_a_chunk_of_another_type_than_its_column() -> None:
    data = written(pa.table({"s": ["b", "c"]}))
    made = with_change(data, METADATA, lambda fields: fields.update({1: (INTEGER, b"\x00")}))
    assert read(made, s=t.STRING).columns[("s",)] == ColumnStats(t.STRING, "b", "c", 0)


def test_encrypted_chunks_tell_nothing() -> None:
    """`crypto_metadata`, of a column with a key of its own."""
    key = struct_of([struct_field(2, struct_of([binary_list_field(1, [b"s"])]))])
    made = with_change(written(pa.table({"s": ["b"]})), CHUNK, lambda fields: fields.update({8: (STRUCT, key)}))
    assert read(made, s=t.STRING).columns == {}


@pytest.mark.parametrize("sizes", [
    struct_of([i64_field(1, 5)]), struct_of([written_field(2, LIST, b"\x36\x02\x02\x02")]),
    struct_of([written_field(3, LIST, b"\x36\x02\x02\x02")]),
])  # fmt: skip
def test_counts_of_bytes_and_levels_that_the_column_has_not(sizes: bytes) -> None:
    """`unencoded_byte_array_data_bytes` of a column of numbers, and more levels than it has."""
    data = written(pa.table({"x": [None, 5]}))
    made = with_change(data, METADATA, lambda fields: fields.update({16: (STRUCT, sizes)}))
    assert read(made, x=t.LONG).columns[("x",)] == ColumnStats(t.LONG, 5, 5, 1)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 9])
def test_chunks_that_lack_what_they_must_have(number: int) -> None:
    data = written(pa.table({"x": [None, 5]}))
    with pytest.raises(CorruptTable):
        read(with_change(data, METADATA, lambda fields: fields.pop(number)), x=t.LONG)


def test_chunks_without_metadata_tell_nothing() -> None:
    data = written(pa.table({"x": [None, 5]}))
    assert read(with_change(data, CHUNK, lambda fields: fields.pop(3)), x=t.LONG).columns == {}


@pytest.mark.parametrize(("writer", "high"), [
    (b"parquet-mr version 1.13.1 (build x)", 1.0), (b"parquet-mr version 1.10.0", 1.0), (b"parquet-mr version 2.0.0", 1.0),
    (b"parquet-mr version 1.9.0", None), (b"parquet-mr version 1.8.1", None), (b"parquet-mr", None),
    (b"parquet-cpp version 1.13.1", None), (b"impala version 3.0", None),
])  # fmt: skip
def test_whose_greatest_float_is_one(writer: bytes, high: float | None) -> None:
    """Others, and parquet-mr before 1.10, leave NaN out of the bounds, which is greater than any number."""
    created_by = BINARY, bytes([len(writer)]) + writer
    data = with_change(written(pa.table({"x": [0.5, 1.0]})), (), lambda fields: fields.update({6: created_by}))
    assert read(data, x=t.DOUBLE).columns[("x",)] == ColumnStats(t.DOUBLE, 0.5, high, 0)


@pytest.mark.parametrize("raw", [b"", b"\1" * 3, b"\1" * 5])
def test_values_have_their_size(raw: bytes) -> None:
    assert plain_value(raw, "BYTE_ARRAY") == raw
    with pytest.raises(ValueError, match="bytes"):
        plain_value(raw, "INT32")


def test_groups_without_members_have_no_pages() -> None:
    text = written_field(4, BINARY, b"\x01g")
    column = struct_of([written_field(1, INTEGER, b"\x04"), written_field(4, BINARY, b"\x01x")])
    root = struct_of([text, written_field(5, INTEGER, b"\x04")])
    footer = Footer(struct_of([struct_list_field(2, [root, struct_of([text]), column]), struct_list_field(4, [])]))
    assert len(footer.leaves_of("x")) == 1
    for name in ("g", "missing"):
        with pytest.raises(NoPages):
            footer.leaves_of(name)
