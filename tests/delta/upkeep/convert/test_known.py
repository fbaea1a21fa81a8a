"""What a catalog knows of columns, and what files show of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.delta.upkeep.convert.footers import Footers
from alluvium.delta.upkeep.convert.known import ensure_shown, has_defaults, hidden_column
from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import INTEGER, Field, Struct


def columns(text: str) -> Struct:
    return Struct(parse_fields(text))


def footers(text: str, everywhere: str | None = None) -> Footers:
    stored = columns(text)
    names = stored.names if everywhere is None else everywhere.split()
    return Footers(stored, (), pa.chunked_array([[]], pa.string()), frozenset(name.lower() for name in names))


@pytest.mark.parametrize(
    ("stored", "known"),
    [
        ("id int", "ID int, more string, p date"),
        ("a byte, b short, c int", "a bigint, b int, c bigint"),
        ("s struct<x: int>, l array<int>", "s struct<X: bigint, y: string>, l array<bigint>"),
        ("m map<string, struct<x: short>>", "m map<string, struct<x: int>>"),
        ("p string, id int", "id int, p date"),
    ],
)
def test_what_shows_the_same(stored: str, known: str) -> None:
    ensure_shown(columns(known), ["P"], footers(stored))


@pytest.mark.parametrize(
    ("stored", "known", "column"),
    [
        ("id bigint", "id int", "id"),
        ("id int", "id double", "id"),
        ("s struct<x: string>", "s struct<x: date>", "s.x"),
        ("l array<int>", "l array<string>", "l.element"),
        ("m map<string, int>", "m map<string, array<int>>", "m.value"),
        ("t timestamp", "t timestamp_ntz", "t"),
    ],
)
def test_what_shows_otherwise(stored: str, known: str, column: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ensure_shown(columns(known), [], footers(stored))
    assert (caught.value.code, caught.value.column) == ("schemas-differ", column)


def test_values_of_rows_that_were_there_before_their_column() -> None:
    def known(before: str) -> Struct:
        return Struct((Field("d", INTEGER, True, {"EXISTS_DEFAULT": before, "CURRENT_DEFAULT": before}),))

    ensure_shown(known("7"), [], footers("D int"))
    ensure_shown(known("NULL"), [], footers("x int"))
    with pytest.raises(InvalidRequest) as caught:
        ensure_shown(known("7"), [], footers("d int, x int", everywhere="x"))
    assert (caught.value.code, caught.value.column) == ("not-convertible", "d")
    assert has_defaults(known("7")) and not has_defaults(columns("d int"))


def test_what_files_have_and_nobody_shows() -> None:
    known = columns("id int, s struct<a: int>, l array<struct<b: int>>")
    assert hidden_column(columns("ID int, s struct<A: int>, l array<struct<B: int>>"), known) is None
    assert hidden_column(columns("id int, x int"), known) == "x"
    assert hidden_column(columns("s struct<a: int, x: int>"), known) == "s.x"
    assert hidden_column(columns("l array<struct<x: int>>"), known) == "l.element.x"
