"""Random Arrow tables as Avro records: there and back, and as fastavro reads them."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import itertools
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.avro.avro_container import (
    AvroContainer,
    decode_record,
    encode_record,
    format_avro,
    parse_schema,
    read_avro,
    read_blocks,
)
from alluvium.codecs.avro.avro_rows import avro_schema, records
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.portable.files.avro_file import open_avro

D = decimal.Decimal
#: Of each Arrow type the form that Java gives it, and values.
KINDS: list[tuple[pa.DataType, Any, list[Any]]] = [
    (pa.bool_(), "boolean", [True, False]),
    (pa.int8(), "int", [-128, 127]),
    (pa.int16(), "int", [-(2**15), 2**15 - 1]),
    (pa.int32(), "int", [-(2**31), 0, 2**31 - 1]),
    (pa.int64(), "long", [-(2**63), -1, 0, 2**63 - 1]),
    (pa.float32(), "float", [-1.5, 0.0, float("inf")]),
    (pa.float64(), "double", [-0.1, 1e300]),
    (pa.string(), "string", ["", "é😀", "a" * 100]),
    (pa.binary(), "bytes", [b"", b"\x00\xff"]),
    (pa.date32(), {"type": "int", "logicalType": "date"}, [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (pa.time32("ms"), {"type": "int", "logicalType": "time-millis"}, [dt.time(0), dt.time(23, 59, 59, 999_000)]),
    (pa.timestamp("ms"), {"type": "long", "logicalType": "timestamp-millis"}, [dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 5000)]),
    (pa.timestamp("us"), {"type": "long", "logicalType": "timestamp-micros"}, [dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 7)]),
    (pa.decimal128(1, 0), {"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 0}, [D(-9), D(9)]),
    (pa.decimal128(9, 2), {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [D("-9999999.99"), D("0.01"), D("1.28")]),
    (pa.decimal128(38, 10), {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}, [D("-9999999999999999999999999999.9999999999"), D("0E-10")]),
]  # fmt: skip


@st.composite
def typed(draw: st.DrawFn, depth: int) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type, and values of it."""
    shape = draw(st.integers(0, 7 if depth else 3))
    if shape <= 3:
        kind, _, values = draw(st.sampled_from(KINDS))
        return kind, st.sampled_from(values)
    inner, values = draw(typed(depth - 1))
    nullable = draw(st.booleans())
    member = st.one_of(st.none(), values) if nullable else values
    if shape == 4:
        return pa.list_(pa.field("element", inner, nullable)), st.lists(member, max_size=3)
    if shape == 5:
        return pa.map_(pa.string(), pa.field("value", inner, nullable)), st.lists(
            st.tuples(st.sampled_from("abc"), member), max_size=3, unique_by=lambda pair: pair[0]
        )
    if shape == 6:
        return pa.map_(pa.int32(), pa.field("value", inner, nullable)), st.lists(
            st.tuples(st.integers(-2, 2), member), max_size=3, unique_by=lambda pair: pair[0]
        )
    other, others = draw(typed(depth - 1))
    fields = [pa.field("a", inner, nullable), pa.field("b_c", other, False)]
    return pa.struct(fields), st.fixed_dictionaries({"a": member, "b_c": others})


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns, fields = [], []
    count = draw(st.integers(0, 6))
    for n in range(draw(st.integers(1, 3))):
        kind, values = draw(typed(2))
        nullable = draw(st.booleans())
        rows = draw(st.lists(st.one_of(st.none(), values) if nullable else values, min_size=count, max_size=count))
        columns.append(pa.array(rows, kind))
        fields.append(pa.field(f"c{n}", kind, nullable))
    return pa.table(columns, pa.schema(fields))


