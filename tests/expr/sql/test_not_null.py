"""Conditions that what may not be null at any depth is not null."""

from __future__ import annotations

import pytest

from alluvium.expr.sql.not_null import required_inside
from alluvium.schema.types import LONG, Array, DataType, Field, Map, Struct

STRICT = Struct((Field("x", LONG, False), Field("y", LONG)))
LOOSE = Struct((Field("x", LONG),))


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (LONG, None), (LOOSE, None), (Array(LONG), None), (Map(LONG, LONG), None),
        (STRICT, "(v is null or (v.`x` is not null))"),
        (Struct((Field("s", STRICT), Field("z", LONG, False))),
         "(v is null or ((v.`s` is null or (v.`s`.`x` is not null)) and v.`z` is not null))"),
        (Struct((Field("s", STRICT, False),)), "(v is null or (v.`s` is not null and (v.`s` is null or (v.`s`.`x` is not null))))"),
    ],
)  # fmt: skip
def test_structs(kind: DataType, condition: str | None) -> None:
    assert required_inside(kind, "v") == condition


def test_elements_and_values() -> None:
    """`contains_null` is no promise: the reference writes nulls where it is false."""
    assert required_inside(Array(LONG, False), "v") is required_inside(Map(LONG, LONG, False), "v") is None
    e0, e1 = "(e0 is null or (e0.`x` is not null))", "(e1 is null or (e1.`x` is not null))"
    assert required_inside(Array(STRICT), "v") == f"(v is null or forall(v, e0 -> {e0}))"
    inner = f"(e0 is null or forall(e0, e1 -> {e1}))"
    assert required_inside(Array(Array(STRICT)), "v") == f"(v is null or forall(v, e0 -> {inner}))"
    keys, values = f"forall(map_keys(v), e0 -> {e0})", f"forall(map_values(v), e0 -> {e0})"
    assert required_inside(Map(STRICT, LONG), "v") == f"(v is null or ({keys}))"
    assert required_inside(Map(STRICT, STRICT), "v") == f"(v is null or ({keys} and {values}))"
