"""Statistics of a state: a document that the snapshot names, and later ones until the columns change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.statistics import ColumnStatistics, commit_statistics, format_statistics
from alluvium.storage.open import open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("s", pa.string())]))
    append(open_target(open_store(url)), [{"k": 1, "s": "x"}])
    return url


def test_statistics_are_committed_and_inherited(url: str) -> None:
    snapshot = load_snapshot(open_store(url))
    said = [ColumnStatistics("s", 1, None, None, 0, 1, 1)]
    done = commit_statistics(snapshot, format_statistics(snapshot, 1, 10, said))
    assert (done.version, done.attempts) == (2, 1)
    (row,) = alluvium.open(url).system("statistics").to_pylist()
    assert (row["snapshot_id"], row["schema_id"], row["mergedRecordCount"], row["mergedRecordSize"]) == (1, 0, 1, 10)
    assert json.loads(row["colstat"]) == {
        "s": {"colId": 1, "distinctCount": 1, "nullCount": 0, "avgLen": 1, "maxLen": 1}
    }
    snapshots = alluvium.open(url).system("snapshots").select(["commit_kind", "delta_record_count"]).to_pylist()
    assert snapshots[-1] == {"commit_kind": "ANALYZE", "delta_record_count": 0}
    append(open_target(open_store(url)), [{"k": 2, "s": "y"}])
    assert alluvium.open(url).system("statistics").num_rows == 1
    assert sorted(alluvium.open(url).to_arrow()["k"].to_pylist()) == [1, 2]
    table = PaimonTable.forPath(url)
    for path in Path(url.removeprefix("file:")).rglob("*"):
        os.utime(path, (0, 0))
    assert table.remove_orphan_files(dry_run=True).count == 0
    table.alter([SchemaChange.add_column("n", "INT")])
    append(open_target(open_store(url)), [{"k": 3, "s": "z"}])
    assert alluvium.open(url).system("statistics").num_rows == 0
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not open_store(url).list_names("statistics")


def test_what_is_said_of_columns(url: str) -> None:
    """As Java has it: what is not known is left out, and columns go by their ids, too."""
    snapshot = load_snapshot(open_store(url))
    every = ColumnStatistics("s", 1, "a", "b", 2, 3, 4)
    said = json.loads(format_statistics(snapshot, 5, 6, [every, ColumnStatistics("k")]))
    assert said == {
        "snapshotId": 1, "schemaId": 0, "mergedRecordCount": 5, "mergedRecordSize": 6,
        "colStats": {
            "s": {"colId": 1, "distinctCount": 1, "min": "a", "max": "b", "nullCount": 2, "avgLen": 3, "maxLen": 4},
            "k": {"colId": 0},
        },
    }  # fmt: skip
    assert json.loads(format_statistics(snapshot, 0, 0, []))["colStats"] == {}


def test_statistics_of_a_state_that_others_have_left_land_all_the_same(url: str) -> None:
    """Nothing that was read can make them wrong: they say of which snapshot they are."""
    snapshot = load_snapshot(open_store(url))
    append(open_target(open_store(url)), [{"k": 2, "s": "y"}])
    done = commit_statistics(snapshot, format_statistics(snapshot, 1, 10, []))
    assert (done.version, done.metrics, done.files.num_rows) == (3, {}, 0)
    assert alluvium.open(url).system("statistics").to_pylist()[0]["snapshot_id"] == 1
