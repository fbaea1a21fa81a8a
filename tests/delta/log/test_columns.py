"""Columns of the log's own types, and those of other writers made to be of them, value by value."""

from __future__ import annotations

import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.log.columns import (
    Nulls,
    conform,
    conform_fitting,
    deletion_vector_column,
    holding_all,
    map_column,
    settled,
)
from alluvium.delta.terms.spec import DELETION_VECTOR, STRING_MAP, DeletionVector

MAPS: list[Any] = [None, {}, {"a": "b"}, {"a": None, "é": "ü"}, {"z": "1", "a": "2"}]


def pairs(value: Any) -> Any:
    return None if value is None else list(value.items())


@pytest.mark.parametrize("seed", range(8))
def test_maps(seed: int) -> None:
    lot = random.Random(seed)
    for values in ([], [None], [{}, None], lot.choices(MAPS, k=7), lot.choices(MAPS[2:], k=3)):
        found = map_column(values)
        found.validate(full=True)
        assert found.type == STRING_MAP and found.null_count == values.count(None)
        assert found.to_pylist() == list(map(pairs, values))


def test_vectors() -> None:
    one = DeletionVector(storage_type="u", path_or_inline_dv="ab", offset=4, size_in_bytes=40, cardinality=2**40)
    other = DeletionVector(storage_type="i", path_or_inline_dv="", size_in_bytes=1, cardinality=0)
    found = deletion_vector_column([None, one, other])
    found.validate(full=True)
    assert found.type == DELETION_VECTOR and found.null_count == 1
    assert found.to_pylist() == [
        None,
        {"storageType": "u", "pathOrInlineDv": "ab", "offset": 4, "sizeInBytes": 40, "cardinality": 2**40},
        {"storageType": "i", "pathOrInlineDv": "", "offset": None, "sizeInBytes": 1, "cardinality": 0},
    ]
    assert deletion_vector_column([]).to_pylist() == []


def test_nulls_share_their_memory() -> None:
    nulls = Nulls()
    for data_type in (pa.string(), pa.int64(), STRING_MAP, DELETION_VECTOR):
        for count in (3, 0, 7, 7, 2):
            found = nulls.take(count, data_type)
            assert (found.type, found.null_count, len(found)) == (data_type, count, count)
    longest = nulls.take(9, pa.int64())
    addresses = {
        array.buffers()[1].address for array in (longest, nulls.take(9, pa.int64()), nulls.take(4, pa.int64()))
    }
    assert len(addresses) == 1


# --- columns of others ----------------------------------------------------------------------------------------------


def test_members_are_found_by_their_names() -> None:
    wanted = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("x", pa.int32())]))])
    written = pa.array(
        [{"c": {"y": 1, "x": 2}, "a": 3, "other": True}, None, {"c": None, "a": None, "other": None}],
        pa.struct([("c", pa.struct([("y", pa.int8()), ("x", pa.int64())])), ("a", pa.int16()), ("other", pa.bool_())]),
    )
    for column in (written, pa.concat_arrays([written.slice(2), written]).slice(1)):
        found = conform(column, wanted)
        found.validate(full=True)
        assert found.type == wanted and found.null_count == 1
        assert found.to_pylist() == [{"a": 3, "b": None, "c": {"x": 2}}, None, {"a": None, "b": None, "c": None}]
    assert conform(written, written.type) is written
    assert conform(written, pa.null()).to_pylist() == [None] * 3
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.array([300]), pa.int8())
    assert conform(pa.array([30]), pa.int8()).type == pa.int8()


def test_maps_of_other_writers() -> None:
    """They name the members of pairs as they like, and have larger texts."""
    others = pa.map_(pa.field("k", pa.large_string(), False), pa.field("v", pa.large_string()))
    values = [[("x", "y")], None, [], [("a", None), ("b", "c")]]
    column = pa.array(values, others)
    for found, expected in ((conform(column, STRING_MAP), values), (conform(column.slice(1), STRING_MAP), values[1:])):
        found.validate(full=True)
        assert found.type == STRING_MAP and found.to_pylist() == expected and found.null_count == 1


