"""Arrays made anew of their members: the same rows, nulls and ends, with other values in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from alluvium.portable.files.nested import with_members

LONG = pa.int64()


@pytest.mark.parametrize(
    ("kind", "rows", "members", "expected"),
    [
        (pa.struct([pa.field("a", LONG, metadata={"k": "v"}), pa.field("b", LONG)]), [{"a": 1, "b": None}, None, {"a": 3, "b": 4}],
         [0, 1], [{"a": 101, "b": None}, None, {"a": 103, "b": 204}]),
        (pa.list_(pa.field("item", LONG, metadata={"k": "v"})), [[1, None], None, [], [2]], [0], [[101, None], None, [], [102]]),
        (pa.map_(LONG, LONG), [[(1, None), (2, 3)], None, [], [(4, 5)]], [0, 1], [[(101, None), (102, 203)], None, [], [(104, 205)]]),
    ],
    ids=["struct", "list", "map"],
)  # fmt: skip
def test_members_are_made_by_their_numbers(
    kind: pa.DataType, rows: list[Any], members: list[int], expected: list[Any]
) -> None:
    asked = []

    def made(number: int, values: pa.Array) -> pa.Array:
        asked.append(number)
        return pc.add(values, 100 * (number + 1))

    found = with_members(pa.array(rows, kind), made)
    found.validate(full=True)
    assert (found.to_pylist(), asked) == (expected, members)
    assert found.type.equals(kind, check_metadata=True)


def test_members_of_a_struct_are_null_where_it_is() -> None:
    """As of a file: behind a null there may be anything."""
    behind = pa.StructArray.from_arrays([pa.array([1, 2])], ["a"], mask=pa.array([True, False]))
    seen = []
    with_members(behind, lambda _, values: seen.append(values.to_pylist()) or values)
    assert seen == [[None, 2]]


@pytest.mark.parametrize("values", [pa.array([1]), pa.array(["x"]), pa.array([[1, 2]], pa.list_(LONG, 2))], ids=str)
def test_what_has_no_members_is_given_back(values: pa.Array) -> None:
    assert with_members(values, lambda number, member: member.slice(0, 0)) is values
