"""What a catalog knows of columns, and what files show of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.delta.upkeep.convert.conversion import ConvertRequest, ensure_same_partitions
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


@pytest.mark.parametrize(
    ("said", "known", "fits"),
    [
        (None, "p int", True), ("p int", "p int", True), ("P int", "p int", True), ("p int, q date", "p int, q date", True),
        ("", "", True), ("p int", "p bigint", False), ("q int", "p int", False), ("q date, p int", "p int, q date", False),
        ("p int", "p int, q date", False), ("p int", "", False), ("", "p int", False),
    ],
)  # fmt: skip
def test_partitions_that_are_known_already(said: str | None, known: str, fits: bool) -> None:
    columns_said = None if said is None else parse_fields(said) if said else ()
    columns_known = parse_fields(known) if known else ()
    if fits:
        ensure_same_partitions(columns_said, columns_known, "the catalog")
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_same_partitions(columns_said, columns_known, "the catalog")
    assert caught.value.code == "partition-schema" and str(caught.value).startswith("the catalog has other partition")
    assert f"({known.replace(' bigint', ' bigint') or 'none'})" in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "tight"),
    [
        ({}, None), ({"delta.enableDeletionVectors": "true"}, True), ({"DELTA.ENABLEDELETIONVECTORS": " TRUE "}, True),
        ({"delta.enableDeletionVectors": "False"}, None), ({"delta.feature.deletionVectors": "supported"}, True),
        ({"delta.feature.rowTracking": "supported"}, None), ({"delta.enableDeletionVectorsx": "true"}, None),
        ({"delta.enableDeletionVectors": "false", "delta.feature.deletionVectors": "enabled"}, True),
    ],
)  # fmt: skip
def test_bounds_are_said_to_be_tight_where_vectors_may_come(properties: dict[str, str], tight: bool | None) -> None:
    assert ConvertRequest(properties=properties).tight_bounds is tight
