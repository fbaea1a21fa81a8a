"""icebergCompatV1. Specification: "Iceberg Compatibility V1"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.actions import Actions
from alluvium.delta.config import TableConfig
from alluvium.delta.create import NewTable, table_config
from alluvium.delta.evolve import add_feature, set_properties
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.iceberg_compat_v1 import ensure_compatible, on_commit
from alluvium.delta.snapshot import load_snapshot
from alluvium.delta.target import DeltaTarget
from alluvium.delta.write import plan_write
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import FileChanges, Operation
from alluvium.schema.ddl import parse_ddl_type
from alluvium.schema.types import (
    LONG,
    STRING,
    Array,
    DataType,
    Field,
    Map,
    Struct,
)
from alluvium.storage.open import open_store

ENABLED = "delta.enableIcebergCompatV1"
SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))


def config_of(schema: Struct = SCHEMA, partition_by: tuple[str, ...] = (), **more: str) -> TableConfig:
    return table_config(NewTable(schema, partition_by, {ENABLED: "true", **more}))


def refusal(config: TableConfig) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        plan_write(config, "url")
    assert caught.value.code == "iceberg-compat" and ENABLED in (caught.value.hint or "")
    return caught.value


def test_a_new_table_maps_its_columns() -> None:
    """ "the table must be on Reader Version = 2"; "Require that Column Mapping be enabled" """
    config = config_of()
    assert config.mapping_mode == "name"
    assert (config.protocol.min_reader_version, config.protocol.min_writer_version) == (2, 7)
    assert {"icebergCompatV1", "columnMapping"} <= set(config.protocol.writer_features or ())
    assert config_of(**{"delta.columnMapping.mode": "id"}).mapping_mode == "id"


def test_without_column_mapping() -> None:
    """ "Require that Column Mapping be enabled and set to either `name` or `id` mode" """
    assert "not mapped" in refusal(config_of(**{"delta.columnMapping.mode": "none"})).message
    existing = set_properties(table_config(NewTable(SCHEMA)), {ENABLED: "true"}).config
    assert "not mapped" in refusal(existing).message
    both = set_properties(table_config(NewTable(SCHEMA)), {ENABLED: "true", "delta.columnMapping.mode": "name"}).config
    ensure_compatible(both)


def test_partition_columns_are_materialized() -> None:
    """ "Require that partition column values are materialized" """
    assert plan_write(config_of(partition_by=("p",)), "url").materialize_partitions
    idle = set_properties(config_of(partition_by=("p",)), {ENABLED: "false"}).config
    assert not plan_write(idle, "url").materialize_partitions


def test_partitioning_keeps_its_names() -> None:
    """ "Block replacing partitioned tables with a differently-named partition spec" """
    config = config_of(partition_by=("p",))
    for partition_by in ((), ("id",)):
        with pytest.raises(InvalidRequest) as caught:
            table_config(NewTable(SCHEMA, partition_by, {ENABLED: "true"}), config)
        assert caught.value.code == "iceberg-compat"
    other = Struct((Field("id", LONG), Field("p", LONG)))
    assert table_config(NewTable(other, ["p"], {ENABLED: "true"}), config).partition_columns == ("p",)
    assert table_config(NewTable(SCHEMA, ["p"], {ENABLED: "true"}), config_of()).partition_columns == ("p",)


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
def test_type_changes(source: str, target: str, allowed: bool) -> None:
    """ "Writers must reject applying type changes not supported by Iceberg V2" """
    kind = parse_ddl_type({"long": "bigint"}.get(target, target)).type
    changes = {"delta.typeChanges": [{"fromType": source, "toType": target}]}
    config = config_of(Struct((Field("c", kind, True, changes),)))
    if allowed:
        ensure_compatible(config)
    else:
        assert "was changed" in refusal(config).message


def test_files_must_tell_their_rows(tmp_path: Path) -> None:
    """ "Require that all `AddFile`s committed to the table have the `numRecords` statistic populated" """
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store), [1, 2])
    files = load_snapshot(store).files
    context = CommitContext(config_of())
    assert on_commit(Actions(added=files), context).added is files
    place = files.schema.get_field_index("stats")
    silent = files.set_column(place, files.schema.field(place), pa.nulls(files.num_rows, pa.string()))
    with pytest.raises(InvalidRequest) as caught:
        on_commit(Actions(added=silent), context)
    assert caught.value.code == "iceberg-compat"


def test_a_refused_table_is_not_created(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    config = config_of(**{"delta.columnMapping.mode": "none"})
    with pytest.raises(InvalidRequest):
        DeltaTarget(store, config, None).commit(FileChanges(None, (), Operation("CREATE TABLE")))
    assert not (tmp_path / "t").exists()
    DeltaTarget(store, config_of(), None).commit(FileChanges(None, (), Operation("CREATE TABLE")))
    assert alluvium.open(str(tmp_path / "t")).version == 0


@pytest.mark.parametrize("data_type", [Array(LONG), Map(STRING, LONG), Struct((Field("x", Array(LONG)),))], ids=str)
def test_types(data_type: DataType) -> None:
    """ "Block adding `Map`/`Array`/`Void` types to the table schema" """
    assert "the type of" in refusal(config_of(Struct((Field("c", data_type),)))).message


def test_deletion_vectors_may_not_even_be_supported() -> None:
    """ "the `deletionVectors` table feature is not present in the table `protocol`" """
    assert "deletion vectors" in refusal(add_feature(config_of(), "deletionVectors").config).message


def test_a_partitioned_table_whose_files_lack_the_columns(tmp_path: Path) -> None:
    """ "partition column values are materialized into any Parquet data file that is present in the table" """
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store, partitioned=True), [1])
    files = load_snapshot(store).files
    for more, refused in (({}, True), ({"delta.enableMaterializePartitionColumnsFeature": "true"}, False)):
        before = table_config(NewTable(SCHEMA, ["p"], {"delta.columnMapping.mode": "name", **more}))
        after = set_properties(before, {ENABLED: "true"}).config
        actions, context = Actions(metadata=after.metadata), CommitContext(after, before, 1, files=files)
        if refused:
            with pytest.raises(InvalidRequest) as caught:
                on_commit(actions, context)
            assert caught.value.code == "iceberg-compat"
        else:
            on_commit(actions, context)
        on_commit(actions, replace(context, files=files.slice(0, 0)))