def loose(kind: pa.DataType) -> pa.DataType:
    """As files are read: everything may be null, small numbers are 32-bit, elements have one name."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, loose(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(loose(kind.key_type), loose(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(loose(kind.value_type))
    return pa.int32() if kind in (pa.int8(), pa.int16()) else kind


@settings(max_examples=60, derandomize=True)
@given(tables(), st.sampled_from(["zstandard", "deflate", "snappy", "null"]), st.integers(0, 2))
def test_there_and_back(table: pa.Table, codec: str, begin: int) -> None:
    table = table.slice(begin)
    data = format_avro(avro_schema(table.schema), records(table), codec)
    file = open_avro("f.avro", pa.BufferReader(data))
    assert file.num_rows == table.num_rows
    read: dict[str, list[Any]] = {name: [] for name in table.column_names}
    for rows, columns in file.batches(file.names(table.column_names), 2):
        assert rows <= 2
        for name, values in columns.items():
            assert len(values) == rows and values.type == loose(table.schema.field(name).type)
            read[name] += values.to_pylist()
    assert read == {name: table[name].to_pylist() for name in table.column_names}


@pytest.mark.parametrize(("kind", "form", "values"), KINDS, ids=[str(one[0]) for one in KINDS])
def test_the_forms_of_types(kind: pa.DataType, form: Any, values: list[Any]) -> None:
    """As fastavro reads them, which knows logical types."""
    whole, maybe = pa.field("c", kind, False), pa.field("c", kind)
    assert avro_schema(pa.schema([whole]))["fields"] == [{"name": "c", "type": form}]
    assert avro_schema(pa.schema([maybe]))["fields"] == [{"name": "c", "type": ["null", form], "default": None}]
    table = pa.table({"c": pa.array([*values, None], kind)})
    theirs = fastavro.reader(io.BytesIO(format_avro(avro_schema(table.schema), records(table), "null")))
    found = [row["c"] for row in theirs]
    if pa.types.is_timestamp(kind):
        found = [None if one is None else one.replace(tzinfo=None) for one in found]
    assert found == [*values, None]


def test_times_of_a_zone_and_maps_of_others() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("m", pa.map_(pa.int32(), pa.date32()))])
    at, of = (field["type"][1] for field in avro_schema(schema)["fields"])
    assert at == {"type": "long", "logicalType": "local-timestamp-micros"}
    assert of["logicalType"] == "map" and of["items"]["name"] == "record_m"
    assert [f["name"] for f in of["items"]["fields"]] == ["key", "value"]
    assert [f["type"] for f in of["items"]["fields"]] == [
        "int", ["null", {"type": "int", "logicalType": "date"}],
    ]  # fmt: skip


def test_records_of_equal_names_on_the_way_have_other_names() -> None:
    inner = pa.struct([("x", pa.int32())])
    fields = [("a", pa.struct([("b_c", inner), ("b", pa.struct([("c", inner)]))])), ("a_b", pa.struct([("c", inner)]))]
    made = avro_schema(pa.schema(fields))
    names: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                walk(one)
        elif isinstance(node, dict):
            names.extend([node["name"]] if node.get("type") == "record" else [])
            for key in ("fields", "type", "items", "values"):
                walk(node.get(key))

    walk(made)
    assert names[0] == "record" and len(set(names)) == len(names)
    assert {"record_a_b_c", "record_a_b_c_2", "record_a_b_c_3"} <= set(names)
    fastavro.parse_schema(made)


@pytest.mark.parametrize("name", ["a b", "1a", "é", "", "a-b", "a\n"])
def test_names_that_avro_has_not(name: str) -> None:
    for schema in (pa.schema([(name, pa.int32())]), pa.schema([("s", pa.struct([(name, pa.int32())]))])):
        with pytest.raises(UnsupportedFeature) as caught:
            avro_schema(schema)
        assert (caught.value.code, caught.value.column) == ("unsupported-name", name)


@pytest.mark.parametrize(
    "kind", [pa.uint8(), pa.timestamp("ns"), pa.timestamp("s"), pa.decimal256(40), pa.time64("us"), pa.null()]
)
def test_types_that_avro_has_not(kind: pa.DataType) -> None:
    for schema in (
        pa.schema([("c", kind)]),
        pa.schema([("c", pa.list_(kind))]),
        pa.schema([("c", pa.map_(pa.string(), kind))]),
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            avro_schema(schema)
        assert (caught.value.code, caught.value.column) == ("unsupported-type", "c")


# --- containers -------------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": {"type": "long", "logicalType": "x"}}, {"name": "t", "type": "string"}],
}
ROWS = st.lists(st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1), "t": st.text(max_size=200)}), max_size=12)


@settings(max_examples=40, derandomize=True)
@given(st.lists(ROWS, max_size=4), st.sampled_from(["zstandard", "deflate", "snappy", "null"]))
def test_rows_that_come_piece_by_piece(pieces: list[list[Any]], codec: str) -> None:
    container = AvroContainer(SCHEMA, codec)
    sizes = [container.size]
    for piece in pieces:
        container.add(piece)
        sizes.append(container.size)
    data = b"".join(container.parts)
    assert sizes == sorted(sizes) and sizes[-1] == len(data)
    everything = list(itertools.chain.from_iterable(pieces))
    assert read_avro(data, "x") == (SCHEMA, everything)
    text, blocks = read_blocks(data, "x")
    assert parse_schema(text) == {**SCHEMA, "fields": [{"name": "n", "type": {"type": "long"}}, SCHEMA["fields"][1]]}
    assert [count for count, _ in blocks] == [len(piece) for piece in pieces if piece]
    plain = b"".join(block for _, block in blocks)
    assert plain == b"".join(encode_record(json.dumps(SCHEMA), row) for row in everything)
    for row in everything:
        assert decode_record(json.dumps(SCHEMA), encode_record(json.dumps(SCHEMA), row)) == row


@settings(max_examples=40, derandomize=True)
@given(ROWS, st.sampled_from(["deflate", "null", "bzip2"]), st.integers(1, 300))
def test_containers_of_others(rows: list[Any], codec: str, interval: int) -> None:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, rows, codec, sync_interval=interval, metadata={"other": "thing", "é": "1"})
    assert read_avro(out.getvalue(), "x")[1] == rows
    for cut in (1, 17):
        if rows:
            with pytest.raises(CorruptTable) as caught:
                read_avro(out.getvalue()[:-cut], "x")
            assert (caught.value.code, caught.value.path) == ("damaged-file", "x")


def test_headers_in_sized_blocks() -> None:
    """A block of a map may tell its bytes, its count negative."""
    text = b'{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}'
    pair = bytes([22]) + b"avro.schema" + bytes([132, 1]) + text
    head = b"Obj\x01" + bytes([1, 160, 1]) + pair + bytes([0])
    data = head + bytes(16) + bytes([2, 2, 14]) + bytes(16)
    assert read_avro(data, "x")[1] == [{"n": 7}]
