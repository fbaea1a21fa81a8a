from __future__ import annotations

import datetime as dt
from pathlib import Path

from plain_writer import commit_rows, open_target
from vacuumed_tables import age, live, mask_first_file, newest, overwritten

import alluvium
from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.vacuum.readable_versions import READABLE_VERSIONS, readable_versions
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview, VacuumRequest, vacuum
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

NOW = VacuumRequest(retention_ms=0, checks=False)


def which(store: Store, column: str, retention_ms: int | None = None) -> list[int]:
    found = readable_versions(newest(store), retention_ms)
    return found.filter(found[column])["version"].to_pylist()


def test_all_versions_of_a_young_table_can_be_read_and_stay(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    found = alluvium.open(str(tmp_path)).readable_versions()
    assert found.schema == READABLE_VERSIONS
    assert found["version"].to_pylist() == [0, 1, 2, 3]
    assert all(found["readable"].to_pylist()) and all(found["after_vacuum"].to_pylist())
    assert abs(found["timestamp"][3].as_py() - dt.datetime.now(dt.timezone.utc)) < dt.timedelta(minutes=5)
    assert which(store, "after_vacuum", 0) == [3]


def test_what_vacuum_takes_is_what_was_told(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 2)
    age(tmp_path, 30)
    for n in (8, 9):
        commit_rows(open_target(store), [n], replace=Replace())
    # The files of 2 are of a month ago, but it was the newest version until today.
    assert which(store, "readable") == [0, 1, 2, 3, 4]
    told = which(store, "after_vacuum", 1)
    preview = vacuum(newest(store), VacuumRequest(retention_ms=1, checks=False), dry_run=True)
    assert isinstance(preview, VacuumPreview)
    assert sorted({0, 1, 2, 3, 4} - set(told)) == list(preview.lost_versions)
    vacuum(newest(store), VacuumRequest(retention_ms=1, checks=False, logs=False))
    assert which(store, "readable") == told


def test_a_file_that_is_gone_takes_all_versions_that_had_it(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    for n in (5, 6):
        commit_rows(open_target(store), [n])
    (path,) = live(store, 1)
    commit_rows(open_target(store), [9], replace=Replace())
    store.delete(path)
    assert which(store, "readable") == [0, 4]


def test_a_vector_that_is_gone_takes_its_versions_only(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 0)
    first = mask_first_file(store)
    mask_first_file(store)
    assert which(store, "readable") == [0, 1, 2]
    store.delete(first)
    assert which(store, "readable") == [0, 2]
    assert which(store, "after_vacuum", 0) == [0, 2]


def test_a_file_that_comes_back_is_live_twice(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    (path,) = live(store, 0)
    alluvium.alter(str(tmp_path)).restore(version=0)
    commit_rows(open_target(store), [9], replace=Replace())
    store.delete(path)
    assert which(store, "readable") == [1, 3]


def test_a_log_that_begins_with_a_checkpoint_and_has_a_gap(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 23)
    (early,), (late,) = live(store, 12), live(store, 22)
    for version in (*range(10), 15):
        store.delete(commit_path(version))
    assert which(store, "readable") == [10, 11, 12, 13, 14, 20, 21, 22, 23]
    store.delete(early)
    store.delete(late)
    assert which(store, "readable") == [10, 11, 13, 14, 20, 21, 23]
    found = readable_versions(newest(store))
    assert found["version"].to_pylist() == list(range(10, 24))
    assert found["timestamp"][5].as_py() is None


def test_of_a_version_without_its_commit_the_checkpoint_tells(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 11)
    for version in range(11):
        store.delete(commit_path(version))
    assert which(store, "readable") == [10, 11]
    assert load_snapshot(store, 10).files.num_rows == 1
    preview = vacuum(newest(store), NOW, dry_run=True)
    assert isinstance(preview, VacuumPreview)
    assert preview.lost_versions == (10,)


def test_files_behind_a_linked_folder_are_there(tmp_path: Path) -> None:
    """A listing follows no links, readers do."""
    root = tmp_path / "t"
    store = open_store(root)
    commit_rows(open_target(store), [1])
    commit_rows(open_target(store), [2])
    linked, gone = sorted(live(store, 0)), sorted(live(store) - live(store, 0))
    folder = linked[0].partition("/")[0]
    (root / folder).rename(tmp_path / "disk")
    (root / folder).symlink_to(tmp_path / "disk")
    (root / gone[0]).unlink()
    found = readable_versions(newest(store))
    assert found["readable"].to_pylist() == [True, False]
    assert found["after_vacuum"].to_pylist() == [True, False]
