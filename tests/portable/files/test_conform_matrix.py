"""Every type that a file may have under every type that a column may have: the same values, or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable
from alluvium.portable.files.conform import conform, relabel
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

UTC = dt.timezone.utc
NOON = dt.datetime(2024, 2, 29, 12)
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]
STAMPS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
TIMES_OF_DAY = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
SOURCES: list[pa.DataType] = [
    *INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), *TEXTS, *BYTES, *STAMPS, *TIMES_OF_DAY,
    pa.decimal128(5, 0), pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.struct([("x", pa.int32())]), pa.duration("s"),
]  # fmt: skip
ROW = Struct((Field("x", t.INTEGER),))
#: What a file may hold for a column: its own form, and whatever the specification lets it have been widened from.
ALLOWED: dict[DataType, list[pa.DataType]] = {
    **dict.fromkeys(t.INTEGRAL, INTEGERS), t.FLOAT: [pa.float32(), pa.float64()], t.DOUBLE: [*INTEGERS, pa.float32(), pa.float64()], t.BOOLEAN: [pa.bool_()],
    t.STRING: TEXTS + BYTES, t.BINARY: TEXTS + BYTES, t.DATE: [pa.date32(), pa.date64()], t.TIMESTAMP: STAMPS, t.TIMESTAMP_NTZ: [*STAMPS, pa.date32(), pa.date64()],
    t.TIMESTAMP_NANOS: STAMPS, t.TIMESTAMP_NTZ_NANOS: STAMPS, t.TIME: [*TIMES_OF_DAY, pa.int32()], Decimal(12, 2): [*INTEGERS, pa.decimal128(5, 0)],
    Decimal(12, 0): [*INTEGERS, pa.decimal128(5, 0)], Array(t.INTEGER): [pa.list_(pa.int32()), pa.large_list(pa.int32())], Map(t.STRING, t.INTEGER): [pa.map_(pa.string(), pa.int32())],
    ROW: [pa.struct([("x", pa.int32())])],
}  # fmt: skip


def sample(kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        return 7
    for test, value in (
        (pa.types.is_floating, 1.5), (pa.types.is_boolean, True), (pa.types.is_date, NOON.date()), (pa.types.is_timestamp, NOON), (pa.types.is_time, dt.time(12, 30)),
        (pa.types.is_decimal, Number(7)), (pa.types.is_duration, dt.timedelta(1)), (pa.types.is_map, [("k", 1)]), (pa.types.is_struct, {"x": 1}),
    ):  # fmt: skip
        if test(kind):
            return value
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [1, None]
    return "a" if kind in TEXTS else b"a"


def under(value: Any, target: DataType) -> Any:
    """The value as the column has it."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=UTC) if target in (t.TIMESTAMP, t.TIMESTAMP_NANOS) else value
    if target == t.TIMESTAMP_NTZ:
        return dt.datetime(value.year, value.month, value.day)
    if target == t.BINARY and isinstance(value, str):
        return value.encode()
    if target == t.STRING and isinstance(value, bytes):
        return value.decode()
    if target == t.TIME and isinstance(value, int):
        return dt.time(0, 0, 0, value * 1000)
    return value


@pytest.mark.parametrize("target", ALLOWED, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_types_of_files_under_types_of_columns(source: pa.DataType, target: DataType) -> None:
    values = pa.array([sample(source), None, sample(source)], source)
    if source not in ALLOWED[target]:
        with pytest.raises(CorruptTable) as caught:
            conform(values, target, "c")
        assert (caught.value.code, caught.value.column) == ("incompatible-type", "c")
        return
    expected = [under(sample(source), target), None, under(sample(source), target)]
    for start in (0, 1):
        found = conform(values.slice(start), target, "c")
        assert found.type == to_arrow(target) and found.to_pylist() == expected[start:]
    # Within others, too, whose parts have names of their own.
    deep = pa.StructArray.from_arrays([values], ["X"])
    assert conform(deep, Struct((Field("x", target), Field("y", t.LONG))), "c").to_pylist() == [
        {"x": v, "y": None} for v in expected
    ]


@pytest.mark.parametrize("target", ALLOWED, ids=str)
def test_nulls_and_dictionaries(target: DataType) -> None:
    assert conform(pa.nulls(2), target, "c").equals(pa.nulls(2, to_arrow(target)))
    (source, *_) = ALLOWED[target]
    if not pa.types.is_nested(source):
        values = pa.array([sample(source), None, sample(source)], source)
        assert conform(values.dictionary_encode(), target, "c").equals(conform(values, target, "c"))


def test_where_in_a_column_it_is() -> None:
    """The error names the place."""
    cases: list[tuple[pa.DataType, DataType, str]] = [
        (pa.list_(pa.bool_()), Array(t.LONG), "c.element"), (pa.map_(pa.bool_(), pa.int64()), Map(t.LONG, t.LONG), "c.key"),
        (pa.map_(pa.int64(), pa.bool_()), Map(t.LONG, t.LONG), "c.value"), (pa.struct([("x", pa.bool_())]), Struct((Field("x", t.LONG),)), "c.x"),
        (pa.list_(pa.struct([("x", pa.bool_())])), Array(Struct((Field("x", t.LONG),))), "c.element.x"),
    ]  # fmt: skip
    for source, target, place in cases:
        for change in (conform, relabel):
            with pytest.raises(CorruptTable) as caught:
                change(pa.array([None], source), target, "c")
            assert caught.value.column == place


def test_fractions_of_seconds() -> None:
    """Finer ones are cut, coarser ones are kept."""
    nanos = pa.array([1_999, -1, None], pa.int64()).cast(pa.timestamp("ns"))
    assert conform(nanos, t.TIMESTAMP_NTZ, "c").cast(pa.int64()).to_pylist() in ([1, -1, None], [1, 0, None])
    assert conform(nanos, t.TIMESTAMP_NTZ_NANOS, "c").cast(pa.int64()).to_pylist() == [1_999, -1, None]
    seconds = pa.array([5, None], pa.int64()).cast(pa.timestamp("s"))
    assert conform(seconds, t.TIMESTAMP_NTZ, "c").cast(pa.int64()).to_pylist() == [5_000_000, None]


def test_structs_of_no_fields() -> None:
    values = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    assert conform(values, Struct(()), "c").to_pylist() == [{}, None]


def test_exact_names_go_before_folded_ones() -> None:
    kind = pa.struct([("A", pa.int64()), ("a", pa.int64()), ("B", pa.int64())])
    values = pa.array([{"A": 1, "a": 2, "B": 3}], kind)
    wanted = Struct((Field("a", t.LONG), Field("A", t.LONG), Field("b", t.LONG), Field("c", t.LONG)))
    assert conform(values, wanted, "c").to_pylist() == [{"a": 2, "A": 1, "b": 3, "c": None}]
