"""What both versions of Iceberg compatibility ask. Specification: "Iceberg Compatibility V1" and "V2"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import make_files
from iceberg_tables import SCHEMA, config_of, enabling, refusal
from msgspec import structs
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.iceberg import iceberg_compat_v1, iceberg_compat_v2
from alluvium.delta.features.iceberg.iceberg_compat import ensure_type_changes, ensure_types, types_within
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.delta.write.write import plan_write
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.schema.ddl import parse_ddl_type
from alluvium.schema.types import (
    DOUBLE,
    LONG,
    Array,
    Field,
    Map,
    Struct,
)
from alluvium.storage.open import open_store

pytestmark = pytest.mark.parametrize("version", [1, 2])
FEATURES = {1: iceberg_compat_v1.FEATURE, 2: iceberg_compat_v2.FEATURE}


def test_a_new_table_maps_its_columns(version: int) -> None:
    """ "the table must be on Reader Version = 2"; "Require that Column Mapping be enabled" """
    config = config_of(version)
    assert config.mapping_mode == "name"
    assert (config.protocol.min_reader_version, config.protocol.min_writer_version) == (2, 7)
    assert {f"icebergCompatV{version}", "columnMapping"} <= set(config.protocol.writer_features or ())
    assert config_of(version, **{"delta.columnMapping.mode": "id"}).mapping_mode == "id"


def test_without_column_mapping(version: int) -> None:
    """ "Require that Column Mapping be enabled and set to either `name` or `id` mode" """
    assert "not mapped" in refusal(config_of(version, **{"delta.columnMapping.mode": "none"})).message
    existing = set_properties(table_config(NewTable(SCHEMA)), {enabling(version): "true"}).config
    assert "not mapped" in refusal(existing).message
    both = set_properties(
        table_config(NewTable(SCHEMA)), {enabling(version): "true", "delta.columnMapping.mode": "name"}
    ).config
    plan_write(both, "url")


def test_partition_columns_are_materialized(version: int) -> None:
    """ "Require that partition column values are materialized" """
    assert plan_write(config_of(version, partition_by=("p",)), "url").materialize_partitions
    idle = set_properties(config_of(version, partition_by=("p",)), {enabling(version): "false"}).config
    assert not plan_write(idle, "url").materialize_partitions


def test_partitioning_keeps_its_names(version: int) -> None:
    """ "Block replacing partitioned tables with a differently-named partition spec" """
    config = config_of(version, partition_by=("p",))
    for partition_by in ((), ("id",)):
        with pytest.raises(InvalidRequest) as caught:
            table_config(NewTable(SCHEMA, partition_by, {enabling(version): "true"}), config)
        assert caught.value.code == "iceberg-compat"
    other = Struct((Field("id", LONG), Field("p", LONG)))
    assert table_config(NewTable(other, ["p"], {enabling(version): "true"}), config).partition_columns == ("p",)
    assert table_config(NewTable(SCHEMA, ["p"], {enabling(version): "true"}), config_of(version)).partition_columns == (
        "p",
    )


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("byte", "long", True),
        ("float", "double", True),
        ("decimal(5,2)", "decimal(9,2)", True),
        ("decimal(5,2)", "decimal(9,3)", False),
        ("short", "double", False),
        ("integer", "decimal(12,0)", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_type_changes(version: int, source: str, target: str, allowed: bool) -> None:
    """ "Writers must reject applying type changes not supported by Iceberg V2" """
    kind = parse_ddl_type({"long": "bigint"}.get(target, target)).type
    changes = {"delta.typeChanges": [{"fromType": source, "toType": target}]}
    config = config_of(version, Struct((Field("c", kind, True, changes),)))
    if allowed:
        plan_write(config, "url")
    else:
        assert "was changed" in refusal(config).message


def test_files_must_tell_their_rows(version: int, tmp_path: Path) -> None:
    """ "Require that all `AddFile`s committed to the table have the `numRecords` statistic populated" """
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store), [1, 2])
    files = load_snapshot(store).files
    context = CommitContext(config_of(version))
    assert FEATURES[version].on_commit(Actions(added=files), context).added is files
    place = files.schema.get_field_index("stats")
    silent = files.set_column(place, files.schema.field(place), pa.nulls(files.num_rows, pa.string()))
    with pytest.raises(InvalidRequest) as caught:
        FEATURES[version].on_commit(Actions(added=silent), context)
    assert caught.value.code == "iceberg-compat"


def test_a_refused_table_is_not_created(version: int, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    config = config_of(version, **{"delta.columnMapping.mode": "none"})
    with pytest.raises(InvalidRequest):
        DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    assert not (tmp_path / "t").exists()
    DeltaTarget(store, config_of(version), None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    assert alluvium.open(str(tmp_path / "t")).version == 0


@pytest.mark.parametrize("text", ["true", "TRUE", " true "])
def test_the_property_counts_in_any_case(version: int, text: str) -> None:
    assert config_of(version, **{enabling(version): text}).mapping_mode == "name"
    assert plan_write(config_of(version, **{enabling(version): text}), "url").materialize_partitions
    for other in ("false", " FALSE "):
        idle = config_of(version, **{enabling(version): other})
        assert idle.mapping_mode == "none" and not plan_write(idle, "url").materialize_partitions


def test_what_is_asked_of_tables_that_are_not_new(version: int) -> None:
    """Column mapping comes with a new table alone; a table that takes another's place is new."""
    feature = FEATURES[version]
    assert feature.on_change is not None
    before = table_config(NewTable(SCHEMA))
    asked = structs.replace(before.metadata, configuration={enabling(version): "true"})
    assert feature.on_change(asked, before) is asked
    for other in (None, table_config(NewTable(SCHEMA))):
        mapped = feature.on_change(asked, other).configuration
        assert mapped == {enabling(version): "true", "delta.columnMapping.mode": "name"}
    plain = before.metadata
    assert feature.on_change(plain, None) is plain
    # Who is not to be compatible may be partitioned as he likes.
    by_id = table_config(NewTable(SCHEMA, ["id"]))
    assert feature.on_change(plain, by_id) is plain
    with pytest.raises(InvalidRequest) as caught:
        feature.on_change(asked, by_id)
    assert "partitioned by id cannot become one that is partitioned by nothing" in caught.value.message


