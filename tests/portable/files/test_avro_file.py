"""Avro data files: maps are told from arrays of rows by what their schema says, not by what fields are called."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.codecs.avro.avro_container import format_avro
from alluvium.errors import CorruptTable
from alluvium.portable.files.avro_file import AvroFile, open_avro

PAIR = {
    "type": "record",
    "name": "pair",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
}
PAIRS = [{"key": 1, "value": "a"}, {"key": 1, "value": None}]


def column(kind: Any, values: list[Any]) -> pa.Array:
    out = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": [{"name": "c", "type": ["null", kind]}]}
    fastavro.writer(out, fastavro.parse_schema(schema), [{"c": value} for value in values])
    file = open_avro("f.avro", pa.BufferReader(out.getvalue()))
    ((rows, columns),) = file.batches(file.names(["c"]), 100)
    assert rows == len(values)
    return columns["c"]


def test_rows_of_a_key_and_a_value_are_rows() -> None:
    made = column({"type": "array", "items": PAIR}, [PAIRS, [], None])
    assert made.to_pylist() == [PAIRS, [], None]
    assert pa.types.is_list(made.type)


def test_an_array_that_says_so_is_a_map() -> None:
    entry = {**PAIR, "fields": [{"name": "k", "type": "int"}, {"name": "v", "type": ["null", "string"]}]}
    made = column(
        {"type": "array", "logicalType": "map", "items": entry}, [[{"k": 1, "v": "a"}, {"k": 2, "v": None}], None]
    )
    assert made.type == pa.map_(pa.int32(), pa.string())
    assert made.to_pylist() == [[(1, "a"), (2, None)], None]


@pytest.mark.parametrize("fields", [1, 3])
def test_a_record_that_is_no_pair_is_no_entry(fields: int) -> None:
    named = [{"name": f"f{i}", "type": "int"} for i in range(fields)]
    row = {f["name"]: 7 for f in named}
    items = {"type": "record", "name": "wide", "fields": named}
    assert column({"type": "array", "logicalType": "map", "items": items}, [[row]]).to_pylist() == [[row]]


POINT = {"type": "record", "name": "point", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}


def opened(schema: Any, *rows: Any) -> AvroFile:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows)
    return open_avro("f.avro", pa.BufferReader(out.getvalue()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("n.point", {"x": 2}),
        ({"type": "array", "items": ["null", "n.point"]}, [{"x": 2}, None]),
        ({"type": "map", "values": "n.point"}, [("k", {"x": 2})]),
        ({"type": "record", "name": "n.outer", "fields": [{"name": "p", "type": "point"}]}, {"p": {"x": 2}}),
    ],
)
def test_types_that_are_called_by_their_names(kind: Any, value: Any) -> None:
    """ "A schema [...] by name": whoever writes one type twice need not write it out twice."""
    schema = {"type": "record", "name": "row", "fields": [{"name": "a", "type": POINT}, {"name": "b", "type": kind}]}
    file = opened(
        schema, {"a": {"x": 1}, "b": dict(value) if isinstance(kind, dict) and kind["type"] == "map" else value}
    )
    ((_, columns),) = file.batches(file.names(["a", "b"]), 100)
    assert (columns["a"].to_pylist(), columns["b"].to_pylist()) == ([{"x": 1}], [value])


def test_names_alike_in_two_namespaces_are_two_types() -> None:
    other = {"type": "record", "name": "point", "namespace": "m", "fields": [{"name": "y", "type": "int"}]}
    kinds = {"a": POINT, "b": other, "c": "n.point", "d": "m.point"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    schema = {"type": "record", "name": "row", "namespace": "top", "fields": fields}
    row = {"a": {"x": 1}, "b": {"y": 2}, "c": {"x": 3}, "d": {"y": 4}}
    # fastavro's header would have the whole names alone.
    file = open_avro("f.avro", pa.BufferReader(format_avro(schema, [row])))
    ((_, columns),) = file.batches(file.names(list(kinds)), 9)
    assert {name: column.to_pylist() for name, column in columns.items()} == {k: [v] for k, v in row.items()}


@pytest.mark.parametrize("schema", ["string", {"type": "array", "items": "int"}])
def test_values_that_are_no_rows(schema: Any) -> None:
    with pytest.raises(CorruptTable) as raised:
        opened(schema, "a" if schema == "string" else [1])
    assert raised.value.code == "damaged-file"


@pytest.mark.parametrize("more", [{}, {"precision": 99}, {"precision": "x"}, {"precision": 9, "scale": 10**9}])
def test_decimals_that_are_none(more: Any) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", **more}
    schema = {"type": "record", "name": "row", "fields": [{"name": "c", "type": kind}]}
    # As fastavro would write it, if it looked at no logical type.
    data = format_avro(schema, [{"c": b"\x01"}], "null")
    file = open_avro("f.avro", pa.BufferReader(data))
    with pytest.raises(CorruptTable) as raised:
        list(file.batches(file.names(["c"]), 100))
    assert raised.value.code == "damaged-file"


@pytest.mark.parametrize("scale", [{}, {"scale": 0}, {"scale": 1}])
def test_decimals_without_a_scale_are_whole_numbers(scale: dict[str, int]) -> None:
    """ "scale, a JSON integer representing the scale (optional). If not specified the scale is 0." """
    made = column({"type": "bytes", "logicalType": "decimal", "precision": 5, **scale}, [Decimal("12"), None])
    assert made.to_pylist() == [Decimal("12"), None]
    assert made.type == pa.decimal128(5, scale.get("scale", 0))
    inside = column({"type": "array", "items": {"type": "bytes", "logicalType": "decimal", "precision": 5, **scale}}, [[Decimal("-7")]])  # fmt: skip
    assert inside.to_pylist() == [[Decimal("-7")]]
