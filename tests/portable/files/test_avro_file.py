"""Avro data files: maps are told from arrays of rows by what their schema says, not by what fields are called."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.codecs.avro.avro_container import format_avro
from alluvium.errors import CorruptTable, UnsupportedFeature
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


@pytest.mark.parametrize(
    ("called", "wanted"), [("point", {"y": 7}), ("a.b.point", {"y": 7}), ("a.point", {"x": 7}), ("b.point", {"z": 7})]
)
def test_a_name_is_of_the_namespace_around_it_with_all_its_parts(called: str, wanted: dict[str, int]) -> None:
    """ "A name not containing dots: the namespace is taken from the most tightly enclosing named schema." """
    kinds = [
        {"type": "record", "name": "point", "namespace": namespace, "fields": [{"name": name, "type": "int"}]}
        for namespace, name in (("a", "x"), ("a.b", "y"), ("b", "z"))
    ]
    outer = {"type": "record", "name": "a.b.outer", "fields": [{"name": "p", "type": called}]}
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate([*kinds, outer])]
    schema = {"type": "record", "name": "row", "fields": fields}
    row = {"f0": {"x": 1}, "f1": {"y": 2}, "f2": {"z": 3}, "f3": {"p": wanted}}
    file = open_avro("f.avro", pa.BufferReader(format_avro(schema, [row])))
    ((_, columns),) = file.batches(file.names(list(row)), 9)
    assert {name: column.to_pylist() for name, column in columns.items()} == {name: [v] for name, v in row.items()}


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


def written_plainly(kind: Any, *values: Any) -> pa.Array:
    """As fastavro would write it, if it knew the logical type."""
    schema = {"type": "record", "name": "row", "fields": [{"name": "c", "type": kind}]}
    file = open_avro("f.avro", pa.BufferReader(format_avro(schema, [{"c": value} for value in values], "null")))
    ((_, columns),) = file.batches({"x": "c"}, 100)
    return columns["x"]


@pytest.mark.parametrize(
    ("kind", "logical", "wanted"),
    [
        ("int", "date", pa.date32()), ("int", "time-millis", pa.time32("ms")), ("long", "time-micros", pa.time64("us")),
        ("long", "timestamp-millis", pa.timestamp("ms")), ("long", "timestamp-micros", pa.timestamp("us")), ("long", "timestamp-nanos", pa.timestamp("ns")),
        ("long", "local-timestamp-millis", pa.timestamp("ms")), ("long", "local-timestamp-micros", pa.timestamp("us")), ("long", "local-timestamp-nanos", pa.timestamp("ns")),
        ("long", "unheard", pa.int64()), ("int", None, pa.int32()), ("float", None, pa.float32()), ("double", None, pa.float64()),
    ],
)  # fmt: skip
def test_numbers_of_every_meaning(kind: str, logical: str | None, wanted: pa.DataType) -> None:
    own = {"type": kind, "logicalType": logical} if logical else kind
    for schema in (own, ["null", own]):
        made = written_plainly(schema, 1234)
        assert made.type == wanted
        assert made.cast(pa.int64() if wanted.bit_width == 64 else pa.int32()).to_pylist() == [1234]
    inside = written_plainly({"type": "array", "items": own}, [1234, 5])
    assert inside.type == pa.list_(wanted) and len(inside.values) == 2


def test_columns_of_nothing_but_null() -> None:
    made = written_plainly("null", None, None)
    assert made.type == pa.null() and len(made) == 2


@pytest.mark.parametrize("width", [1, 2, 9, 16])
@pytest.mark.parametrize("number", [0, 1, -1, 127, -128])
def test_decimals_of_any_width(width: int, number: int) -> None:
    """ "two's-complement representation of the unscaled integer value in big-endian byte order" """
    data = number.to_bytes(width, "big", signed=True)
    kinds = {"precision": 20, "scale": 3, "logicalType": "decimal"}
    for own in ({"type": "bytes", **kinds}, {"type": "fixed", "name": "f", "size": width, **kinds}):
        value = Decimal(number).scaleb(-3)
        assert written_plainly(own, data).to_pylist() == [value]
        assert written_plainly({"type": "map", "values": own}, {"k": data}).to_pylist() == [[("k", value)]]
        pair = {"type": "record", "name": "e", "fields": [{"name": "k", "type": own}, {"name": "v", "type": "int"}]}
        made = written_plainly({"type": "array", "logicalType": "map", "items": pair}, [{"k": data, "v": 7}])
        assert made.to_pylist() == [[(value, 7)]] and made.type == pa.map_(pa.decimal128(20, 3), pa.int32())


@pytest.mark.parametrize("name", ["point", "n.point"])
@pytest.mark.parametrize(
    ("own", "value"),
    [
        ({"type": "enum", "symbols": ["A", "B"]}, "B"),
        ({"type": "fixed", "size": 2}, b"xy"),
        ({"type": "fixed", "size": 2, "logicalType": "decimal", "precision": 4}, b"\x00\x07"),
    ],
)  # fmt: skip
def test_named_types_of_every_kind_are_called_by_name(own: dict[str, Any], value: Any, name: str) -> None:
    first = {**own, "name": "point", "namespace": "n"}
    fields = [{"name": "a", "type": first}, {"name": "b", "type": ["null", name]}]
    schema = {"type": "record", "name": "row", "namespace": "n", "fields": fields}
    file = open_avro(
        "f.avro", pa.BufferReader(format_avro(schema, [{"a": value, "b": value}, {"a": value, "b": None}], "null"))
    )
    ((_, columns),) = file.batches(file.names(["a", "B"]), 100)
    assert columns["a"].type == columns["B"].type
    wanted = Decimal(7) if "logicalType" in own else value
    assert (columns["a"].to_pylist(), columns["B"].to_pylist()) == ([wanted, wanted], [wanted, None])


def test_unions_are_told_of() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        written_plainly(["int", "string"], 1)
    assert (caught.value.code, caught.value.features) == ("unsupported-file-type", ("union",))


def test_values_that_are_damaged_are_those_of_their_file() -> None:
    kind = {"type": "int", "logicalType": "time-millis"}
    schema = {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "c", "type": {"type": "bytes", "logicalType": "decimal", "precision": 2}},
            {"name": "d", "type": kind},
        ],
    }
    file = open_avro("some/f.avro", pa.BufferReader(format_avro(schema, [{"c": b"\x7f\xff", "d": 1}], "null")))
    with pytest.raises(CorruptTable) as caught:
        list(file.batches({"c": "c"}, 100))
    assert (caught.value.code, caught.value.path) == ("damaged-file", "some/f.avro")
    # Of the others nobody looks at it.
    ((count, columns),) = file.batches({"d": "d"}, 100)
    assert count == 1 and list(columns) == ["d"]
