"""VACUUM without a listing: by the log, and by an inventory."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import FaultyStore
from plain_writer import commit_rows, open_target
from vacuumed_tables import (
    NOW,
    age,
    files_of,
    goes,
    litter,
    live,
    mask_first_file,
    newest,
    overwritten,
    preview,
    run,
    with_properties,
)

from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.vacuum.past import LAST_VACUUM_PATH
from alluvium.delta.upkeep.vacuum.vacuum import VacuumRequest, vacuum
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

# --- LITE


def test_lite_goes_by_the_log_alone(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    litter(tmp_path, "orphan.parquet")
    lite = VacuumRequest(retention_ms=0, checks=False, lite=True)
    watched = FaultyStore(store)
    assert set(vacuum(load_snapshot(watched), lite, True).files["path"].to_pylist()) == goes(store, NOW) - {
        "orphan.parquet"
    }  # type: ignore[union-attr]
    assert not [verb for verb, _ in watched.requests if verb.startswith("list_") and verb != "list_from"]
    assert run(store, lite).files == 3
    assert files_of(tmp_path) == live(store) | {"orphan.parquet"}
    assert json.loads(store.get(LAST_VACUUM_PATH)) == {"latestCommitVersionOutsideOfRetentionWindow": 3}
    assert run(store, lite).files == 0


@pytest.mark.parametrize(
    "path",
    [
        "_delta_log/00000000000000000000.json", "_DELTA_LOG/x", "_delta_log", "../outside", "d/../../outside", "/outside",
        "d/./x", "d//x", "file:/outside", "s3://b/x", "%5Fdelta_log/00000000000000000000.json", "a%00b", "",
    ],
)  # fmt: skip
def test_a_log_that_names_other_files_as_removed_harms_none(tmp_path: Path, path: str) -> None:
    store = overwritten(tmp_path / "t", 0)
    litter(tmp_path, "outside")
    remove = {"path": path, "deletionTimestamp": 1, "dataChange": True}
    store.put(commit_path(1), json.dumps({"remove": remove}).encode())
    assert goes(store, VacuumRequest(retention_ms=0, checks=False, lite=True)) == set()
    assert goes(store, NOW) == set()


def test_lite_within_the_retention_has_nothing_to_do(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    assert run(store, VacuumRequest(lite=True)).files == 0
    assert goes(store, VacuumRequest(lite=True)) == set()


def test_lite_needs_the_commits_since_the_last_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__checkpointInterval="2")
    for n in range(5):
        commit_rows(open_target(store), [n], replace=Replace())
    age(tmp_path, 30)
    for version in (0, 1):
        store.delete(commit_path(version))
    lite = VacuumRequest(retention_ms=0, checks=False, lite=True)
    with pytest.raises(InvalidRequest) as caught:
        run(store, lite)
    assert caught.value.code == "cannot-vacuum-lite"
    assert run(store, NOW).files == 4
    commit_rows(open_target(store), [9], replace=Replace())
    assert run(store, lite).files == 1


def test_lite_takes_vectors_and_change_data_along(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with_properties(store, delta__enableDeletionVectors="true")
    commit_rows(open_target(store), [1, 2])
    first, _ = mask_first_file(store), mask_first_file(store)
    litter(tmp_path, "_change_data/c d.parquet")
    cdc = {"path": "_change_data/c%20d.parquet", "partitionValues": {}, "size": 5, "dataChange": False}
    store.put(commit_path(newest(store).version + 1), json.dumps({"cdc": cdc}).encode())
    lite = VacuumRequest(retention_ms=0, checks=False, lite=True)
    assert goes(store, lite) == {first, "_change_data/c d.parquet"}


# --- inventories


def inventory(*rows: tuple[str, bool, int]) -> pa.Table:
    paths, kinds, times = zip(*rows, strict=True)
    return pa.table(
        {"path": paths, "length": [1] * len(rows), "isDir": kinds, "modificationTime": pa.array(times, pa.int64())}
    )


def test_an_inventory_stands_for_a_listing(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    litter(tmp_path, "a b.parquet", "not-in-it.parquet", "_hidden/x")
    (tmp_path / "empty").mkdir()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    litter(outside, "x.parquet")
    rows = [
        (f"{store.url}/a b.parquet", False, 1), (f"{store.url}/empty", True, 1), (f"file://{tmp_path}/_hidden/x", False, 1),
        (f"{store.url}/../{outside.name}/x.parquet", False, 1), (f"file:{outside}/x.parquet", False, 1),
        (f"{store.url}/young", False, 2**50), (f"{store.url}/gone", False, 1), (f"{store.url}/_delta_log/{0:020}.json", False, 1),
        *((f"{store.url}/{path}", False, 1) for path in live(store)),
    ]  # fmt: skip
    request = VacuumRequest(inventory=inventory(*rows))
    found = preview(store, request)
    assert set(found.files["path"].to_pylist()) == {"a b.parquet", "gone"}
    assert found.directories == ("empty",)
    run(store, request)
    assert {"not-in-it.parquet", "_hidden/x", *live(store)} <= files_of(tmp_path)
    assert "a b.parquet" not in files_of(tmp_path)
    assert (outside / "x.parquet").exists() and not (tmp_path / "empty").exists()
    with pytest.raises(AlluviumError):
        store.get(LAST_VACUUM_PATH)


def test_rows_of_an_inventory_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    table = pa.table(
        {
            "path": pa.array([None, f"{store.url}/a", f"{store.url}/b"], pa.large_string()),
            "length": pa.array([1, 1, None], pa.int32()),
            "isDir": [False, False, False],
            "modificationTime": pa.array([1, None, 1], pa.int64()),
        }
    )
    assert goes(store, VacuumRequest(inventory=table)) == set()
