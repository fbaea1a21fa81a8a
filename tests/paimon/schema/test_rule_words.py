"""Words that the rules of schemas know: aggregate functions, formats, names of Paimon's own, types of keys."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.paimon.schema.table_schema import ensure_consistent, next_version

#: Specification, "aggregation", and the name that `first_non_null_value` had once.
FUNCTIONS = (
    "sum", "product", "min", "max", "last_value", "last_non_null_value", "first_value", "first_non_null_value",
    "first_not_null_value", "listagg", "bool_and", "bool_or", "collect", "merge_map", "merge_map_with_keytime",
    "nested_update", "nested_partial_update", "theta_sketch", "hll_sketch", "rbm32", "rbm64", "primary-key",
)  # fmt: skip
ARRAY: dict[str, Any] = {"type": "ARRAY", "element": "INT"}
MAP: dict[str, Any] = {"type": "MAP", "key": "INT", "value": "INT"}
MULTISET: dict[str, Any] = {"type": "MULTISET", "element": "INT"}
ROW: dict[str, Any] = {"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "INT"}]}
VECTOR: dict[str, Any] = {"type": "VECTOR", "element": "FLOAT", "length": 3}


def columns(**types: Any) -> tuple[DataField, ...]:
    return number_fields(DataField(0, name, parse_type(kind)) for name, kind in types.items())


def refused(fields: tuple[DataField, ...], keys: tuple[str, ...] = (), **options: str) -> tuple[str | None, str | None]:
    with pytest.raises(InvalidRequest) as caught:
        TableSchema.create(fields, (), keys, options)
    return caught.value.code, caught.value.column


@pytest.mark.parametrize("function", FUNCTIONS)
def test_aggregate_functions(function: str) -> None:
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": function}
    assert TableSchema.create(columns(k="INT", v="INT"), (), ["k"], options).options == options
    with pytest.raises(InvalidRequest) as caught:
        TableSchema.create(
            columns(k="INT", v="INT"), (), ["k"], {**options, "fields.v.aggregate-function": f"{function}s"}
        )
    # The nearest word is named.
    assert (caught.value.code, caught.value.column) == ("invalid-table-option", "v")
    assert function in caught.value.message


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_partial_updates_without_a_group(function: str) -> None:
    """Java, `FieldAggregator`: but for the last value that is known all of them need one."""
    options = {"bucket": "1", "merge-engine": "partial-update", "fields.v.aggregate-function": function}
    grouped = {**options, "fields.g.sequence-group": "v"}
    fields = columns(k="INT", v="INT", g="INT")
    assert TableSchema.create(fields, (), ["k"], grouped).options == grouped
    if function == "last_non_null_value":
        assert TableSchema.create(fields, (), ["k"], options).options == options
    else:
        assert refused(fields, ("k",), **options) == ("invalid-table-option", "v")


@pytest.mark.parametrize(
    "name", ["parquet", "orc", "avro", "csv", "json", "text", "blob", "lance", "row", "mosaic", "xml", "parquets"]
)
def test_formats_of_files(name: str) -> None:
    if name in ("xml", "parquets"):
        assert refused(columns(a="INT"), **{"file.format": name}) == ("invalid-table-option", None)
    else:
        assert TableSchema.create(columns(a="INT"), options={"file.format": name}).options == {"file.format": name}


@pytest.mark.parametrize("name", ["_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID", "_KEY_", "_KEY_k"])
def test_names_of_paimons_own(name: str) -> None:
    assert refused(columns(**{"a": "INT", name: "INT"})) == ("invalid-column-name", name)
    other = name.swapcase() + "1"
    assert TableSchema.create(columns(**{"a": "INT", other: "INT"})).names == ("a", other)


@pytest.mark.parametrize("kind", [ARRAY, MAP, MULTISET, ROW, VECTOR], ids=lambda kind: str(kind["type"]))
def test_keys_are_plain(kind: dict[str, Any]) -> None:
    fields = columns(a="INT", n=kind)
    assert refused(fields, ("n",), bucket="1") == ("invalid-key", "n")
    assert refused(fields, **{"upsert-key": "n"}) == ("invalid-key", "n")
    with pytest.raises(InvalidRequest) as caught:
        TableSchema.create(fields, ["n"])
    assert (caught.value.code, caught.value.column) == ("invalid-key", "n")
    bucket = {"bucket": "2", "bucket-key": "n"}
    # Paimon hashes the vectors of embeddings.
    if kind is VECTOR:
        assert TableSchema.create(fields, options=bucket).bucket_keys == ("n",)
    else:
        assert refused(fields, **bucket) == ("invalid-bucket", "n")


def test_columns_of_vectors() -> None:
    fields = columns(a="INT", n=VECTOR)
    assert TableSchema.create(fields, options={"vector-field": "n"}).options == {"vector-field": "n"}
    assert refused(fields, **{"vector-field": "n,a"}) == ("invalid-table-option", "a")
    for name, fine in (("orc", False), ("parquet", True), ("avro", True)):
        if fine:
            assert TableSchema.create(fields, options={"file.format": name}).names == ("a", "n")
        else:
            assert refused(fields, **{"file.format": name}) == ("unsupported-by-format", "n")


def test_all_of_a_schema_as_plain_values() -> None:
    before = int(time.time() * 1000)
    schema = TableSchema.create(
        columns(k="INT", p="STRING", v="INT"), ["p"], ["k", "p"], {"bucket": "2", "owner": "me"}, "about"
    )
    assert before <= schema.time_millis <= int(time.time() * 1000)
    assert schema.as_dict() == {
        "version": 3, "id": 0, "fields": [f.as_dict() for f in schema.fields], "highestFieldId": 2,
        "partitionKeys": ["p"], "primaryKeys": ["k", "p"], "trimmedPrimaryKeys": ["k"], "bucketKeys": ["k"],
        "options": {"bucket": "2", "owner": "me"}, "comment": "about", "timeMillis": schema.time_millis,
    }  # fmt: skip
    json.dumps(schema.as_dict())


def test_the_next_version_keeps_all_but_what_changed() -> None:
    schema = TableSchema.create(columns(k="INT", p="STRING"), ["p"], ["k", "p"], {"bucket": "2"}, "about")
    wider = next_version(schema, [*schema.fields, DataField(9, "v", parse_type("INT"))], 9)
    assert (wider.id, wider.names, wider.highest_field_id, wider.version) == (1, ("k", "p", "v"), 9, 3)
    assert (wider.partition_keys, wider.primary_keys, wider.comment) == (("p",), ("k", "p"), "about")
    assert wider.options == {"bucket": "2"} and wider.time_millis >= schema.time_millis
    with pytest.raises(InvalidRequest) as caught:
        next_version(schema, [*schema.fields, DataField(9, "_LEVEL", parse_type("INT"))], 9)
    assert caught.value.code == "invalid-column-name"
    evolved = wider.apply([SchemaChange.update_comment(None), SchemaChange.set_option("x", "y")])
    assert (evolved.id, evolved.comment, evolved.options) == (2, None, {"bucket": "2", "x": "y"})


def field(number: int, name: str, kind: Any = "INT") -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind}


@pytest.mark.parametrize(
    ("fields", "more", "column"),
    [
        ([field(0, "a"), field(1, "b")], {}, ""),
        ([field(0, "a"), field(1, "A")], {"partitionKeys": ["A"]}, ""),
        ([field(0, "a"), field(1, "a")], {}, "a"),
        ([field(0, "a"), field(0, "b")], {}, None),
        # An id of a field within is one of the table's, too.
        ([field(0, "a"), field(5, "b", {"type": "ROW", "fields": [field(0, "x")]})], {}, None),
        ([field(0, "a"), field(5, "b", {"type": "ROW", "fields": [field(1, "a")]})], {}, ""),
        ([field(0, "a")], {"partitionKeys": ["p"]}, "p"),
        ([field(0, "a")], {"primaryKeys": ["k"]}, "k"),
        ([field(0, "a")], {"primaryKeys": ["A"]}, "A"),
    ],
)
def test_files_that_say_which_column_is_which(fields: Any, more: dict[str, Any], column: str | None) -> None:
    document = {"version": 3, "id": 7, "fields": fields, "highestFieldId": 9, "options": {}, **more}
    schema = TableSchema.parse(json.dumps(document).encode())
    if column == "":
        ensure_consistent(schema, "schema/schema-7")
        return
    with pytest.raises(CorruptTable) as caught:
        ensure_consistent(schema, "schema/schema-7")
    assert (caught.value.code, caught.value.path, caught.value.column) == ("invalid-schema", "schema/schema-7", column)


def test_options_that_are_no_texts() -> None:
    """JSON of other writers has numbers and truth there."""
    document = {"version": 3, "id": 0, "fields": [field(0, "a")], "options": {"a": 1, "b": True, "c": 1.5, "d": "x"}}
    options = TableSchema.parse(json.dumps(document).encode()).options
    assert options == {"a": "1", "b": "true", "c": "1.5", "d": "x"}


@pytest.mark.parametrize(
    ("keys", "partitions", "named", "wanted"),
    [
        ((), (), "v", ("v",)),
        ((), (), "v,k", ("v", "k")),
        ((), (), "", ()),
        ((), (), " ", ()),
        (("k", "v"), (), "", ("k", "v")),
        (("k", "v"), (), "v", ("v",)),
        (("k", "p"), ("p",), "", ("k",)),
        (("k", "p"), ("p",), "k", ("k",)),
        (("k", "p"), ("p",), "p", "p"),
        ((), ("p",), "p", "p"),
        (("k",), (), "v", "v"),
        ((), (), "x", "x"),
    ],
)
def test_what_rows_are_divided_by(keys: Any, partitions: Any, named: str, wanted: tuple[str, ...] | str) -> None:
    fields = columns(k="INT NOT NULL", v="INT NOT NULL", p="INT NOT NULL")
    options = {"bucket": "2", "bucket-key": named}
    if isinstance(wanted, str):
        with pytest.raises(InvalidRequest) as caught:
            TableSchema(0, fields, 2, partitions, keys, options)
        assert (caught.value.code, caught.value.column) == ("invalid-key", wanted)
    else:
        assert TableSchema(0, fields, 2, partitions, keys, options).bucket_keys == wanted


def test_keys_that_cross_partitions() -> None:
    fields = columns(k="INT NOT NULL", p="INT NOT NULL", q="INT NOT NULL")
    for keys, partitions, crosses in (
        (("k", "p"), ("p",), False), (("k",), ("p",), True), (("k", "p"), ("p", "q"), True), (("k",), (), False),
        ((), ("p",), False), (("q", "k", "p"), ("p", "q"), False),
    ):  # fmt: skip
        assert TableSchema(0, fields, 2, partitions, keys).crosses_partitions is crosses
    with pytest.raises(InvalidRequest) as caught:
        TableSchema(0, fields, 2, ("p", "q"), ("q", "p"))
    assert (caught.value.code, caught.value.column) == ("invalid-key", "q")


def test_columns_of_large_values_keep_their_names() -> None:
    """Files of their own are told by the column's name."""
    evolving = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    schema = TableSchema.create(columns(a="INT", b="BLOB"), options=evolving)
    with pytest.raises(InvalidRequest) as caught:
        schema.apply([SchemaChange.rename_column("b", "c")])
    assert (caught.value.code, caught.value.column) == ("blob-column", "b")
    assert schema.apply([SchemaChange.rename_column("a", "c")]).names == ("c", "b")


