"""The first protocol and metadata of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from alluvium.delta.description.create import NewTable, as_nullable, new_config, resolve_partition_columns, table_config
from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.features.log.checkpoint_protection import PROPERTY as PROTECTED_BEFORE
from alluvium.delta.features.registry import BY_NAME
from alluvium.delta.features.rows.clustering import clustering_domain
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import (
    BINARY,
    DATE,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    DataType,
    Field,
    Map,
    Struct,
)

SCHEMA = Struct((Field("id", LONG, False), Field("Day", DATE), Field("name", STRING)))


def test_a_plain_table_asks_for_no_more_than_reader_1_and_writer_2():
    config = new_config(SCHEMA, ["day"], {"delta.APPENDONLY": "true", "team": "me"})
    protocol, metadata = config.protocol, config.metadata
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert (protocol.reader_features, protocol.writer_features) == (None, None)
    assert metadata.partition_columns == config.partition_columns == ("Day",)
    assert metadata.configuration == {"delta.appendOnly": "true", "team": "me"}
    assert metadata.format.provider == "parquet"
    assert parse_schema(metadata.schema_string) == config.schema


def test_two_tables_have_two_ids():
    assert new_config(SCHEMA, [], {}).metadata.id != new_config(SCHEMA, [], {}).metadata.id


def test_every_column_becomes_nullable_at_every_depth():
    inner = Struct((Field("x", LONG, False, {"comment": "kept"}),))
    found = as_nullable(Struct((Field("a", Array(Map(STRING, inner, False), False), False),)))
    nullable = Struct((Field("x", LONG, True, {"comment": "kept"}),))
    assert found == Struct((Field("a", Array(Map(STRING, nullable, True), True), True),))


@pytest.mark.parametrize(
    "ntz",
    [TIMESTAMP_NTZ, Array(TIMESTAMP_NTZ), Map(STRING, TIMESTAMP_NTZ), Struct((Field("t", Array(TIMESTAMP_NTZ)),))],
)
def test_a_timestamp_without_zone_asks_for_table_features(ntz: DataType):
    """ "the table must have Reader Version 3 and Writer Version 7": and what writer 2 implied is listed then."""
    protocol = new_config(Struct((*SCHEMA.fields, Field("at", ntz))), [], {}).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ("timestampNtz",)
    assert set(protocol.writer_features or ()) == {"timestampNtz", "appendOnly", "invariants"}


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{a", "a}", "a(", "a)", "a\nb", "a\tb", "a=b", " "])
def test_characters_that_need_column_mapping_are_refused(name: str):
    nested = Struct((Field("ok", Array(Struct((Field(name, LONG),)))),))
    for schema in (Struct((Field(name, LONG),)), nested):
        with pytest.raises(InvalidRequest) as caught:
            new_config(schema, [], {})
        assert (caught.value.code, caught.value.column) == ("invalid-column-name", name)


@pytest.mark.parametrize("name", ["ä.ö", "a-b", "a%b", "a/b", "`a`", "日本", "a'b", '"'])
def test_other_characters_are_fine(name: str):
    assert new_config(Struct((Field(name, LONG),)), [], {}).schema.names == (name,)


def test_names_that_differ_in_case_only_are_refused():
    with pytest.raises(InvalidRequest) as caught:
        new_config(Struct((Field("a", LONG), Field("A", STRING))), [], {})
    assert (caught.value.code, caught.value.column) == ("duplicate-column", "A")


@pytest.mark.parametrize("nested", [Array(VOID), Map(STRING, VOID), Struct((Field("v", Array(VOID)),))])
def test_types_without_a_place_in_the_files_are_refused(nested: DataType):
    with pytest.raises(InvalidRequest) as caught:
        new_config(Struct((Field("id", LONG), Field("v", nested))), [], {})
    assert caught.value.code == "unsupported-type"
    assert (caught.value.column or "").startswith("v")


@pytest.mark.parametrize("data_type", [VOID, Struct((Field("x", LONG), Field("v", VOID)))])
def test_a_column_of_nulls_alone_is_a_column_of_the_table(data_type: DataType):
    assert new_config(Struct((Field("id", LONG), Field("v", data_type))), [], {}).schema.names == ("id", "v")


def test_partition_columns_resolve_without_regard_to_case():
    assert resolve_partition_columns(SCHEMA, ["NAME", "day"]) == ("name", "Day")


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["dat"], "unknown-column"),
        (["day", "Day"], "invalid-partition-column"),
        (["id", "Day", "name"], "invalid-partition-column"),
    ],
)
def test_partition_columns_must_be_some_of_the_columns(names: list[str], code: str):
    with pytest.raises(InvalidRequest) as caught:
        resolve_partition_columns(SCHEMA, names)
    assert caught.value.code == code


@pytest.mark.parametrize("data_type", [VOID, VARIANT, Array(LONG), Map(STRING, LONG), SCHEMA])
def test_types_that_partition_nothing(data_type: DataType):
    with pytest.raises(InvalidRequest) as caught:
        resolve_partition_columns(Struct((Field("c", data_type), Field("id", LONG))), ["c"])
    assert caught.value.code == "invalid-partition-column"


def test_binary_columns_partition_a_table():
    assert resolve_partition_columns(Struct((Field("c", BINARY), Field("id", LONG))), ["C"]) == ("c",)


@pytest.mark.parametrize(
    ("properties", "feature"),
    [
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
        ({"delta.columnMapping.mode": "name"}, "columnMapping"),
        ({"DELTA.enabledeletionvectors": "true"}, "deletionVectors"),
        ({"delta.enableDeletionVectors": " True "}, "deletionVectors"),
        ({"delta.constraints.positive": "id > 0"}, "checkConstraints"),
        ({"delta.enableRowTracking": "true"}, "rowTracking"),
        ({"delta.enableIcebergCompatV2": "true"}, "icebergCompatV2"),
    ],
)
def test_a_table_is_created_with_the_features_that_we_write_and_no_others(properties: dict[str, str], feature: str):
    if BY_NAME[feature].writable:
        assert feature in supported_features(new_config(SCHEMA, [], properties).protocol)
    else:
        with pytest.raises(UnsupportedFeature) as caught:
            new_config(SCHEMA, [], properties)
        assert feature in caught.value.features


def test_a_property_that_does_not_parse_makes_no_table():
    with pytest.raises(InvalidRequest) as caught:
        new_config(SCHEMA, [], {"delta.checkpointInterval": "0"})
    assert caught.value.code == "invalid-property"


@pytest.mark.parametrize("key", ["delta.generationExpression", "delta.identity.start", "delta.columnMapping.id"])
def test_what_a_column_was_in_another_table_is_left_behind(key: str):
    """A DataFrame read from a table brings its fields' metadata: the new table would not obey what they say."""
    inner = Struct((Field("x", LONG, True, {key: "1"}),))
    schema = Struct((Field("id", LONG), Field("g", Array(inner), True, {key: "1", "comment": "kept"})))
    found = new_config(schema, [], {}).schema
    assert found == Struct(
        (Field("id", LONG), Field("g", Array(Struct((Field("x", LONG),))), True, {"comment": "kept"}))
    )