def test_commits_are_looked_at_where_the_feature_is_obeyed(version: int) -> None:
    feature, config = FEATURES[version], config_of(version)
    assert feature.on_commit is not None
    broken = config_of(version, **{"delta.columnMapping.mode": "none"})
    for actions in (Actions(metadata=broken.metadata), Actions(protocol=broken.protocol)):
        with pytest.raises(InvalidRequest):
            feature.on_commit(actions, CommitContext(broken, config))
    # The description stays what it was, so that nobody looks.
    nothing = Actions()
    assert feature.on_commit(nothing, CommitContext(broken, config)) is nothing
    silent = Actions(added=make_files({"path": "a"}, {"path": "b", "stats": "{}"}))
    with pytest.raises(InvalidRequest) as caught:
        feature.on_commit(silent, CommitContext(config))
    assert "the file a does not say" in caught.value.message and f"(V{version})" in caught.value.message
    # A protocol that does not have the feature obliges nobody, whatever the property says.
    other = replace(
        config, protocol=Protocol(min_reader_version=2, min_writer_version=7, writer_features=("columnMapping",))
    )
    assert feature.on_commit(silent, CommitContext(other)) is silent
    assert not plan_write(other, "url").materialize_partitions


@pytest.mark.parametrize(
    ("where", "column"),
    [("c", "c"), ("s", "s.x"), ("element", "c.element.x"), ("value", "c.value.x")],
)
def test_changes_of_types_at_any_depth(version: int, where: str, column: str) -> None:
    changes = {
        "delta.typeChanges": [{"fromType": "byte", "toType": "short"}, {"fromType": "short", "toType": "double"}]
    }
    inner = Struct((Field("x", DOUBLE, True, changes),))
    schemas = {
        "c": Field("c", DOUBLE, True, changes),
        "s": Field("s", inner),
        "element": Field("c", Array(inner)),
        "value": Field("c", Map(LONG, inner)),
    }
    config = config_of(version, Struct((Field("id", LONG), schemas[where])))
    with pytest.raises(InvalidRequest) as caught:
        ensure_type_changes(config, version)
    assert (
        caught.value.column == column and f"of {column!r} was changed from smallint to double" in caught.value.message
    )
    odd = {"delta.typeChanges": ["x"]}, {"delta.typeChanges": "x"}, {}
    for metadata in odd:
        ensure_type_changes(replace(config, schema=Struct((Field("c", DOUBLE, True, metadata),))), version)


def test_types_come_with_their_paths_parents_first(version: int) -> None:
    inner = Struct((Field("x", LONG),))
    found = [
        ".".join(path) for path, _ in types_within(Struct((Field("a", Map(inner, Array(LONG))), Field("b", inner))))
    ]
    assert found == ["a", "a.key", "a.key.x", "a.value", "a.value.element", "b", "b.x"]
    assert list(types_within(LONG)) == [] and version in FEATURES


def test_columns_of_another_type_are_named(version: int) -> None:
    config = config_of(version, Struct((Field("id", LONG), Field("s", Struct((Field("x", DOUBLE),))))))
    ensure_types(config, version, lambda _: True)
    with pytest.raises(InvalidRequest) as caught:
        ensure_types(config, version, lambda data_type: data_type != DOUBLE)
    assert caught.value.column == "s.x" and "the type of 's.x' is double" in caught.value.message
    assert caught.value.hint == f"leave the column out; or set {enabling(version)} to false"
