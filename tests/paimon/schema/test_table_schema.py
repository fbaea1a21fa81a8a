"""Schema files by the sentences of `paimon-schema.rst`."""

from __future__ import annotations

import json

import pytest

from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.paimon.schema.table_schema import ensure_consistent

EXAMPLE = {
    "version": 3,
    "id": 0,
    "fields": [
        {"id": 0, "name": "order_id", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "order_name", "type": "STRING"},
        {"id": 2, "name": "order_user_id", "type": "BIGINT"},
        {"id": 3, "name": "order_shop_id", "type": "BIGINT"},
    ],
    "highestFieldId": 3,
    "partitionKeys": [],
    "primaryKeys": ["order_id"],
    "options": {"bucket": "5"},
    "comment": "",
    "timeMillis": 1720496663041,
}


def file(*absent: str, **changed: object) -> bytes:
    document = {key: value for key, value in {**EXAMPLE, **changed}.items() if key not in absent}
    return json.dumps(document).encode()


def columns(**types: object) -> tuple[DataField, ...]:
    return number_fields(DataField(0, name, parse_type(t)) for name, t in types.items())


def test_the_example() -> None:
    """ "Schema File is JSON" with `fields`, `partitionKeys`, `primaryKeys`, `options`."""
    schema = TableSchema.parse(file())
    assert (schema.version, schema.id, schema.highest_field_id, schema.comment) == (3, 0, 3, "")
    assert schema.names == ("order_id", "order_name", "order_user_id", "order_shop_id")
    assert (schema.primary_keys, schema.bucket_keys, schema.partition_keys) == (("order_id",), ("order_id",), ())
    assert json.loads(schema.format()) == EXAMPLE
    assert schema.find("order_name") == schema.by_id[1]


@pytest.mark.parametrize(
    ("version", "options", "expected"),
    [
        # "Version 1: should put `bucket -> 1` to `options` if there is no `bucket` key."
        # "Versions 1 & 2: should put `file.format -> orc` to `options` if there is no `file.format` key."
        (None, {}, {"bucket": "1", "file.format": "orc"}),
        (1, {}, {"bucket": "1", "file.format": "orc"}),
        (1, {"bucket": "3", "file.format": "avro"}, {"bucket": "3", "file.format": "avro"}),
        (2, {}, {"file.format": "orc"}),
        (2, {"file.format": "parquet"}, {"file.format": "parquet"}),
        (3, {}, {}),
    ],
)
def test_compatibility(version: int | None, options: dict[str, str], expected: dict[str, str]) -> None:
    data = file("version", options=options) if version is None else file(version=version, options=options)
    schema = TableSchema.parse(data)
    assert schema.options == expected
    assert schema.version == (version or 1)


def test_lists_that_old_writers_left_out() -> None:
    schema = TableSchema.parse(
        file("partitionKeys", "primaryKeys", "options", "comment", "timeMillis", "highestFieldId")
    )
    assert (schema.partition_keys, schema.primary_keys, schema.options) == ((), (), {})
    assert (schema.comment, schema.time_millis, schema.highest_field_id) == (None, 0, 3)


def test_trimmed_keys() -> None:
    schema = TableSchema.parse(
        file(primaryKeys=["order_id", "order_name"], partitionKeys=["order_name"], options={"bucket-key": "order_id"})
    )
    assert schema.trimmed_primary_keys == ("order_id",)
    assert schema.bucket_keys == ("order_id",)
    assert not schema.crosses_partitions


@pytest.mark.parametrize(
    ("data", "column"),
    [
        (b"", None),
        (b"[]", None),
        (b'{"id": 0, "comment": "\xb5"}', None),
        (b'{"id": 0', None),
        (file("fields"), None),
        (file("id"), None),
        (file(id="x"), None),
        (file(id=-1), None),
        (file(version=0), None),
        (file(fields=["a"]), None),
        # "`id`: int, column id"
        (file(fields=[{"name": "a", "type": "INT"}]), "a"),
        (file(fields=[{"id": "0", "name": "a", "type": "INT"}]), "a"),
        (file(fields=[{"id": True, "name": "a", "type": "INT"}]), "a"),
        # "`name`: string, column name."
        (file(fields=[{"id": 0, "type": "INT"}]), None),
        # "`type`: data type, very similar to SQL type string."
        (file(fields=[{"id": 0, "name": "a"}]), "a"),
        (file(fields=[{"id": 0, "name": "a", "type": "FOO"}]), "a"),
        (file(fields=[{"id": 0, "name": "a", "type": "DECIMAL(39, 2)"}]), "a"),
        (file(fields=[{"id": 0, "name": "a", "type": {"type": "ARRAY", "element": "FOO"}}]), "a.element"),
        (
            file(fields=[{"id": 0, "name": "a", "type": {"type": "ROW", "fields": [{"name": "b", "type": "INT"}]}}]),
            "a.b",
        ),
        # "`description`: string."
        (file(fields=[{"id": 0, "name": "a", "type": "INT", "description": 5}]), "a"),
        (file(primaryKeys="order_id"), None),
        (file(primaryKeys=["order_id"], partitionKeys=["order_id"]), "order_id"),
        (file(options={"bucket": "many"}), None),
        (file(options={"bucket-key": "zz"}), "zz"),
        (file(options={"bucket": None}), None),
    ],
)
def test_damaged_files(data: bytes, column: str | None) -> None:
    with pytest.raises(CorruptTable) as error:
        TableSchema.parse(data, "schema/schema-7")
    assert (error.value.code, error.value.path, error.value.column) == ("invalid-schema", "schema/schema-7", column)


