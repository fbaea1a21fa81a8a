"""What VACUUM tells: before it deletes, in the history, and of requests that it refuses."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_config
from plain_writer import commit_rows, open_target
from vacuumed_tables import NOW, age, backdate_tombstones, litter, newest, overwritten, preview, run

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.log.timeline import commit_timestamps
from alluvium.delta.upkeep.vacuum.vacuum import (
    HOUR_MS,
    VacuumPreview,
    VacuumRequest,
    ensure_retention,
    in_ms,
    read_clock,
    vacuum,
)
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Replace
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore

WEEK_MS = 7 * 24 * HOUR_MS


def info(store: Store, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store.get(commit_path(version)).splitlines()[0])["commitInfo"]
    return found


def test_what_would_go_and_what_with_it(tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    (tmp_path / "empty/deeper").mkdir(parents=True)
    (tmp_path / "full").mkdir()
    litter(tmp_path, "full/x")
    age(tmp_path, 30)
    sizes = {row["path"]: row["size"] for v in range(3) for row in load_snapshot(store, v).files.to_pylist()}
    found = preview(store, VacuumRequest(0, checks=False))
    assert found.version == 3 and abs(found.cutoff_ms - time.time() * 1000) < 60_000
    assert dict(zip(found.files["path"].to_pylist(), found.files["size"].to_pylist(), strict=True)) == {
        **sizes,
        "full/x": 5,
    }
    assert found.files.column_names == ["path", "size", "modified_ms"]
    assert found.size_bytes == sum(sizes.values()) + 5
    assert found.directories == ("empty/deeper", "empty")
    assert found.lost_versions == (0, 1, 2)
    times = {one.version: one.timestamp_ms for one in commit_timestamps(store)}
    assert found.lost_times_ms == tuple(times[version] for version in range(3)) and found.lost_clones == ()
    assert str(found) == (
        f"VACUUM at version 3: 4 files of {found.size_bytes} bytes and 2 empty directories would go, "
        "3 versions become unreadable; nothing was deleted"
    )
    assert list_log(store).latest == 3


def test_nothing_would_go(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 0)
    litter(tmp_path, "old")
    for request, count in ((VacuumRequest(), 1), (VacuumRequest(10**15, checks=False), 0)):
        found = preview(store, request)
        assert (found.files.num_rows, found.lost_versions, found.lost_times_ms) == (count, (), ())
        assert f"{count} files of {5 * count} bytes" in str(found) and "no version is lost" in str(found)


def test_clones_are_counted_where_there_are_such() -> None:
    files = pa.table({"path": ["a", "b"], "size": [1, 2], "modified_ms": [0, 0]})
    found = VacuumPreview(7, 5, files, ("d",), (), (), ("x", "y"))
    assert str(found) == (
        "VACUUM at version 7: 2 files of 3 bytes and 1 empty directories would go, no version is lost, so do 2 clones; "
        "nothing was deleted"
    )


@pytest.mark.parametrize("checks", [True, False])
def test_what_the_history_says(tmp_path: Path, checks: bool) -> None:
    store = overwritten(tmp_path)
    (tmp_path / "empty").mkdir()
    backdate_tombstones(store)
    age(tmp_path, 30)
    sizes = [row["size"] for v in range(3) for row in load_snapshot(store, v).files.to_pylist()]
    done = run(store, VacuumRequest(None if checks else 0, checks=checks, engine="an engine"))
    gone = preview(store, NOW)
    assert gone.files.num_rows == 0
    assert (done.version, done.files, done.size_bytes, done.directories) == (5, 3, sum(sizes), 1)
    start, end = info(store, 4), info(store, 5)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": checks, "defaultRetentionMillis": WEEK_MS, **({} if checks else {"specifiedRetentionMillis": 0})
    }  # fmt: skip
    assert start["operationMetrics"] == {"numFilesToDelete": "4", "sizeOfDataToDelete": str(sum(sizes))}
    # The folders that were looked into, and the table's own.
    folders = 1 + sum(path.is_dir() and path.name != "_delta_log" for path in tmp_path.rglob("*")) + done.directories
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "4", "numVacuumedDirectories": str(folders)}
    assert {start["engineInfo"], end["engineInfo"]} == {"an engine"}


def test_a_failure_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = overwritten(tmp_path)
    age(tmp_path, 30)

    def refuse(self: Store, paths: list[str]) -> None:
        raise OSError("no")

    monkeypatch.setattr(type(store), "delete_all", refuse)
    with pytest.raises(OSError, match="no"):
        vacuum(newest(store), VacuumRequest(0, checks=False, engine="an engine"))
    told = info(store, 5)
    assert (told["operation"], told["operationParameters"]) == ("VACUUM END", {"status": "FAILED"})
    assert told["operationMetrics"] == {} and told["engineInfo"] == "an engine"


def test_files_are_deleted_portion_by_portion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the log is looked at anew."""
    monkeypatch.setattr("alluvium.delta.upkeep.vacuum.vacuum._PATHS_A_REQUEST", 2)
    store = overwritten(tmp_path, 0)
    litter(tmp_path, *(f"l{n}" for n in range(5)))
    asked: list[int] = []
    delete = type(store).delete_all

    def noted(self: Store, paths: list[str]) -> None:
        asked.append(len(paths))
        delete(self, paths)

    monkeypatch.setattr(type(store), "delete_all", noted)
    done = run(store)
    assert asked == [2, 2, 1] and (done.files, done.size_bytes) == (5, 25)


