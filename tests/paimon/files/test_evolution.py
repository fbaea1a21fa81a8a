"""Columns of today out of files of other schemas: by their ids, under the names and types that the files have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.files.evolution import file_columns, output_column, read_schema
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.plan.scan import Coalesce, Converted, FileConstant, Literal, OutputColumn, Physical
from alluvium.schema import types as t


def column(number: int, name: str, kind: Any) -> DataField:
    return DataField(number, name, parse_type(kind))


OLD = TableSchema(0, (column(0, "a", "INT"), column(1, "b", "STRING"), column(5, "c", "DATE NOT NULL")), 5)


@pytest.mark.parametrize(
    ("names", "held"),
    [(None, [0, 1, 5]), ([], []), (["b"], [1]), (["c", "a", "zz"], [0, 5]), (["A"], [])],
)
def test_what_a_file_holds(names: list[str] | None, held: list[int]) -> None:
    found = file_columns(OLD, names)
    assert list(found) == held
    assert all(found[number] == next(f for f in OLD.fields if f.id == number) for number in held)


def test_a_column_goes_by_its_id_and_not_by_its_name() -> None:
    held = file_columns(OLD, None)
    renamed = output_column(column(1, "other", "STRING"), held, ())
    assert renamed == OutputColumn("other", t.STRING, True, Physical(("b",), t.STRING))
    # Another column, that is called as one of the file's.
    assert output_column(column(9, "b", "STRING"), held, ()).value == Literal(None, t.STRING)
    assert output_column(column(1, "b", "STRING"), {}, ()) == OutputColumn("b", t.STRING, True, Literal(None, t.STRING))
    assert output_column(column(5, "c", "DATE NOT NULL"), held, ()).nullable is False


def test_a_column_of_another_type_is_cast() -> None:
    held = file_columns(OLD, None)
    (wider,) = [output_column(column(0, "a", "BIGINT"), held, ())]
    assert wider.type == t.LONG and isinstance(wider.value, Converted)
    assert (wider.value.value, wider.value.type) == (Physical(("a",), t.INTEGER), t.LONG)
    # Whether it may be null is no type.
    assert output_column(column(0, "a", "INT NOT NULL"), held, ()).value == Physical(("a",), t.INTEGER)
    with pytest.raises(UnsupportedFeature) as caught:
        output_column(column(0, "a", "BYTES"), held, ())
    assert caught.value.code == "unsupported-cast"


@pytest.mark.parametrize("keys", [("b",), ("a", "b")])
def test_partition_keys_are_those_of_the_file(keys: tuple[str, ...]) -> None:
    held = file_columns(OLD, None)
    assert output_column(column(1, "b", "STRING"), held, keys).value == FileConstant("b", t.STRING)
    assert output_column(column(5, "c", "DATE"), held, keys).value == Physical(("c",), t.DATE)


def test_of_a_file_those_columns_are_read_that_are_wanted_each_once() -> None:
    held = file_columns(OLD, None)
    outputs = [
        output_column(column(5, "c", "DATE"), held, ()),
        output_column(column(0, "wide", "BIGINT"), held, ()),
        output_column(column(0, "a", "INT"), held, ()),
        output_column(column(7, "none", "INT"), held, ()),
        output_column(column(1, "b", "STRING"), held, ("b",)),
    ]
    read = read_schema(outputs)
    assert [(f.name, f.type) for f in read.fields] == [("c", t.DATE), ("a", t.INTEGER)]
    either = replace(outputs[0], value=Coalesce((Physical(("x",), t.LONG), Physical(("c",), t.DATE))))
    assert read_schema([either, outputs[2]]).names == ("x", "c", "a")
    assert read_schema([]).names == ()
