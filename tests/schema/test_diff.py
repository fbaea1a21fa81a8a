"""Two schemas side by side: what differs, and nothing else."""

from __future__ import annotations

import pytest

from alluvium.schema.ddl import parse_fields
from alluvium.schema.diff import schema_diff
from alluvium.schema.types import Struct


def struct(ddl: str) -> Struct:
    return Struct(tuple(parse_fields(ddl)))


@pytest.mark.parametrize(
    ("table", "data", "lines"),
    [
        ("a int, b string", "B string, A int", []), ("a int", "a bigint", ["-a: int", "+a: bigint"]), ("a int, b int", "a int", ["-b: int"]),
        ("a int", "a int, B int", ["+b: int"]), ("s struct<x: int, y: int>", "s struct<X: int>", ["-s.y: int"]), ("a int not null", "a int", []),
        ("a int, b int, c int", "a int, c string, d int", ["-b: int", "-c: int", "+c: string", "+d: int"]), ("z array<int>", "z array<string>", ["-z: array<int>", "+z: array<string>"]),
        ("`-a` int", "`+a` int", ["--a: int", "++a: int"]),
    ],
)  # fmt: skip
def test_what_differs(table: str, data: str, lines: list[str]) -> None:
    assert schema_diff(struct(table), struct(data)).splitlines() == ["--- table", "+++ data", *lines]
