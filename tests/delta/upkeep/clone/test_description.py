"""What a clone says of itself: properties, protocol, ids, domains."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from mapped_table import MAPPED, mapped
from plain_writer import SCHEMA, commit_rows, open_target
from vacuumed_tables import newest

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.features.rows.clustering import DOMAIN, clustering_domain
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Format, Metadata, Protocol
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.clone.description import cloned_config
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Describe, Operation, ReadScope, Replace
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import LONG, Struct
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def config_of(**properties: str) -> TableConfig:
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return table_config(NewTable(SCHEMA, properties=given, comment="the source"))


def test_properties_are_the_sources_and_those_that_are_given():
    source = config_of(delta__appendOnly="true", mine="1", other="2")
    found = cloned_config(source, None, {"mine": "3", "new": "4", "DELTA.APPENDONLY": "false"})
    assert found.metadata.configuration == {"delta.appendOnly": "false", "mine": "3", "other": "2", "new": "4"}
    assert found.metadata.id != source.metadata.id
    assert (found.metadata.description, found.metadata.name) == (None, None)
    assert found.metadata.created_time == source.metadata.created_time
    assert found.protocol == source.protocol


def test_a_table_that_is_replaced_keeps_its_id_comment_and_what_it_supports():
    source = config_of(mine="1")
    existing = config_of(theirs="1", delta__feature__deletionVectors="supported")
    found = cloned_config(source, existing, {})
    assert found.metadata.configuration == {"mine": "1"}
    assert (found.metadata.id, found.metadata.description) == (existing.metadata.id, "the source")
    assert "deletionVectors" in supported_features(found.protocol)


def test_a_protocol_is_the_sources_as_it_stands():
    metadata = config_of().metadata
    for protocol in (Protocol(min_reader_version=1, min_writer_version=1), MAPPED):
        assert cloned_config(parse_config(protocol, metadata), None, {}).protocol == protocol
    found = cloned_config(
        config_of(), None, {"delta.enableRowTracking": "true", "delta.feature.variantType": "supported"}
    )
    assert {"rowTracking", "domainMetadata", "variantType"} <= supported_features(found.protocol)
    found = cloned_config(config_of(), None, {"delta.minWriterVersion": "4"})
    assert (found.protocol.min_reader_version, found.protocol.min_writer_version) == (1, 4)


def mapped_config(highest: int, mode: str = "name") -> TableConfig:
    metadata = Metadata(
        id="m",
        format=Format(provider="parquet"),
        schema_string=format_schema(Struct((mapped("a", LONG, "col-1", 1),))),
        partition_columns=(),
        configuration={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": str(highest)},
    )
    return parse_config(MAPPED, metadata)


def test_ids_of_columns_that_were_dropped_are_not_given_again():
    key = "delta.columnMapping.maxColumnId"
    assert cloned_config(mapped_config(7), None, {}).metadata.configuration[key] == "7"
    assert cloned_config(mapped_config(7), mapped_config(9), {}).metadata.configuration[key] == "9"
    assert cloned_config(mapped_config(7), mapped_config(3), {}).metadata.configuration[key] == "7"


def test_another_mapping_is_refused():
    for source, existing, properties in (
        (config_of(), None, {"delta.columnMapping.mode": "name"}),
        (config_of(), mapped_config(3), {}),
        (mapped_config(3), config_of(), {}),
        (mapped_config(3), mapped_config(3, "id"), {}),
    ):
        with pytest.raises(InvalidRequest) as caught:
            cloned_config(source, existing, properties)
        assert caught.value.code == "mapping-mode-change"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("delta.foo", "1", "unknown-property"),
        ("delta.appendOnly", "perhaps", "invalid-property"),
        ("delta.columnMapping.maxColumnId", "7", "reserved-property"),
        ("delta.dataSkippingStatsColumns", "nope", "unknown-column"),
        ("delta.feature.catalogManaged", "supported", "feature-not-by-name"),
        ("delta.logRetentionDuration", "interval 1 hour", "contradicting-properties"),
    ],
)
def test_properties_that_no_table_may_have(name: str, value: str, code: str):
    with pytest.raises((InvalidRequest, UnsupportedFeature)) as caught:
        cloned_config(config_of(), None, {name: value})
    assert caught.value.code == code


def test_what_a_source_says_is_not_judged():
    metadata = msgspec.structs.replace(
        config_of().metadata,
        configuration={"delta.logRetentionDuration": "interval 1 hour", "delta.dataSkippingStatsColumns": "gone"},
    )
    source = parse_config(config_of().protocol, metadata)
    assert cloned_config(source, None, {}).metadata.configuration == metadata.configuration


def test_what_names_versions_of_the_source_is_left_out():
    source = config_of(
        delta__enableInCommitTimestamps="true",
        delta__inCommitTimestampEnablementVersion="3",
        delta__inCommitTimestampEnablementTimestamp="5",
    )
    assert cloned_config(source, None, {}).metadata.configuration == {"delta.enableInCommitTimestamps": "true"}


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_row_ids_are_given_anew(tmp_path: Path, shallow: bool):
    """Ids that files of the source carry under its column could be those of other rows of the clone."""
    store, target = open_store(tmp_path / "s"), open_store(tmp_path / "c")
    config = config_of(delta__enableRowTracking="true")
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    for n in (1, 2):
        commit_rows(open_target(store), [n, 10 * n])
    commit_rows(open_target(store), [5], replace=Replace())
    commit_rows(open_target(store), [6, 7])
    clone(newest(store), target, None, CloneRequest("s", shallow))
    rows = alluvium.open(str(tmp_path / "c")).to_arrow(columns=["id", "_row_id", "_row_commit_version"]).to_pylist()
    assert sorted(row["_row_id"] for row in rows) == [0, 1, 2]
    assert {row["_row_commit_version"] for row in rows} == {0}
    commit_rows(open_target(store), [8])
    clone(newest(store), target, newest(target), CloneRequest("s", shallow, replace=True))
    again = alluvium.open(str(tmp_path / "c")).to_arrow(columns=["id", "_row_id", "_row_commit_version"]).to_pylist()
    assert sorted(map(str, rows)) == sorted(str(row) for row in again if row["id"] != 8)
    assert [(row["_row_id"], row["_row_commit_version"]) for row in again if row["id"] == 8] == [(3, 1)]
    ours, theirs = (newest(s).config.metadata.configuration for s in (target, store))
    for name in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION):
        assert ours[name] != theirs[name]


def test_clustering_goes_along_and_other_domains_stay(tmp_path: Path):
    store = MemoryStore(tmp_path.name, "s")
    config = table_config(NewTable(SCHEMA, cluster_by=("id",)))
    domain = clustering_domain([("id",)])
    DeltaTarget(store, config, None, domains=(domain,)).commit(Describe(Operation("CREATE"), ReadScope.nothing()))
    plain, target = MemoryStore(tmp_path.name, "p"), MemoryStore(tmp_path.name, "c")
    commit_rows(open_target(plain), [1])
    clone(newest(store), target, None, CloneRequest("s", True))
    assert newest(target).state.domains == {DOMAIN: domain}
    clone(newest(plain), target, newest(target), CloneRequest("p", True, replace=True))
    assert newest(target).state.domains == {DOMAIN: clustering_domain([])}