D = decimal.Decimal


@pytest.mark.parametrize(
    ("types", "held"),
    [
        ([pa.int64()], pa.int64()),
        ([pa.int8(), pa.int32(), pa.int16()], pa.int32()),
        ([pa.int64(), pa.string()], None),
        ([pa.float32(), pa.float64()], pa.float64()),
        ([pa.int16(), pa.float32()], pa.float32()),
        ([pa.int32(), pa.float32()], pa.float64()),
        ([pa.int16(), pa.float64()], pa.float64()),
        ([pa.int32(), pa.float64()], pa.float64()),
        ([pa.int64(), pa.float64()], None),
        ([pa.decimal128(5, 2), pa.float64()], None),
        ([pa.float32(), pa.decimal128(3, 1)], None),
        ([pa.decimal128(5, 2), pa.decimal128(9, 4)], pa.decimal128(9, 4)),
        ([pa.decimal128(38, 0), pa.decimal128(38, 38)], None),
        ([pa.null(), pa.int64()], pa.int64()),
        ([pa.date32(), pa.int32()], None),
    ],
    ids=str,
)  # fmt: skip
def test_the_type_that_holds_all(types: list[pa.DataType], held: pa.DataType | None) -> None:
    assert holding_all(types) == (held or pa.null())
    assert holding_all([types[0], *reversed(types[1:])]) == (held or pa.null())
    inside = [pa.struct([("a", t), ("s", pa.struct([("x", t)]))]) for t in types]
    expected = pa.struct([("a", held), ("s", pa.struct([("x", held)]))]) if held else None
    if held:
        assert holding_all(inside) == expected


def test_members_that_nothing_holds_are_left_out() -> None:
    one = pa.struct([("a", pa.int64()), ("b", pa.int64()), ("only", pa.string())])
    other = pa.struct([("b", pa.string()), ("a", pa.int32()), ("new", pa.bool_())])
    assert holding_all([one, other]) == pa.struct([("a", pa.int64()), ("only", pa.string()), ("new", pa.bool_())])
    assert holding_all([one, pa.int64()]) == pa.null()
    # Nothing is left: there are no statistics to tell.
    assert holding_all([pa.struct([("a", pa.int64())]), pa.struct([("a", pa.string())])]) == pa.null()


def test_values_that_do_not_fit_are_as_if_nobody_had_told_them() -> None:
    column = pa.array(
        [{"a": 300, "b": 1, "s": {"x": 1}}, None, {"a": 3, "b": None, "s": None}],
        pa.struct([("a", pa.int16()), ("b", pa.int16()), ("s", pa.struct([("x", pa.int16())]))]),
    )
    wanted = pa.struct([
        ("a", pa.decimal128(3, 1)), ("b", pa.decimal128(6, 1)), ("s", pa.struct([("x", pa.int64())])), ("n", pa.int8())
    ])  # fmt: skip
    found = conform_fitting(column, wanted)
    found.validate(full=True)
    assert found.type == wanted and found.to_pylist() == [
        {"a": None, "b": D("1.0"), "s": {"x": 1}, "n": None}, None, {"a": None, "b": None, "s": None, "n": None}
    ]  # fmt: skip
    assert conform_fitting(pa.array([300]), pa.int8()).to_pylist() == [None]
    assert conform_fitting(pa.array([30]), pa.int8()).to_pylist() == [30]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "ü"]),
        pa.array([1, None, 3]),
        pa.array([True, None]),
        pa.array([[("a", "b")], None, []], STRING_MAP),
        pa.array(["a", None, "ü"]).slice(1),
        pa.array([{"a": 1}, None]),
    ],
    ids=str,
)
def test_columns_in_buffers_of_their_own(column: pa.Array) -> None:
    found = settled(column)
    found.validate(full=True)
    assert found.equals(column) and found.null_count == column.null_count
    is_copied = not column.offset and not pa.types.is_struct(column.type)
    theirs = {buffer.address for buffer in column.buffers() if buffer is not None}
    assert is_copied == theirs.isdisjoint(buffer.address for buffer in found.buffers() if buffer is not None)