def test_types_that_nest_without_end() -> None:
    nested: object = "INT"
    for _ in range(400):
        nested = {"type": "ARRAY", "element": nested}
    with pytest.raises(CorruptTable):
        TableSchema.parse(file(fields=[{"id": 0, "name": "a", "type": nested}]))
    with pytest.raises(CorruptTable):
        TableSchema.parse(file(fields=[{"id": 0, "name": "a", "type": "VECTOR<" * 5000}]))


def test_newer_files_are_not_guessed_at() -> None:
    with pytest.raises(UnsupportedFeature) as error:
        TableSchema.parse(file(version=4), "schema/schema-0")
    assert (error.value.code, error.value.path) == ("unsupported-schema-version", "schema/schema-0")


def test_maps_whose_keys_are_columns_of_files_are_refused() -> None:
    """Of Paimon 2: the files hold no map at all."""
    with pytest.raises(UnsupportedFeature) as error:
        TableSchema.parse(file(options={"fields.a.b.map.storage-layout": "Shared-Shredding"}), "schema/schema-0")
    assert (error.value.code, error.value.column) == ("unsupported-type", "a.b")
    assert error.value.features == ("fields.a.b.map.storage-layout = Shared-Shredding",)
    plain = TableSchema.parse(file(options={"fields.a.map.storage-layout": "default"}))
    with pytest.raises(UnsupportedFeature) as error:
        plain.apply([SchemaChange.set_option("fields.a.map.storage-layout", "shared-shredding")])
    assert (error.value.code, error.value.column) == ("unsupported-type", "a")


@pytest.mark.parametrize(
    "fields",
    [
        [{"id": 0, "name": "order_id", "type": "INT"}, {"id": 0, "name": "b", "type": "INT"}],
        [{"id": 0, "name": "order_id", "type": "INT"}, {"id": 1, "name": "order_id", "type": "INT"}],
        [{"id": 0, "name": "b", "type": "INT"}],
    ],
)
def test_files_that_parse_but_do_not_say_which_column_is_which(fields: list[object]) -> None:
    schema = TableSchema.parse(file(fields=fields))
    with pytest.raises(CorruptTable) as error:
        ensure_consistent(schema, "schema/schema-0")
    assert error.value.path == "schema/schema-0"


def test_creation_numbers_columns_and_what_is_in_them() -> None:
    row = {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}, {"id": 9, "name": "y", "type": "INT"}]}
    schema = TableSchema.create(columns(a="INT", r=row, b="INT"), primary_keys=["a"])
    assert [f.id for f in schema.fields] == [0, 1, 4]
    assert [f.id for f in schema.fields[1].type.fields] == [2, 3]
    assert schema.highest_field_id == 4
    assert str(schema.fields[0].type) == "INT NOT NULL"


def test_ids_are_never_used_again() -> None:
    """ "Column id, automatic increment; it is used for schema evolution." """
    schema = TableSchema.create(columns(a="INT", b="INT"))
    dropped = schema.apply([SchemaChange.drop_column("b")])
    again = dropped.apply([SchemaChange.add_column("b", "INT")])
    assert (dropped.highest_field_id, again.fields[1].id, again.highest_field_id) == (1, 2, 2)
    assert (again.id, again.version) == (2, 3)


def test_ids_are_never_used_again_even_where_the_file_says_too_little() -> None:
    schema = TableSchema.parse(file(highestFieldId=0)).apply([SchemaChange.add_column("c", "INT")])
    assert schema.fields[-1].id == 4


