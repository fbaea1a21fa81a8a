"""icebergCompatV1. Specification: "Iceberg Compatibility V1"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from iceberg_tables import SCHEMA, config_of, enabling, refusal
from plain_writer import commit_rows, open_target

from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import add_feature, set_properties
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.iceberg.iceberg_compat_v1 import FEATURE
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
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

VERSION = 1


@pytest.mark.parametrize("data_type", [Array(LONG), Map(STRING, LONG), Struct((Field("x", Array(LONG)),))], ids=str)
def test_types(data_type: DataType) -> None:
    """ "Block adding `Map`/`Array`/`Void` types to the table schema" """
    assert "the type of" in refusal(config_of(VERSION, Struct((Field("c", data_type),)))).message


def test_deletion_vectors_may_not_even_be_supported() -> None:
    """ "the `deletionVectors` table feature is not present in the table `protocol`" """
    assert "deletion vectors" in refusal(add_feature(config_of(VERSION), "deletionVectors").config).message


def test_a_partitioned_table_whose_files_lack_the_columns(tmp_path: Path) -> None:
    """ "partition column values are materialized into any Parquet data file that is present in the table" """
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store, partitioned=True), [1])
    files = load_snapshot(store).files
    for more, refused in (({}, True), ({"delta.enableMaterializePartitionColumnsFeature": "true"}, False)):
        before = table_config(NewTable(SCHEMA, ["p"], {"delta.columnMapping.mode": "name", **more}))
        after = set_properties(before, {enabling(VERSION): "true"}).config
        actions, context = (
            Actions(metadata=after.metadata),
            CommitContext(after, before, 1, pick_files=picking_from(files)),
        )
        if refused:
            with pytest.raises(InvalidRequest) as caught:
                FEATURE.on_commit(actions, context)
            assert caught.value.code == "iceberg-compat"
        else:
            FEATURE.on_commit(actions, context)
        FEATURE.on_commit(actions, replace(context, pick_files=picking_from(files.slice(0, 0))))
