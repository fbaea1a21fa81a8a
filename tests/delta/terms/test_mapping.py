"""Column mapping: which mode holds under which protocol, and what columns are called in files."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from alluvium.delta.terms.mapping import mapping_mode, physical_paths, physical_schema
from alluvium.delta.terms.spec import Format, Metadata, Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import INTEGER, STRING, Array, Field, Map, Struct

NAME, ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"


def described(mode: str | None) -> Metadata:
    said = {} if mode is None else {"delta.columnMapping.mode": mode}
    return Metadata(
        id="t", format=Format(provider="parquet"), schema_string="", partition_columns=[], configuration=said
    )


@pytest.mark.parametrize("reader", [1, 2, 3])
@pytest.mark.parametrize("listed", ["", "r", "w", "rw"])
def test_the_mode_holds_where_the_protocol_supports_it(reader: int, listed: str) -> None:
    features = {side: ["columnMapping"] if side in listed else [] for side in "rw"}
    protocol = Protocol(
        min_reader_version=reader,
        min_writer_version=7,
        reader_features=features["r"] if reader == 3 else None,
        writer_features=features["w"],
    )
    holds = reader == 2 or (reader == 3 and listed != "")
    for text, mode in (
        ("none", "none"),
        ("name", "name"),
        ("id", "id"),
        ("NAME", "name"),
        ("Id", "id"),
        (None, "none"),
    ):
        assert mapping_mode(protocol, described(text)) == (mode if holds else "none")
    for text in ("", "names", "names "):
        if not holds:
            assert mapping_mode(protocol, described(text)) == "none"
            continue
        with pytest.raises(UnsupportedFeature) as caught:
            mapping_mode(protocol, described(text))
        assert (caught.value.code, tuple(caught.value.features)) == ("unsupported-mapping-mode", ("columnMapping",))


def column(name: str, kind: Any, number: Any, physical: Any = None) -> Field:
    return Field(name, kind, False, {NAME: physical or f"c-{number}", ID: number, "comment": "x"})


def nested() -> Struct:
    inner = Struct((column("x", INTEGER, 5), column("y", STRING, 6)))
    return Struct(
        (
            column("a", INTEGER, 1),
            column("s", inner, 2),
            column("l", Array(Struct((column("e", STRING, 7),))), 3),
            column("m", Map(Struct((column("k", STRING, 8),)), Struct((column("v", STRING, 9),))), 4),
        )
    )


def test_without_a_mode_columns_are_called_as_they_are() -> None:
    schema = nested()
    assert physical_schema(schema, "none") is schema


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_of_every_depth_have_the_names_of_the_files(mode: Any) -> None:
    def there(number: int, kind: Any) -> Field:
        return Field(f"c-{number}", kind, False, {"parquet.field.id": number} if mode == "id" else {})

    schema = nested()
    physical = physical_schema(schema, mode)
    inner = Struct((there(5, INTEGER), there(6, STRING)))
    maps = Map(Struct((there(8, STRING),)), Struct((there(9, STRING),)))
    assert physical == Struct(
        (there(1, INTEGER), there(2, inner), there(3, Array(Struct((there(7, STRING),)))), there(4, maps))
    )
    assert physical_paths(schema, physical) == {
        ("a",): ("c-1",), ("s",): ("c-2",), ("s", "x"): ("c-2", "c-5"), ("s", "y"): ("c-2", "c-6"), ("l",): ("c-3",), ("m",): ("c-4",),
    }  # fmt: skip


@pytest.mark.parametrize("physical", ["", 7, [], None])
def test_a_column_without_a_physical_name(physical: Any) -> None:
    bad = Field("b", INTEGER, True, {} if physical is None else {NAME: physical, ID: 2})
    for mode in ("name", "id"):
        with pytest.raises(CorruptTable) as caught:
            physical_schema(Struct((column("a", INTEGER, 1), column("s", Struct((bad,)), 3))), mode)  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.column) == ("invalid-column-mapping", "s.b")


@pytest.mark.parametrize("number", [True, False, "1", None, 1.0, 1 << 31, -(1 << 31) - 1])
def test_ids_are_numbers_of_32_bits(number: Any) -> None:
    schema = Struct((column("a", INTEGER, number, "p"),))
    assert physical_schema(schema, "name").names == ("p",)
    with pytest.raises(CorruptTable) as caught:
        physical_schema(schema, "id")
    assert (caught.value.code, caught.value.column) == ("invalid-column-mapping", "a")
    for least_and_most in ((1 << 31) - 1, -(1 << 31), 0):
        assert physical_schema(Struct((column("a", INTEGER, least_and_most, "p"),)), "id").names == ("p",)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_names_that_two_columns_have(mode: Any) -> None:
    """Also such as differ by case alone: readers of files may not tell them apart."""
    for one, other in itertools.permutations(("p", "P")):
        schema = Struct((column("a", INTEGER, 1, one), column("b", INTEGER, 2, other)))
        with pytest.raises(CorruptTable) as caught:
            physical_schema(schema, mode)
        assert caught.value.column == "b"
    # In different structs they are different columns.
    schema = Struct((column("a", INTEGER, 1, "p"), column("s", Struct((column("b", INTEGER, 2, "p"),)), 3)))
    assert physical_schema(schema, mode).names == ("p", "c-3")


def test_ids_that_two_columns_have() -> None:
    schema = Struct((column("a", INTEGER, 1), column("s", Struct((column("b", INTEGER, 1, "q"),)), 3)))
    assert physical_schema(schema, "name").names == ("c-1", "c-3")
    with pytest.raises(CorruptTable) as caught:
        physical_schema(schema, "id")
    assert (caught.value.code, "the id 1" in str(caught.value)) == ("invalid-column-mapping", True)
