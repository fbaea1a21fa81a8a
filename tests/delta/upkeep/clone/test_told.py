"""What a clone tells: its history, its figures, and what a dry run shows of it."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from plain_writer import commit_rows, open_target
from vacuumed_tables import mask_first_file

from alluvium.delta.log.names import commit_path
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Preview, Replace
from alluvium.storage.stores.memory import MemoryStore

KINDS = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "t")


@pytest.fixture
def source() -> Snapshot:
    """Two files, a row of the first one deleted by a vector."""
    store = memory()
    commit_rows(open_target(store), [1, 2])
    commit_rows(open_target(store), [3, 4, 5])
    mask_first_file(store)
    return load_snapshot(store)


def request(shallow: bool, **said: Any) -> CloneRequest:
    return CloneRequest("a.name", shallow, engine="an engine", **said)


def entry(store: MemoryStore, version: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.get(commit_path(version)).splitlines()]


@KINDS
def test_a_clone_where_there_was_no_table(source: Snapshot, shallow: bool) -> None:
    store = memory()
    wanted = request(shallow, user_metadata="a note")
    shown = clone(source, store, None, wanted, dry_run=True)
    assert isinstance(shown, Preview) and list(store.list_tree("")) == []
    done = clone(source, store, None, wanted)
    assert isinstance(done, Committed) and (done.version, done.attempts) == (0, 1)
    size = sum(source.files["size"].to_pylist())
    expected = {
        "sourceTableSize": str(size), "sourceNumOfFiles": "2", "numRemovedFiles": "0", "numCopiedFiles": "0" if shallow else "2",
        "removedFilesSize": "0", "copiedFilesSize": "0" if shallow else str(size),
    }  # fmt: skip
    assert done.metrics == expected == shown.operation.metrics
    info = entry(store)[0]["commitInfo"]
    assert info["operationParameters"] == {"source": "a.name", "sourceVersion": 2} == shown.operation.parameters
    assert (info["operation"], info["engineInfo"], info["userMetadata"], info["readVersion"]) == (
        "CLONE",
        "an engine",
        "a note",
        -1,
    )
    assert info["operationMetrics"] == expected and info["isBlindAppend"] is False
    assert (shown.version, shown.removed, shown.missing, len(shown.added)) == (-1, (), (), 2)
    assert shown.differences["schema"][0] is None
    adds = {line["add"]["path"]: line["add"] for line in entry(store) if "add" in line}
    assert dict(zip(done.files["path"].to_pylist(), done.files["size"].to_pylist(), strict=True)) == {
        path: add["size"] for path, add in adds.items()
    }
    # What comes into another table is new there, and has no numbers of rows yet.
    assert all(add["dataChange"] is True and "baseRowId" not in add for add in adds.values())
    assert sum("deletionVector" in add for add in adds.values()) == 1
    kinds = [kind for line in entry(store) for kind in line]
    assert sorted(kinds) == ["add", "add", "commitInfo", "metaData", "protocol"]


@KINDS
def test_a_clone_in_the_place_of_a_table(source: Snapshot, shallow: bool) -> None:
    store = memory()
    commit_rows(open_target(store), [7, 8])
    existing = load_snapshot(store)
    with pytest.raises(InvalidRequest) as caught:
        clone(source, store, existing, request(shallow))
    assert (caught.value.code, caught.value.version, caught.value.url) == ("table-exists", 0, store.url)
    wanted = request(shallow, replace=True)
    shown = clone(source, store, existing, wanted, dry_run=True)
    done = clone(source, store, existing, wanted)
    assert isinstance(shown, Preview) and isinstance(done, Committed) and done.version == 1
    gone = existing.files.to_pylist()
    assert (done.metrics["numRemovedFiles"], done.metrics["removedFilesSize"]) == ("1", str(gone[0]["size"]))
    assert (shown.version, shown.removed) == (0, (gone[0]["path"],))
    (removed,) = [line["remove"] for line in entry(store, 1) if "remove" in line]
    info = entry(store, 1)[0]["commitInfo"]
    assert (removed["path"], removed["dataChange"], info["readVersion"]) == (gone[0]["path"], True, 0)
    assert abs(removed["deletionTimestamp"] - info["timestamp"]) < 60_000
    # Once more there is nothing to copy, and nothing goes.
    again = clone(source, store, load_snapshot(store), wanted)
    assert isinstance(again, Committed)
    assert (again.metrics["numCopiedFiles"], again.metrics["numRemovedFiles"], again.files.num_rows) == ("0", "0", 0)


@KINDS
def test_a_newer_clone_copies_and_removes_what_has_changed(source: Snapshot, shallow: bool) -> None:
    store, origin = memory(), source.store
    clone(source, store, None, request(shallow))
    commit_rows(open_target(origin), [9], replace=Replace())
    commit_rows(open_target(origin), [10])
    newer = load_snapshot(origin)
    before = load_snapshot(store).files
    done = clone(newer, store, load_snapshot(store), request(shallow, replace=True))
    assert isinstance(done, Committed)
    size = sum(newer.files["size"].to_pylist())
    assert done.metrics == {
        "sourceTableSize": str(size), "sourceNumOfFiles": "2", "numRemovedFiles": "2", "numCopiedFiles": "0" if shallow else "2",
        "removedFilesSize": str(sum(before["size"].to_pylist())), "copiedFilesSize": "0" if shallow else str(size),
    }  # fmt: skip
    assert (
        load_snapshot(store).files.num_rows == 2 and load_snapshot(store).config.metadata.id != newer.config.metadata.id
    )


@pytest.mark.parametrize(
    ("path", "is_free"),
    [(f"copy-{'0' * 32}/x", True), (f"copy-{'0' * 31}/x", False), (f"x/copy-{'0' * 32}/y", False), ("x", False)],
)
def test_a_place_where_something_lies_is_not_free(source: Snapshot, path: str, is_free: bool) -> None:
    store = memory()
    store.put(path, b"x")
    if is_free:
        clone(source, store, None, request(True))
        return
    with pytest.raises(InvalidRequest) as caught:
        clone(source, store, None, request(True))
    assert (caught.value.code, caught.value.path) == ("location-not-empty", path)


@KINDS
def test_places_within_each_other_are_refused(source: Snapshot, shallow: bool) -> None:
    name = source.store.url.removeprefix("memory://").partition("/")[0]
    for below in ("t", "t/inner", "t/a/b"):
        with pytest.raises(InvalidRequest) as caught:
            clone(source, MemoryStore(name, below), None, request(shallow))
        assert (caught.value.code, caught.value.url) == ("clone-of-itself", source.store.url)
    inner = MemoryStore(name, "t/inner")
    commit_rows(open_target(inner), [1])
    with pytest.raises(InvalidRequest) as caught:
        clone(load_snapshot(inner), source.store, source, request(shallow, replace=True))
    assert caught.value.code == "clone-of-itself"
    clone(source, MemoryStore(name, "tt"), None, request(shallow))
