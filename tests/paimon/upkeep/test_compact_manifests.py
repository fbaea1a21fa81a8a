"""Manifests written anew: as few as they fit into, and nothing of files that are gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store


def test_manifests_become_one(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"])
    assert table.compact_manifests().attempts == 0
    store = open_store(table.url)
    for k in range(4):
        append(open_target(store), [{"k": k, "day": "a"}])
    append(open_target(store), [{"k": 9, "day": "a"}], replace=Replace())
    append(open_target(store), [{"k": 10, "day": "b"}])
    late = open_target(store)
    done = table.compact_manifests()
    assert (done.version, done.attempts, done.metrics) == (7, 1, {"numRemovedManifests": "6"})
    told = alluvium.open(table.url)
    assert sorted(told.to_arrow()["k"].to_pylist()) == [9, 10]
    manifests = told.system("manifests").to_pylist()
    assert [(m["num_added_files"], m["num_deleted_files"]) for m in manifests] == [(2, 0)]
    snapshot = told.system("snapshots").to_pylist()[-1]
    counts = ("commit_kind", "total_record_count", "delta_record_count")
    assert [snapshot[name] for name in counts] == ["COMPACT", 2, 0]
    assert table.compact_manifests().attempts == 0
    # Nobody who writes meanwhile is in the way.
    append(late, [{"k": 11, "day": "b"}])
    assert len(alluvium.open(table.url).to_arrow()) == 3


def test_an_emptied_table_has_none(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    store = open_store(table.url)
    append(open_target(store), [{"k": 1}])
    append(open_target(store), [], replace=Replace())
    assert table.compact_manifests().attempts == 1
    assert alluvium.open(table.url).system("manifests").num_rows == 0
    assert table.compact_manifests().attempts == 0


def test_a_state_keeps_its_columns(tmp_path: Path) -> None:
    """As in Java: a snapshot that only has other manifests shows what the one before it showed."""
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    store = open_store(table.url)
    for k in range(3):
        append(open_target(store), [{"k": k}])
    table.alter([SchemaChange.add_column("v", "STRING")])
    done = table.compact_manifests()
    assert done.version == 4
    assert [row["schema_id"] for row in alluvium.open(table.url).system("snapshots").to_pylist()] == [0, 0, 0, 0]
    assert alluvium.open(table.url, version=4).to_arrow().column_names == ["k"]
    assert alluvium.open(table.url).to_arrow().column_names == ["k", "v"]


@pytest.mark.parametrize(("parts", "merges"), [(1.0, True), (1.99, True), (2.0, True), (3.0, False), (9.0, False)])
def test_as_many_manifests_as_fit_are_left_alone(tmp_path: Path, parts: float, merges: bool) -> None:
    """Of three of one size: where each just fills its file nothing is to be gained."""
    table = PaimonTable.create(
        str(tmp_path / "t"), pa.schema([("k", pa.int32())]), options={"manifest.compression": "null"}
    )
    for k in range(3):
        append(open_target(open_store(table.url)), [{"k": k}])
    sizes = alluvium.open(table.url).system("manifests")["file_size"].to_pylist()
    target = int(sum(sizes) / parts)
    table.alter([SchemaChange.set_option("manifest.target-file-size", f"{target} b")])
    assert (PaimonTable.forPath(table.url).compact_manifests().attempts > 0) is merges
    assert sorted(alluvium.open(table.url).to_arrow()["k"].to_pylist()) == [0, 1, 2]
