"""Avro data files: maps are told from arrays of rows by what their schema says, not by what fields are called."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.portable.avro_file import open_avro

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
