"""What is asked of a plan: which rows stay, and their columns in the order in which they are asked for."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression
from alluvium.portable.request import Request, kept, matching, padded, projected
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import char_lengths
from alluvium.schema.types import Array, Field, Struct

CHARS = {CHAR_VARCHAR: "char(3)"}
SCHEMA = Struct((Field("a", t.LONG), Field("b", t.STRING), Field("k", t.STRING, True, CHARS)))
TABLE = pa.RecordBatch.from_pydict({"k": ["x", None, "abc"], "a": pa.array([1, None, 3]), "b": ["p", "q", None]})


def request(*names: str, where: str | None = None, time_zone: str = "UTC") -> Request:
    arrow = schema_to_arrow(SCHEMA)
    fields = tuple((f, lengths) for f in SCHEMA.fields if (lengths := char_lengths(f)))
    return Request(
        names, {name: arrow.field(name).type for name in names}, fields, pa.schema([arrow.field(name) for name in names]),
        None if where is None else parse_predicate(where, SCHEMA), time_zone, 10,
    )  # fmt: skip


@pytest.mark.parametrize("names", [("a", "k"), ("b", "a"), ("k",), ("a", "a", "b")])
def test_columns_in_the_order_asked(names: tuple[str, ...]) -> None:
    found = projected(TABLE, 3, request(*names))
    assert found.schema.names == list(names) and found.num_rows == 3
    for place, name in enumerate(names):
        assert found.column(place).equals(TABLE.column(name))


@pytest.mark.parametrize("table", [TABLE, None])
def test_rows_without_columns_are_counted(table: pa.RecordBatch | None) -> None:
    for count in (0, 3):
        found = projected(table, count, request())
        assert (found.num_rows, found.num_columns) == (count, 0)


def test_texts_of_char_are_shown_at_their_length_where_they_are() -> None:
    found = padded(TABLE, request("a"))
    assert found.to_pydict() == {"k": ["x  ", None, "abc"], "a": [1, None, 3], "b": ["p", "q", None]}
    rest = TABLE.select(["b", "a"])
    assert padded(rest, request("a")) is rest
    # Several of them, of which one is missing.
    inner = Field("l", Array(t.STRING), True, {CHAR_VARCHAR: "array<char(2)>"})
    fields = tuple((f, lengths) for f in (inner, *SCHEMA.fields) if (lengths := char_lengths(f)))
    assert [f.name for f, _ in fields] == ["l", "k"]
    assert padded(TABLE, replace(request("a"), padded=fields))["k"].to_pylist() == ["x  ", None, "abc"]


@pytest.mark.parametrize(
    ("where", "left", "expected"),
    [
        (None, None, None),
        (None, [True, False, None], [True, False, None]),
        ("a > 0", None, [True, False, True]),
        ("a > 1", [True, True, True], [False, False, True]),
        ("a > 0", [False, True, True], [False, False, True]),
        ("a is null", [True, True, False], [False, True, False]),
    ],
)
def test_rows_stay_where_they_are_left_and_the_condition_is_true(
    where: str | None, left: list[bool] | None, expected: list[bool] | None
) -> None:
    asked, mask = request("a", where=where), None if left is None else pa.array(left)
    found = kept(3, TABLE, mask, asked)
    assert (None if found is None else found.to_pylist()) == expected
    if where is None:
        assert found is mask


@pytest.mark.parametrize(("where", "expected"), [("true", [True] * 3), ("false", [False] * 3), ("1 = 1", [True] * 3)])
@pytest.mark.parametrize("left", [None, [True, False, True]])
def test_conditions_that_read_no_column(where: str, expected: list[bool], left: list[bool] | None) -> None:
    condition: Expression = parse_predicate(where, SCHEMA)
    found = matching(3, None, None if left is None else pa.array(left), request(), condition)
    assert found.to_pylist() == [one and (left is None or left[n]) for n, one in enumerate(expected)]


@pytest.mark.parametrize(("zone", "expected"), [("UTC", [False, False]), ("Asia/Tokyo", [False, True])])
def test_conditions_are_in_the_session_s_zone(zone: str, expected: list[bool]) -> None:
    schema = Struct((Field("ts", t.TIMESTAMP),))
    hours = pa.array([12 * 3_600_000_000, 20 * 3_600_000_000], pa.int64())
    rows = pa.RecordBatch.from_pydict({"ts": hours.cast(pa.timestamp("us", "UTC"))})
    found = matching(2, rows, None, request(time_zone=zone), parse_predicate("day(ts) = 2", schema))
    assert found.to_pylist() == expected