@pytest.mark.parametrize(("said", "highest"), [(None, 5), (9, 9), (5, 5), (2, 2)])
def test_the_highest_number_is_the_files_word(said: int | None, highest: int) -> None:
    """What it gave once is given to nobody else: the column that had it is gone."""
    document = {"version": 3, "id": 0, "fields": [field(0, "a"), field(5, "b", ROW)], "options": {}}
    schema = TableSchema.parse(json.dumps({**document, "highestFieldId": said}).encode())
    assert schema.highest_field_id == highest
    assert schema.apply([SchemaChange.add_column("c", "INT")]).fields[-1].id == max(highest, 5) + 1


def test_a_file_says_nothing_of_a_comment_that_is_not_there() -> None:
    """Byte by byte as Java writes it: so far apart, and in this order."""
    schema = TableSchema(4, columns(a="INT"), 0, (), (), {"é": 'a"b'}, None, 5)
    assert schema.format().decode() == (
        '{\n  "version" : 3,\n  "id" : 4,\n  "fields" : [ {\n    "id" : 0,\n    "name" : "a",\n    "type" : "INT"\n  } ],\n'
        '  "highestFieldId" : 0,\n  "partitionKeys" : [ ],\n  "primaryKeys" : [ ],\n'
        '  "options" : {\n    "é" : "a\\"b"\n  },\n  "timeMillis" : 5\n}'
    )
    for comment in ("", "x"):
        said = json.loads(replace(schema, comment=comment).format())
        assert list(said)[-2:] == ["comment", "timeMillis"] and said["comment"] == comment
