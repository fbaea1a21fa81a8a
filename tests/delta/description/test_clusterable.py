"""By which columns a table can be clustered: each type, each place, how many."""

from __future__ import annotations

import pytest

from alluvium.delta.description.create import ensure_clusterable
from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    Decimal,
    Field,
    Struct,
)

SCHEMA = Struct((
    *parse_fields("a int, s struct<x: int, l: array<int>>, l array<int>, m map<string, int>, n array<struct<x: int>>"),
    *(Field(f"c{n}", LONG) for n in range(9)), Field("bo", BOOLEAN), Field("bi", BINARY), Field("v", VARIANT), Field("st", STRING), Field("da", DATE),
    Field("do", DOUBLE), Field("ti", TIMESTAMP), Field("de", Decimal(5, 2)),
))  # fmt: skip


@pytest.mark.parametrize(
    ("paths", "fits"),
    [
        ([("a",)], True), ([("s", "x")], True), ([("a",), ("s", "x")], True), ([], True), ([("s",)], False), ([("l",)], False), ([("m",)], False), ([("s", "l")], False),
        ([("l", "element")], False), ([("m", "key")], False), ([("n", "element", "x")], False), ([("zz",)], False), ([("a", "x")], False), ([("a",), ("a",)], False),
        ([(f"c{n}",) for n in range(4)], True), ([(f"c{n}",) for n in range(5)], False), ([("v",)], False), *(([(name,)], True) for name in ("st", "da", "do", "ti", "de")),
    ],
    ids=str,
)  # fmt: skip
def test_columns(paths: list[tuple[str, ...]], fits: bool) -> None:
    if fits:
        assert ensure_clusterable(SCHEMA, paths) == tuple(paths)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_clusterable(SCHEMA, paths)
    assert caught.value.code == "invalid-clustering-column"
    assert caught.value.column == (None if len(paths) > 2 else ".".join(paths[-1]))


@pytest.mark.parametrize("name", ["bo", "bi"])
def test_values_without_an_order(name: str) -> None:
    with pytest.raises(InvalidRequest):
        ensure_clusterable(SCHEMA, [(name,)])
