"""RESTORE: files and description of an older version become the newest; metrics are delta-spark's."""

from __future__ import annotations

import dataclasses
import json

import pytest
from plain_writer import commit_rows, open_target

from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.restore import plan_restore, restore
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict, NotFound
from alluvium.plan.changes import Committed, Preview, Replace
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    """Versions: 0 rows, 1 more rows, 2 a property and protocol, 3 overwritten."""
    store = MemoryStore(request.node.name, "table")
    commit_rows(open_target(store), [1, 2])
    commit_rows(open_target(store), [3])
    apply_change(load_snapshot(store), lambda c: set_properties(c, {"x": "1", "delta.minWriterVersion": "3"}), "tests")
    commit_rows(open_target(store), [9], replace=Replace())
    return store


def back_to(store: MemoryStore, version: int, **arguments: object) -> Committed | Preview:
    old = load_snapshot(store, version)
    return restore(load_snapshot(store), old, {"version": version, "timestamp": None}, "tests", **arguments)  # type: ignore[arg-type]


def test_files_and_properties_come_back_and_the_protocol_stays(store: MemoryStore):
    old = load_snapshot(store, 1)
    done = back_to(store, 1)
    now = load_snapshot(store)
    assert (done.version, now.version) == (4, 4)
    assert sorted(now.files.column("path").to_pylist()) == sorted(old.files.column("path").to_pylist())
    assert now.config.metadata == old.config.metadata
    assert now.config.protocol.min_writer_version == 3
    assert done.metrics["numRestoredFiles"] == "2"
    assert done.metrics["numRemovedFiles"] == "1"
    assert done.metrics["numOfFilesAfterRestore"] == "2"
    size = sum(old.files.column("size").to_pylist())
    assert done.metrics["tableSizeAfterRestore"] == done.metrics["restoredFilesSize"] == str(size)
    assert all(now.files.column("dataChange").to_pylist())


def test_files_that_are_there_stay(store: MemoryStore):
    commit_rows(open_target(store), [10])
    plan = plan_restore(load_snapshot(store), load_snapshot(store, 3))
    assert (plan.added.num_rows, plan.removed.num_rows) == (0, 1)


def test_another_deletion_vector_is_another_file(store: MemoryStore):
    now, old = load_snapshot(store, 0), load_snapshot(store, 0)
    masked = old.files.to_pylist()
    masked[0]["deletionVector"] = {
        "storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 3, "cardinality": 1,
    }  # fmt: skip
    table = type(old.files).from_pylist(masked, schema=old.files.schema)
    now = dataclasses.replace(now, state=dataclasses.replace(now.state, files=table))
    plan = plan_restore(now, old)
    assert (plan.added.num_rows, plan.removed.num_rows) == (1, 1)


def test_the_newest_version_needs_no_commit(store: MemoryStore):
    done = back_to(store, 3)
    assert isinstance(done, Committed)
    assert (done.version, done.attempts, done.metrics) == (3, 0, {})


def test_a_dry_run(store: MemoryStore):
    done = back_to(store, 0, dry_run=True)
    assert isinstance(done, Preview)
    assert (len(done.added), len(done.removed)) == (1, 1)
    assert done.differences == {"property x": ("1", None)}
    assert load_snapshot(store).version == 3


@pytest.mark.parametrize("many", [False, True])
def test_files_that_are_gone_cannot_come_back(store: MemoryStore, many: bool, monkeypatch: pytest.MonkeyPatch):
    if many:
        monkeypatch.setattr("alluvium.delta.upkeep.missing_files._FEW", 0)
    path = load_snapshot(store, 0).files.column("path")[0].as_py()
    store.delete(path)
    found = back_to(store, 0, dry_run=True)
    assert isinstance(found, Preview) and found.missing == (path,)
    with pytest.raises(NotFound) as caught:
        back_to(store, 0)
    assert (caught.value.code, caught.value.path) == ("missing-file", path)
    assert load_snapshot(store).version == 3


def test_rows_that_come_meanwhile_are_a_conflict(store: MemoryStore):
    behind = load_snapshot(store)
    commit_rows(open_target(store), [11])
    with pytest.raises(CommitConflict):
        restore(behind, load_snapshot(store, 0), {"version": 0, "timestamp": None}, "tests")


def test_all_that_is_said_of_it(store: MemoryStore):
    """Protocol and description are said again, be they the same: whoever reads this commit alone knows them."""
    sizes = {version: load_snapshot(store, version).files.column("size").to_pylist() for version in (1, 3)}
    gone = load_snapshot(store).files.to_pylist()
    shown = back_to(store, 1, dry_run=True)
    done = back_to(store, 1)
    assert isinstance(shown, Preview) and isinstance(done, Committed)
    expected = {
        "tableSizeAfterRestore": str(sum(sizes[1])), "numOfFilesAfterRestore": "2", "numRemovedFiles": "1", "numRestoredFiles": "2",
        "removedFilesSize": str(sum(sizes[3])), "restoredFilesSize": str(sum(sizes[1])),
    }  # fmt: skip
    assert done.metrics == expected == shown.operation.metrics and (shown.version, shown.missing) == (3, ())
    assert (done.attempts, done.files.num_rows) == (1, 0)
    lines = [json.loads(line) for line in store.get(commit_path(4)).splitlines()]
    info = lines[0]["commitInfo"]
    assert (info["operation"], info["engineInfo"], info["readVersion"]) == ("RESTORE", "tests", 3)
    assert info["operationParameters"] == {"version": 1, "timestamp": None} == shown.operation.parameters
    assert info["operationMetrics"] == expected and info["isBlindAppend"] is False
    kinds = sorted(kind for line in lines for kind in line)
    assert kinds == ["add", "add", "commitInfo", "metaData", "protocol", "remove"]
    (removed,) = [line["remove"] for line in lines if "remove" in line]
    assert (removed["path"], removed["dataChange"], removed["size"]) == (gone[0]["path"], True, gone[0]["size"])
    assert abs(removed["deletionTimestamp"] - info["timestamp"]) < 60_000
    assert set(shown.removed) == {removed["path"]}
    assert set(shown.added) == {line["add"]["path"] for line in lines if "add" in line}


def test_what_is_there_already_is_neither_added_nor_removed(store: MemoryStore):
    commit_rows(open_target(store), [10])
    old = load_snapshot(store, 3)
    done = back_to(store, 3)
    assert isinstance(done, Committed)
    size = old.files.column("size")[0].as_py()
    assert done.metrics["tableSizeAfterRestore"] == str(size) and done.metrics["restoredFilesSize"] == "0"
    assert (done.metrics["numRestoredFiles"], done.metrics["numRemovedFiles"]) == ("0", "1")
    assert load_snapshot(store).files.column("path").to_pylist() == old.files.column("path").to_pylist()