def test_keys_may_stand_in_options() -> None:
    schema = TableSchema.create(columns(a="INT", b="INT"), options={"primary-key": "a, b", "partition": "b"})
    assert (schema.primary_keys, schema.partition_keys, schema.options) == (("a", "b"), ("b",), {})


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"primary_keys": ["zz"]}, "invalid-key"),
        ({"partition_keys": ["zz"]}, "invalid-key"),
        ({"primary_keys": ["a", "a"]}, "invalid-key"),
        ({"primary_keys": ["a"], "options": {"primary-key": "b"}}, "invalid-key"),
        ({"primary_keys": ["a"], "partition_keys": ["a"]}, "invalid-key"),
        ({"primary_keys": ["l"]}, "invalid-key"),
        ({"partition_keys": ["l"]}, "invalid-key"),
        ({"options": {"bucket": "2"}}, "invalid-bucket"),
        ({"options": {"bucket": "0"}}, "invalid-bucket"),
        ({"options": {"bucket-key": "a"}}, "invalid-bucket"),
        ({"options": {"bucket": "2", "bucket-key": "l"}}, "invalid-bucket"),
        ({"options": {"changelog-producer": "input"}}, "invalid-table-option"),
        ({"options": {"changelog-producer": "foo"}}, "invalid-table-option"),
        ({"options": {"merge-engine": "foo"}}, "invalid-table-option"),
        ({"options": {"sequence.field": "zz"}}, "invalid-table-option"),
        ({"options": {"sequence.field": "a,a"}}, "invalid-table-option"),
        ({"options": {"fields.zz.aggregate-function": "sum"}}, "invalid-table-option"),
        ({"options": {"file.format": "foo"}}, "invalid-table-option"),
        ({"options": {"snapshot.num-retained.min": "0"}}, "invalid-table-option"),
        ({"options": {"snapshot.num-retained.min": "9", "snapshot.num-retained.max": "8"}}, "invalid-table-option"),
        ({"options": {"partition.expiration-time": "1 d"}}, "invalid-table-option"),
        ({"options": {"row-tracking.enabled": "yes"}}, "invalid-table-option"),
        ({"options": {"data-evolution.enabled": "true"}}, "invalid-table-option"),
        ({"options": {"row-tracking.enabled": "true"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"rowkind.field": "zz"}}, "invalid-table-option"),
        ({"options": {"scan.mode": "from-snapshot"}}, "invalid-table-option"),
        ({"options": {"scan.mode": "latest", "scan.snapshot-id": "1"}}, "invalid-table-option"),
        ({"options": {"record-level.time-field": "b"}}, "invalid-table-option"),
        ({"options": {"vector-field": "a"}}, "invalid-table-option"),
        ({"options": {"chain-table.enabled": "true"}}, "invalid-table-option"),
        ({"options": {"pk-clustering-override": "true"}}, "invalid-table-option"),
        ({"options": {"clustering.incremental": "true"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"file-index.bitmap.columns": "zz"}}, "invalid-table-option"),
        ({"options": {"merge-engine": "first-row", "sequence.field": "b"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"sequence.field": "b"}, "primary_keys": ["a"], "partition_keys": ["b"]}, "invalid-table-option"),
        ({"options": {"merge-engine": "aggregation", "fields.b.aggregate-function": "summ"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"merge-engine": "partial-update", "fields.b.aggregate-function": "sum"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"merge-engine": "partial-update", "fields.b.sequence-group": "zz"}, "primary_keys": ["a"]}, "invalid-table-option"),
        ({"options": {"deletion-vectors.enabled": "true", "merge-engine": "first-row"}, "primary_keys": ["a"]}, "invalid-table-option"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be(arguments: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        TableSchema.create(columns(a="INT", b="STRING", l={"type": "ARRAY", "element": "INT"}), **arguments)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("types", "options", "code"),
    [
        ({"_KEY_a": "INT"}, {}, "invalid-column-name"),
        ({"_SEQUENCE_NUMBER": "INT"}, {}, "invalid-column-name"),
        ({"rowkind": "INT"}, {}, "invalid-column-name"),
        ({"a": "TIMESTAMP(9)"}, {"file.format": "avro"}, "unsupported-by-format"),
        ({"a": "VARIANT"}, {"file.format": "orc"}, "unsupported-by-format"),
        ({"a": "BLOB", "b": "INT"}, {}, "invalid-table-option"),
    ],
)
def test_columns_that_cannot_be(types: dict[str, str], options: dict[str, str], code: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        TableSchema.create(columns(**types), options=options)
    assert error.value.code == code


def test_two_columns_of_one_name() -> None:
    with pytest.raises(InvalidRequest) as error:
        TableSchema.create((*columns(a="INT"), *columns(a="INT")))
    assert (error.value.code, error.value.column) == ("duplicate-column", "a")
