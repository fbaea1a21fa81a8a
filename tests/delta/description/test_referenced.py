"""Columns that conditions name."""

from __future__ import annotations

import pytest

from alluvium.delta.description.referenced import columns_named
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct

SCHEMA = Struct(tuple(parse_fields("b int, A int, r struct<x: int, y: int>")))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("a > 1", ("A",)), ("b > 1 and a > b", ("A", "b")), ("r.x > 1 or r.y is null", ("r",)), ("1 = 1", ()), ("a >", ()), ("z > 1", ()),
    ],
)  # fmt: skip
def test_columns_at_the_top_in_order(sql: str, names: tuple[str, ...]) -> None:
    assert columns_named(sql, SCHEMA) == names
