"""Columns that conditions and properties name."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.description.referenced import (
    columns_named,
    ensure_unreferenced,
    renamed_properties,
    without_columns,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Field, Struct

SCHEMA = Struct(tuple(parse_fields("b int, A int, r struct<x: int, y: int>")))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("a > 1", ("A",)), ("b > 1 and a > b", ("A", "b")), ("r.x > 1 or r.y is null", ("r",)), ("1 = 1", ()), ("a >", ()), ("z > 1", ()),
    ],
)  # fmt: skip
def test_columns_at_the_top_in_order(sql: str, names: tuple[str, ...]) -> None:
    assert columns_named(sql, SCHEMA) == names


def table(conditions: dict[str, str] | None = None, generated: dict[str, str] | None = None) -> TableConfig:
    fields = tuple(
        Field(
            f.name,
            f.type,
            True,
            {"delta.generationExpression": generated[f.name]} if generated and f.name in generated else {},
        )
        for f in WIDE.fields
    )
    return make_config(Struct(fields), (), conditions)


WIDE = Struct(tuple(parse_fields("b int, A int, r struct<x: int, Y: struct<z: int>>, `c d` int, `e.f` int")))
CHECK = "delta.constraints.c"


@pytest.mark.parametrize(
    ("sql", "path", "is_named"),
    [
        ("a > 1", ("A",), True), ("a > 1", ("b",), False), ("A > b", ("b",), True), ("r.x > 1", ("r", "x"), True), ("r.x > 1", ("r",), True),
        ("r.x > 1", ("r", "Y"), False), ("R.y.Z = 1", ("r", "Y"), True), ("r.y.z = 1", ("r", "Y", "z"), True), ("r is null", ("r", "x"), True),
        ("r.y is null", ("r", "Y", "z"), True), ("r.x > 1", ("b",), False), ("1 = 1", ("b",), False), ("`c d` > 1", ("c d",), True),
        ("`e.f` > 1", ("e.f",), True), ("year(b) > 1", ("b",), True), ("a + b > 1", ("b",), True),
        # What is not understood names whatever stands in it.
        ("frob(B) > 1", ("b",), True), ("frob(x) > 1", ("r", "x"), True), ("frob(q) > 1", ("b",), True), ("frob(q) > 1", ("A",), False), ("frob(RX)", ("r", "Y"), True),
    ],
)  # fmt: skip
def test_columns_that_conditions_name_are_not_touched(sql: str, path: tuple[str, ...], is_named: bool) -> None:
    configs = [(table({CHECK: sql}), "the constraint 'c'")]
    if "frob" not in sql and path != ("c d",):
        configs.append((table(generated={"c d": sql}), "the generated column 'c d'"))
    for config, what in configs:
        if not is_named:
            ensure_unreferenced(config, path)
            continue
        with pytest.raises(InvalidRequest) as caught:
            ensure_unreferenced(config, path)
        assert (caught.value.code, caught.value.column) == ("column-in-use", ".".join(path))
        assert f"is named by {what}: {sql}" in caught.value.message


def test_only_conditions_count() -> None:
    ensure_unreferenced(
        table({"delta.dataSkippingStatsColumns": "b", "b": "b > 1", "x.delta.constraints.c": "b > 1"}), ("b",)
    )
    with pytest.raises(InvalidRequest, match="'two'"):
        ensure_unreferenced(table({"delta.constraints.one": "a > 1", "delta.constraints.two": "b > 1"}), ("b",))


LISTED = "delta.dataSkippingStatsColumns"


@pytest.mark.parametrize(
    ("listed", "old", "new", "after"),
    [
        ("a,b", ("A",), ("c",), "c,b"), ("a,b", ("c",), ("d",), "a,b"), ("r.x,r.y.z,x", ("R",), ("q",), "q.x,q.y.z,x"),
        ("r.x,r.y.z,x", ("r", "Y"), ("r", "w"), "r.x,r.w.z,x"), ("r,r.x", ("r", "x"), ("r", "w"), "r,r.w"), ("rr.x", ("r",), ("q",), "rr.x"),
        ("a", ("a",), ("b c",), "`b c`"), ("a", ("a",), ("b`c",), "`b``c`"), ("`a b`.x,`1`", ("a b",), ("y",), "y.x,`1`"), ("", ("a",), ("b",), ""),
        ("`a.b`,a.b", ("a", "b"), ("a", "c"), "`a.b`,a.c"),
    ],
)  # fmt: skip
def test_lists_of_columns_follow_a_rename(listed: str, old: tuple[str, ...], new: tuple[str, ...], after: str) -> None:
    given = {LISTED: listed, "own": "a,b"}
    assert renamed_properties(given, old, new) == {LISTED: after, "own": "a,b"}
    assert given[LISTED] == listed
    assert renamed_properties({"own": "a"}, old, new) == {"own": "a"}


@pytest.mark.parametrize(
    ("listed", "dropped", "after"),
    [
        ("a,b,c", [("B",)], "a,c"), ("a,b,c", [("a",), ("c",)], "b"), ("a", [("a",)], ""), ("r,r.x,r.x.y,rx", [("r", "X")], "r,rx"),
        ("r.x,s", [("r",)], "s"), ("a,b", [], "a,b"), ("`b c`,d", [("d",)], "`b c`"), ("", [("a",)], ""),
    ],
)  # fmt: skip
def test_lists_of_columns_without_those_that_go(listed: str, dropped: list[tuple[str, ...]], after: str) -> None:
    assert without_columns({LISTED: listed, "own": "a,b"}, dropped) == {LISTED: after, "own": "a,b"}
