"""Random BinaryRows: bytes beside a plain writer of one row at a time, there and back, and damaged."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.binary_rows.binary_row import decode_rows, null_bytes
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

D = decimal.Decimal
EPOCH = dt.datetime(1970, 1, 1)
#: Types with their precision, and values: numbers as they are stored.
KINDS: list[tuple[DataType, int, list[Any]]] = [
    (t.BOOLEAN, 0, [True, False]),
    (t.BYTE, 0, [-128, 127]),
    (t.SHORT, 0, [-(2**15), 5]),
    (t.INTEGER, 0, [-(2**31), 2**31 - 1]),
    (t.LONG, 0, [-(2**63), 2**63 - 1]),
    (t.FLOAT, 0, [-1.5, 0.0]),
    (t.DOUBLE, 0, [1e300, -0.1]),
    (t.DATE, 0, [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    (Decimal(18, 2), 0, [D("-9999999999999999.99"), D("0.01")]),
    (Decimal(19, 0), 0, [D(-1), D(0), D(127), D(128), D(-128), D(-129), D(10**19 - 1)]),
    (Decimal(38, 10), 0, [D("-1E-10"), D("9999999999999999999999999999.9999999999")]),
    (t.TIMESTAMP_NTZ, 3, [EPOCH, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)]),
    (t.TIMESTAMP_NTZ, 6, [EPOCH, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
    (t.STRING, 0, ["", "seven77", "eight888", "é" * 3 + "a", "é" * 4, "long enough to lie apart"]),
    (t.BINARY, 0, [b"", b"1234567", b"12345678", bytes(9)]),
]  # fmt: skip


def slot_of(kind: DataType, precision: int, value: Any, variable: bytearray, begin: int) -> bytes:
    """The eight bytes of a value; what does not fit in them goes behind the slots, by whole words."""

    def apart(data: bytes, second: int) -> bytes:
        offset = begin + len(variable)
        variable.extend(data + bytes(-len(data) % 8))
        return struct.pack("<II", second, offset)

    if kind in (t.STRING, t.BINARY):
        data = value.encode() if isinstance(value, str) else value
        return data + bytes(7 - len(data)) + bytes([0x80 | len(data)]) if len(data) <= 7 else apart(data, len(data))
    if isinstance(kind, Decimal):
        number = int(value.scaleb(kind.scale, decimal.Context(prec=60)))
        if kind.precision <= 18:
            return struct.pack("<q", number)
        data = number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
        offset = begin + len(variable)
        variable.extend(data + bytes(16 - len(data)))
        return struct.pack("<II", len(data), offset)
    if kind == t.TIMESTAMP_NTZ:
        micros = (value - EPOCH) // dt.timedelta(microseconds=1)
        if precision <= 3:
            return struct.pack("<q", micros // 1000)
        return apart(struct.pack("<q", micros // 1000), micros % 1000 * 1000)
    if kind == t.DATE:
        return struct.pack("<q", (value - EPOCH.date()).days & 0xFFFFFFFF)
    letter = {t.BOOLEAN: "?", t.BYTE: "b", t.SHORT: "h", t.INTEGER: "i", t.LONG: "q", t.FLOAT: "f", t.DOUBLE: "d"}[kind]  # type: ignore[index]
    return struct.pack(f"<{letter}", value).ljust(8, b"\0")


def written(types: list[tuple[DataType, int]], row: list[Any]) -> bytes:
    nulls = bytearray((len(types) + 63 + 8) // 64 * 8)
    slots, variable = bytearray(), bytearray()
    begin = len(nulls) + 8 * len(types)
    for n, ((kind, precision), value) in enumerate(zip(types, row, strict=True)):
        if value is None:
            nulls[(n + 8) // 8] |= 1 << (n + 8) % 8
            if (isinstance(kind, Decimal) and kind.precision > 18) or (kind == t.TIMESTAMP_NTZ and precision > 3):
                # Room is kept for what may be set later.
                size = 16 if isinstance(kind, Decimal) else 8
                slots += struct.pack("<II", 0, begin + len(variable))
                variable.extend(bytes(size))
                continue
            slots += bytes(8)
            continue
        slots += slot_of(kind, precision, value, variable, begin)
    return struct.pack(">i", len(types)) + bytes(nulls) + bytes(slots) + bytes(variable)


def rows_of(draw: st.DrawFn, kinds: list[Any], count: int) -> list[list[Any]]:
    return [[draw(st.one_of(st.none(), st.sampled_from(values))) for _, _, values in kinds] for _ in range(count)]


@st.composite
def examples(draw: st.DrawFn) -> tuple[list[tuple[DataType, int]], list[list[Any]]]:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    return [(kind, precision) for kind, precision, _ in kinds], rows_of(draw, kinds, draw(st.integers(1, 4)))


def columns_of(types: list[tuple[DataType, int]], rows: list[list[Any]]) -> list[pa.Array]:
    return [pa.array([row[n] for row in rows], to_arrow(kind)) for n, (kind, _) in enumerate(types)]


@settings(max_examples=50, derandomize=True)
@given(examples(), st.data())
def test_there_and_back(example: Any, data: st.DataObject) -> None:
    types, rows = example
    columns = columns_of(types, rows)
    encoded = encode_rows(columns, types)
    assert null_bytes(len(types)) == 8
    gaps = data.draw(st.lists(st.integers(0, len(rows)), max_size=2))
    with_gaps = encoded.to_pylist()
    for place in sorted(gaps, reverse=True):
        with_gaps.insert(place, None)
    read = decode_rows(pa.array(with_gaps, pa.binary()), types)
    for column, found in zip(columns, read, strict=True):
        wanted = column.to_pylist()
        for place in sorted(gaps, reverse=True):
            wanted.insert(place, None)
        assert found.to_pylist() == wanted and found.type == column.type
    begin = data.draw(st.integers(0, len(rows)))
    again = decode_rows(encoded.slice(begin), types, only=(0, len(types) - 1))
    assert [column.to_pylist() for column in again] == [
        columns[n].slice(begin).to_pylist() for n in sorted({0, len(types) - 1})
    ]


@settings(max_examples=50, derandomize=True)
@given(examples())
def test_bytes_of_rows_without_nulls_apart(example: Any) -> None:
    types, rows = example
    assert encode_rows(columns_of(types, rows), types).to_pylist() == [written(types, row) for row in rows]


@settings(max_examples=10, derandomize=True)
@given(st.integers(50, 130), st.data())
def test_many_columns(count: int, data: st.DataObject) -> None:
    """Their null bits take more than one word."""
    nulls = data.draw(st.sets(st.integers(0, count - 1)))
    row = [None if n in nulls else n for n in range(count)]
    types: list[tuple[DataType, int]] = [(t.INTEGER, 0)] * count
    assert null_bytes(count) == (count + 8 + 63) // 64 * 8
    encoded = encode_rows(columns_of(types, [row, row]), types)
    assert encoded.to_pylist() == [written(types, row)] * 2
    assert [column.to_pylist() for column in decode_rows(encoded, types)] == [[one, one] for one in row]
    with pytest.raises(CorruptTable):
        decode_rows(encoded, [*types, (t.INTEGER, 0)])
    assert len(decode_rows(encoded, types[:3])) == 3


APART: list[tuple[DataType, int, Any]] = [
    (t.STRING, 0, "long enough to lie apart"), (t.BINARY, 0, bytes(9)), (Decimal(38, 0), 0, D(5)),
    (t.TIMESTAMP_NTZ, 6, dt.datetime(2024, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "precision", "value"), APART, ids=[str(one[0]) for one in APART])
@pytest.mark.parametrize("damaged", range(3))
def test_a_value_that_leads_out(kind: DataType, precision: int, value: Any, damaged: int) -> None:
    """Of whichever of the rows: by its place, or by its length."""
    types = [(kind, precision)]
    rows = encode_rows(columns_of(types, [[value]] * 3), types).to_pylist()
    assert decode_rows(pa.array(rows, pa.binary()), types)[0].to_pylist() == [value] * 3
    size, offset = struct.unpack("<II", rows[damaged][12:20])
    for slot in (struct.pack("<II", size, 1 << 20), struct.pack("<II", 1 << 20, offset)):
        broken = list(rows)
        broken[damaged] = rows[damaged][:12] + slot + rows[damaged][20:]
        if kind == t.TIMESTAMP_NTZ and slot[:4] != rows[damaged][12:16]:
            continue  # its other half are nanoseconds
        with pytest.raises(CorruptTable) as caught:
            decode_rows(pa.array(broken, pa.binary()), types)
        assert caught.value.code == "damaged-row"


def test_texts_that_are_none() -> None:
    types: list[tuple[DataType, int]] = [(t.STRING, 0)]
    row = encode_rows([pa.array(["abc"])], types)[0].as_py().replace(b"abc", b"a\xff\xfe")
    with pytest.raises(CorruptTable) as caught:
        decode_rows(pa.array([row], pa.binary()), types)
    assert caught.value.code == "damaged-row"
    assert decode_rows(pa.array([row], pa.binary()), [(t.BINARY, 0)])[0].to_pylist() == [b"a\xff\xfe"]


@settings(max_examples=50, derandomize=True)
@given(examples(), st.data())
def test_damage_is_told_or_harmless(example: Any, data: st.DataObject) -> None:
    types, rows = example
    encoded = [bytearray(row) for row in encode_rows(columns_of(types, rows), types).to_pylist()]
    row = data.draw(st.sampled_from(encoded))
    place = data.draw(st.integers(0, len(row) - 1))
    row[place] = data.draw(st.integers(0, 255))
    try:
        found = decode_rows(pa.array([bytes(one) for one in encoded], pa.binary()), types)
    except CorruptTable as error:
        assert error.code == "damaged-row"
        return
    for column in found:
        assert len(column) == len(rows)
