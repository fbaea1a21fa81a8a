"""Columns of files as columns of tables: by name, by number, by place; and what may have been widened."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable
from alluvium.plan.scan import FIELD_ID
from alluvium.portable.files.conform import conform, field_id, relabel
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct


def by_id(name: str, data_type: DataType, number: int) -> Field:
    return Field(name, data_type, True, {FIELD_ID: number})


def stored(name: str, data_type: pa.DataType, number: int | None) -> pa.Field:
    return pa.field(name, data_type, metadata=None if number is None else {"PARQUET:field_id": str(number)})


@pytest.mark.parametrize(
    ("data_type", "wide", "values", "expected"),
    [
        (pa.int8(), t.SHORT, [-128, 127], [-128, 127]),
        (pa.int8(), t.INTEGER, [-128, 127], [-128, 127]),
        (pa.int16(), t.INTEGER, [-32768], [-32768]),
        (pa.int32(), t.LONG, [-(1 << 31), (1 << 31) - 1], [-(1 << 31), (1 << 31) - 1]),
        (pa.int8(), t.DOUBLE, [1], [1.0]),
        (pa.int16(), t.DOUBLE, [1], [1.0]),
        (pa.int32(), t.DOUBLE, [(1 << 31) - 1], [2147483647.0]),
        (pa.float32(), t.DOUBLE, [1.5, float("inf")], [1.5, float("inf")]),
        (pa.int8(), Decimal(10, 0), [-128], [D(-128)]),
        (pa.int16(), Decimal(12, 2), [5], [D("5.00")]),
        (pa.int32(), Decimal(38, 28), [(1 << 31) - 1], [D((1 << 31) - 1)]),
        (pa.int64(), Decimal(20, 0), [-(1 << 63)], [D(-(1 << 63))]),
        (pa.int64(), Decimal(38, 18), [(1 << 63) - 1], [D((1 << 63) - 1)]),
        (pa.decimal128(4, 2), Decimal(10, 2), [D("99.99")], [D("99.99")]),
        (pa.decimal128(4, 2), Decimal(20, 10), [D("-99.99")], [D("-99.99")]),
        (pa.date32(), t.TIMESTAMP_NTZ, [dt.date(2024, 2, 29)], [dt.datetime(2024, 2, 29)]),
    ],
)
def test_every_widening_of_the_specification(data_type: pa.DataType, wide: DataType, values: list, expected: list):
    """ "Readers must allow reading data files written before the table underwent any supported type change, and must
    convert such values to the current, wider type."
    """
    old = pa.array([*values, None], data_type)
    found = conform(old, wide, "c")
    assert found.type == to_arrow(wide)
    assert found.to_pylist() == [*expected, None]
    nested = conform(pa.array([[{"m": {"k": v}}] for v in values], _nested(data_type)), _nested_wide(wide), "c")
    assert nested.type == to_arrow(_nested_wide(wide))
    assert [row[0]["m"][0][1] for row in nested.to_pylist()] == expected


def _nested(data_type: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("m", pa.map_(pa.string(), data_type))]))


def _nested_wide(data_type: DataType) -> DataType:
    return Array(Struct((Field("m", Map(t.STRING, data_type)),)))


@pytest.mark.parametrize(
    ("value", "data_type", "narrow"),
    [
        ((1 << 53) + 1, pa.int64(), t.DOUBLE),
        (1.5, pa.float64(), t.LONG),
        ("1", pa.string(), t.LONG),
        (1 << 31, pa.int64(), t.INTEGER),
        (D("1.25"), pa.decimal128(5, 2), Decimal(5, 1)),
        (100, pa.int32(), Decimal(4, 2)),
    ],
)
def test_what_loses_something_is_refused(value: object, data_type: pa.DataType, narrow: DataType):
    with pytest.raises(CorruptTable) as caught:
        conform(pa.array([value], data_type), narrow, "c")
    assert (caught.value.code, caught.value.column) == ("incompatible-type", "c")


def test_members_of_structs_are_found_by_number_whatever_their_names():
    """ "For ids that cannot be found in a file, readers must return `null` values for those columns." """
    data_type = pa.struct([stored("a", pa.int64(), 7), stored("b", pa.int64(), 8), stored("gone", pa.int64(), None)])
    values = pa.array([{"a": 1, "b": 2, "gone": 3}, None], data_type)
    wanted = Struct((by_id("b", t.LONG, 7), by_id("a", t.LONG, 8), by_id("gone", t.LONG, 9)))
    assert conform(values, wanted, "c").to_pylist() == [{"b": 1, "a": 2, "gone": None}, None]


def test_numbers_count_even_where_names_and_types_are_equal():
    data_type = pa.struct([stored("a", pa.int64(), 1), stored("b", pa.int64(), 2)])
    swapped = Struct((by_id("a", t.LONG, 2), by_id("b", t.LONG, 1)))
    deep = pa.array([[{"a": 1, "b": 2}]], pa.list_(data_type))
    assert conform(deep, Array(swapped), "c").to_pylist() == [[{"a": 2, "b": 1}]]


def test_names_are_given_by_place_at_any_depth():
    physical = Struct((Field("p1", t.LONG), Field("p2", Array(Struct((Field("p3", t.STRING),))))))
    logical = Struct((Field("p2", t.LONG), Field("p1", Array(Struct((Field("x y", t.STRING),))))))
    values = pa.array([{"p1": 1, "p2": [{"p3": "a"}, None]}, None, {"p1": None, "p2": None}], to_arrow(physical))
    expected = [{"p2": 1, "p1": [{"x y": "a"}, None]}, None, {"p2": None, "p1": None}]
    found = relabel(values, logical, "c")
    assert found.type == to_arrow(logical)
    assert found.to_pylist() == expected
    assert relabel(values.slice(1), logical, "c").to_pylist() == expected[1:]
    by_key = pa.array([[({"p1": 1, "p2": None}, values[0].as_py())]], pa.map_(to_arrow(physical), to_arrow(physical)))
    found = relabel(by_key, Map(logical, logical), "c")
    assert found.to_pylist() == [[({"p2": 1, "p1": None}, expected[0])]]


def test_the_number_of_a_column():
    assert field_id(stored("a", pa.int64(), 12)) == 12
    assert field_id(stored("a", pa.int64(), None)) is None
    # What pyarrow before 6 gave columns without one.
    assert field_id(stored("a", pa.int64(), -1)) is None


class Marked(pa.ExtensionType):
    """A type of somebody's own, as files that Arrow wrote may have."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "alluvium.tests.marked")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Marked:
        return cls()


def test_a_type_of_somebodys_own_is_what_it_is_stored_as():
    values = pa.ExtensionArray.from_storage(Marked(), pa.array(["a", None]))
    found = conform(values, t.STRING, "c")
    assert (found.type, found.to_pylist()) == (pa.string(), ["a", None])
