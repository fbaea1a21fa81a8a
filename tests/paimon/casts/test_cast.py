"""Casts against what Paimon's Java makes of the same values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_values import array_of, json_of, parse_column_type

from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.paimon.casts.cast import cast, cast_between
from alluvium.paimon.schema.types import DataField, DataType

ROOT = Path(__file__).resolve().parents[3]
NAMED = os.environ.get("ALLUVIUM_CONFORMANCE")
FILE = (Path(NAMED) if NAMED else ROOT.parent / "shared" / "conformance") / "paimon" / "vectors" / "casts.json"
#: "odd string -> DATE/TIMESTAMP inputs in the vectors are engine quirks, not rules"; floats as JDKs before 19 print them.
QUIRKS = {" 42 ", "99999999999"}
OLD_JDK = {("INT", "FLOAT", 2147483647)}


def vectors() -> list[object]:
    if not FILE.exists():
        return [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"))]
    found = json.loads(FILE.read_text(encoding="utf-8"))["vectors"]
    return [pytest.param(v, id=f"{v['from']}->{v['to']}") for v in found if v.get("values")]


@pytest.mark.parametrize("vector", vectors())
def test_casts_of_java(vector) -> None:
    source, target = parse_column_type(vector["from"]), parse_column_type(vector["to"])
    if source == target:
        return
    cast_between(source, target)
    for given, expected in vector["values"]:
        if given in QUIRKS or (vector["from"], vector["to"], given) in OLD_JDK:
            continue
        values = array_of([given], source)
        if isinstance(expected, dict):
            with pytest.raises(InvalidRequest):
                cast(values, source, target, "UTC")
        else:
            assert json_of(cast(values, source, target, "UTC")[0], target) == expected, given


def test_no_executor_is_refused() -> None:
    """ "DATE/TIME/TIMESTAMP to CHAR(n) ... have no executor and are refused" in part; FLOAT to BOOLEAN in all."""
    for source, target in (("FLOAT", "BOOLEAN"), ("DATE", "INT"), ("BOOLEAN", "DATE"), ("BYTES", "INT")):
        with pytest.raises(UnsupportedFeature) as caught:
            cast_between(parse_column_type(source), parse_column_type(target))
        assert caught.value.code == "unsupported-cast"


def test_texts_that_only_grow_need_no_cast() -> None:
    assert cast_between(parse_column_type("VARCHAR(3)"), parse_column_type("STRING")) is None
    assert cast_between(parse_column_type("VARCHAR(5)"), parse_column_type("VARCHAR(3)")) is not None


def test_zones_have_a_say_between_wall_clocks_and_instants() -> None:
    instants = array_of(["1700000000000000000"], parse_column_type("TIMESTAMP(6) WITH LOCAL TIME ZONE"))
    wall = cast(
        instants,
        parse_column_type("TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        parse_column_type("TIMESTAMP(6)"),
        "Asia/Tokyo",
    )
    assert str(wall[0]) == "2023-11-15 07:13:20"


def test_fields_of_rows_go_by_id() -> None:
    old = DataType(
        "ROW",
        fields=(DataField(1, "a", DataType("INTEGER")), DataField(2, "b", DataType("VARCHAR", length=9))),
    )
    new = DataType(
        "ROW",
        fields=(
            DataField(3, "a", DataType("DOUBLE")),
            DataField(1, "z", DataType("BIGINT")),
        ),
    )
    values = pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    assert cast(values, old, new, "UTC").to_pylist() == [{"a": None, "z": 1}, None]
    lists = pa.array([[{"a": 5, "b": "y"}], None, []], pa.list_(values.type))
    made = cast(lists, DataType("ARRAY", element=old), DataType("ARRAY", element=new), "UTC")
    assert made.to_pylist() == [[{"a": None, "z": 5}], None, []]


def test_errors_name_the_value() -> None:
    with pytest.raises(AlluviumError, match="'abc' cannot be cast"):
        cast(pa.array(["abc"]), parse_column_type("STRING"), parse_column_type("INT"), "UTC")


@pytest.mark.parametrize(
    ("source", "values", "texts"),
    [
        (
            DataType("ARRAY", element=parse_column_type("INT")),
            pa.array([[9], [1, None, 3], None, []], pa.list_(pa.int32())).slice(1),
            ["[1, null, 3]", None, "[]"],
        ),
        (
            DataType("ARRAY", element=parse_column_type("DOUBLE")),
            pa.array([[1.5, 1e10]], pa.list_(pa.float64())),
            ["[1.5, 1.0E10]"],
        ),
        (
            DataType("MAP", key=parse_column_type("STRING"), value=parse_column_type("INT")),
            pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int32())),
            ["{a -> 1, b -> null}", None],
        ),
        (
            DataType("ROW", fields=(DataField(0, "x", parse_column_type("INT")),
                                    DataField(1, "y", parse_column_type("STRING")))),
            pa.array([{"x": 1, "y": "q"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
            ["{1, q}", None],
        ),
    ],
)  # fmt: skip
def test_values_of_several_parts_as_java_spells_them(source: DataType, values: pa.Array, texts: list[str]) -> None:
    """Asked of Paimon 1.4.2 by altering such a column to STRING."""
    target = parse_column_type("STRING")
    conversion = cast_between(source, target)
    assert conversion is not None
    assert conversion.convert(values, "UTC").to_pylist() == texts