def test_a_table_as_the_builder_wants_it():
    schema = Struct((Field("id", LONG, False, {"comment": "k"}), Field("s", Struct((Field("x", LONG, False),)))))
    config = table_config(NewTable(schema, properties={"comment": "from a property", "team": "me", "owner": "x"}))
    assert config.schema == schema
    assert config.metadata.description == "from a property"
    assert config.metadata.configuration == {"team": "me"}
    assert table_config(NewTable(schema, comment="said")).metadata.description == "said"


def test_a_table_that_replaces_another_keeps_what_protects_the_history():
    """The history stays, and with it versions that only some clients can read."""
    config = new_config(Struct((Field("x", LONG),)), [], {"delta.feature.checkpointProtection": "supported"})
    said = {PROTECTED_BEFORE: "7", "delta.appendOnly": "false"}
    before = replace(config, metadata=structs.replace(config.metadata, configuration=said))
    after = table_config(NewTable(Struct((Field("y", LONG),))), before)
    assert after.metadata.configuration == {PROTECTED_BEFORE: "7"}


def test_a_table_that_replaces_another_is_new_but_for_its_protocol():
    before = table_config(NewTable(SCHEMA, properties={"delta.minWriterVersion": "3", "x": "1"}, comment="c"))
    after = table_config(NewTable(SCHEMA, ["day"], {"y": "2"}), before)
    assert after.metadata.id != before.metadata.id
    assert after.protocol is before.protocol
    assert (after.metadata.configuration, after.metadata.description) == ({"y": "2"}, None)
    assert after.partition_columns == ("Day",)


@pytest.mark.parametrize(
    "nested", [Array(Struct((Field("x", LONG, False),))), Map(STRING, Struct((Field("x", LONG, False),)))]
)
def test_not_null_inside_arrays_and_maps_is_refused(nested: DataType):
    with pytest.raises(InvalidRequest) as caught:
        table_config(NewTable(Struct((Field("a", nested),))))
    assert caught.value.code == "nested-not-null"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (NewTable(SCHEMA, properties={"delta.dataSkippingStatsColumns": "zz"}), "unknown-column"),
        (NewTable(SCHEMA, ["Day"], cluster_by=["id"]), "contradicting-options"),
        (NewTable(SCHEMA, cluster_by=["zz"]), "unknown-clustering-column"),
        (NewTable(Struct((Field("m", Map(LONG, LONG)),)), cluster_by=["m"]), "invalid-clustering-column"),
        (
            NewTable(SCHEMA, cluster_by=["day"], properties={"delta.dataSkippingNumIndexedCols": "1"}),
            "invalid-clustering-column",
        ),
        (NewTable(SCHEMA, properties={"delta.logRetentionDuration": "interval 1 day"}), "contradicting-properties"),
        (NewTable(SCHEMA, properties={"delta.feature.nope": "supported"}), "unknown-feature"),
    ],
)
def test_tables_that_contradict_themselves(wanted: NewTable, code: str):
    with pytest.raises(InvalidRequest) as caught:
        table_config(wanted)
    assert caught.value.code == code


def test_clustering_is_a_domain_and_two_features():
    domain = clustering_domain([("a",), ("s", "x")])
    # Measured on delta-spark 4.4.
    assert domain.configuration == '{"clusteringColumns":[["a"],["s","x"]],"domainName":"delta.clustering"}'
    wanted = NewTable(SCHEMA, cluster_by=["day"])
    if BY_NAME["clustering"].writable and BY_NAME["domainMetadata"].writable:
        assert {"clustering", "domainMetadata"} <= supported_features(table_config(wanted).protocol)
    else:
        with pytest.raises(UnsupportedFeature) as caught:
            table_config(wanted)
        assert {"clustering", "domainMetadata"} & set(caught.value.features)


def test_an_identity_column_partitions_nothing():
    numbered = Field("n", LONG, True, {"delta.identity.start": 1, "delta.identity.step": 1})
    with pytest.raises(InvalidRequest, match="identity column") as caught:
        resolve_partition_columns(Struct((numbered, Field("id", LONG))), ["N"])
    assert (caught.value.code, caught.value.column) == ("invalid-partition-column", "N")