@pytest.mark.parametrize(
    ("hours", "retention_ms"),
    [(0, 0), (1, HOUR_MS), (168, WEEK_MS), (0.5, HOUR_MS // 2), (1e-9, 0), (-1e-9, -1), (-2, -2 * HOUR_MS), (math.inf, 10**15),
     (-math.inf, -(10**15)), (1e300, 10**15), (10**15 / HOUR_MS, 10**15)],
)  # fmt: skip
def test_hours_in_milliseconds(hours: float, retention_ms: int) -> None:
    """What is below nothing stays below it."""
    assert in_ms(hours) == retention_ms
    with pytest.raises(InvalidRequest) as caught:
        in_ms(math.nan)
    assert caught.value.code == "wrong-type"


@pytest.mark.parametrize("days", [1, 7])
def test_which_retentions_are_too_short(days: int) -> None:
    own_ms = days * 24 * HOUR_MS
    config = make_config(properties={"delta.deletedFileRetentionDuration": f"interval {days} days"})
    assert ensure_retention(VacuumRequest(), config) == own_ms
    for asked in (own_ms, own_ms + 1, 10**15):
        assert ensure_retention(VacuumRequest(asked), config) == asked
    for asked in (own_ms - 1, 0):
        assert ensure_retention(VacuumRequest(asked, checks=False), config) == asked
        with pytest.raises(InvalidRequest) as caught:
            ensure_retention(VacuumRequest(asked), config)
        assert caught.value.code == "retention-too-short"
        assert f"a retention of {asked / HOUR_MS:g} hours" in str(caught.value) and f"{days * 24} hours" in str(
            caught.value
        )
    for checks in (True, False):
        with pytest.raises(InvalidRequest) as caught:
            ensure_retention(VacuumRequest(-1, checks=checks), config)
        assert caught.value.code == "negative-retention"


def test_hours_of_a_table_are_rounded_up() -> None:
    config = make_config(properties={"delta.deletedFileRetentionDuration": "interval 61 minutes"})
    with pytest.raises(InvalidRequest, match="that of the table, 2 hours"):
        ensure_retention(VacuumRequest(HOUR_MS), config)


def test_a_clock_is_read_by_a_file_that_is_gone_afterwards() -> None:
    store = MemoryStore("clock-of-a-store", "t")
    assert abs(read_clock(store) - time.time() * 1000) < 60_000
    assert list(store.list_tree("")) == []


def test_files_of_later_versions_stay_where_an_older_one_was_opened(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    opened = newest(store)
    commit_rows(open_target(store), [9], replace=Replace())
    age(tmp_path, 30)
    found = vacuum(opened, NOW, dry_run=True)
    assert isinstance(found, VacuumPreview) and found.version == 2
    live = set(newest(store).files["path"].to_pylist())
    assert found.files.num_rows == 2 and not live & set(found.files["path"].to_pylist())
