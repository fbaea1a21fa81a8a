"""What the log still tells of versions, and which of their files others name."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delta_values import make_metadata

from alluvium.codecs.z85 import format_z85
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.spec import Protocol, format_actions
from alluvium.delta.upkeep.vacuum.versions import (
    ADDED,
    EVENTS,
    RECORDED,
    REMOVED,
    FileHistory,
    as_batch,
    named_by,
    needs_any,
    read_events,
    read_file_history,
    versions_where,
)
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore

VECTORS = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)
IDS = [uuid.UUID(int=n) for n in range(3)]


class Far(MemoryStore):
    """Objects that come over a network, by its URL."""

    @property
    def url(self) -> str:
        return "s3://far/t"


def vector(n: int, kind: str = "u") -> dict[str, Any]:
    return {
        "storageType": kind,
        "pathOrInlineDv": format_z85(IDS[n].bytes),
        "offset": 1,
        "sizeInBytes": 9,
        "cardinality": 1,
    }


def add(path: str, found: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    line = {"path": path, "partitionValues": {}, "size": 5, "modificationTime": 1, "dataChange": True, **more}
    return {"add": line if found is None else {**line, "deletionVector": found}}


def remove(path: str, found: dict[str, Any] | None = None) -> dict[str, Any]:
    line = {"path": path, "dataChange": True}
    return {"remove": line if found is None else {**line, "deletionVector": found}}


def table(commits: list[list[dict[str, Any]]], store: Store | None = None) -> Store:
    store = MemoryStore(uuid.uuid4().hex, "t") if store is None else store
    for version, lines in enumerate(commits):
        head = format_actions([VECTORS, make_metadata()]) if version == 0 else b""
        store.put(commit_path(version), head + "".join(json.dumps(line) + "\n" for line in lines).encode())
    return store


def checkpoint(store: Store, version: int) -> None:
    snapshot = load_snapshot(store, version)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)


def files_of(store: Store, newest: int) -> FileHistory:
    return read_file_history(store, list_log(store), newest)


@pytest.mark.parametrize("newest", [0, 2, 5])
def test_a_whole_log_tells_of_all_versions_up_to_one(newest: int) -> None:
    store = table([[add(f"f{n}")] for n in range(6)])
    found = files_of(store, newest)
    assert (found.first, found.known.tolist(), found.starts, found.root) == (0, [True] * (newest + 1), (), store.url)
    assert found.events.sort_by("version")["path"].to_pylist() == [f"f{n}" for n in range(newest + 1)]
    assert set(found.events["kind"].to_pylist()) == {ADDED}


@pytest.mark.parametrize(
    ("checkpoints", "gone", "first", "known", "starts"),
    [
        # A checkpoint begins the log; before a gap versions are known, behind it from a checkpoint on.
        ([2], [0, 1], 2, "1111", (2,)), ([2], [0, 1, 2], 2, "1111", (2,)), ([2, 4], [0, 1, 3], 2, "1011", (2, 4)),
        ([2, 4], [0, 1, 4], 2, "1111", (2, 4)), ([5], [0, 3], 5, "1", (5,)), ([4], [2], 0, "110011", (4,)),
        ([4], [3, 4], 0, "111011", (4,)), ([3], [], 0, "111111", ()), ([3], [2], 0, "110111", (3,)),
    ],
)  # fmt: skip
def test_versions_behind_gaps(
    checkpoints: list[int], gone: list[int], first: int, known: str, starts: tuple[int, ...]
) -> None:
    store = table([[add(f"f{n}")] for n in range(6)])
    for version in checkpoints:
        checkpoint(store, version)
    for version in gone:
        store.delete(commit_path(version))
    found = files_of(store, 5)
    assert (found.first, found.starts) == (first, starts)
    assert "".join(str(int(flag)) for flag in found.known) == known
    told = {(row["version"], row["path"]) for row in found.events.to_pylist()}
    # Of a version that is read from a checkpoint all files count as added, of the others what they say.
    expected = {(version, f"f{n}") for version in starts for n in range(version + 1)}
    rest = [v for v, flag in enumerate(found.known, first) if flag and v not in starts]
    assert told == expected | {(version, f"f{version}") for version in rest}
    assert {row["size"] for row in found.events.to_pylist()} == {5}


def test_a_log_that_tells_of_nothing() -> None:
    store = table([[add(f"f{n}")] for n in range(4)])
    store.delete(commit_path(0))
    found = files_of(store, 3)
    assert (found.first, found.known.tolist(), found.events.num_rows) == (3, [False], 0)


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_events_come_in_the_order_of_commits(far: bool) -> None:
    store = table(
        [[add("a"), remove("b", vector(1)), {"cdc": {"path": "c", "partitionValues": {}, "size": 3, "dataChange": False}}, {"txn": {"appId": "x", "version": 1}}], [remove("a")]],
        Far(uuid.uuid4().hex, "t") if far else None,
    )  # fmt: skip
    found = read_events(store, list(list_log(store).commits.values()))
    told = [(row["version"], row["kind"], row["path"], row["size"]) for row in found.to_pylist()]
    assert found.schema == EVENTS
    assert told == [(0, ADDED, "a", 5), (0, REMOVED, "b", None), (0, RECORDED, "c", 3), (1, REMOVED, "a", None)]
    assert [row["deletionVector"] and row["deletionVector"]["cardinality"] for row in found.to_pylist()] == [
        None,
        1,
        None,
        None,
    ]
    assert as_batch(found).num_rows == 4 and as_batch(found.slice(0, 0)).schema == EVENTS


@pytest.mark.parametrize("seed", range(8))
def test_versions_that_need_files_or_their_vectors(seed: int) -> None:
    """Beside a plain loop over what is live in each version, its vectors among it."""
    lot = random.Random(seed)
    live: dict[str, int | None] = {}
    commits, states = [], []
    for _ in range(7):
        lines = []
        for path in lot.sample(["a", "b%20b", "c"], 2):
            if path in live and lot.random() < 0.5:
                old = live.pop(path)
                lines.append(remove(path, None if old is None else vector(old)))
            if path not in live and lot.random() < 0.7:
                live[path] = lot.choice([None, 0, 1, 2])
                lines.append(add(path, None if live[path] is None else vector(live[path])))
        commits.append(lines)
        states.append(dict(live))
    found = files_of(table(commits), 6)
    for gone in (["a"], ["b b"], [f"deletion_vector_{IDS[0]}.bin"], ["c", f"deletion_vector_{IDS[2]}.bin"], ["z"], []):
        expected = [
            any(path.replace("%20", " ") in gone or (n is not None and f"deletion_vector_{IDS[n]}.bin" in gone) for path, n in state.items())
            for state in states
        ]  # fmt: skip
        flags = found.without(pa.array(gone, pa.string()))
        assert flags.tolist() == expected
        assert versions_where(found, flags) == tuple(n for n, flag in enumerate(expected) if flag)


def test_versions_are_counted_from_the_first() -> None:
    nothing = EVENTS.empty_table()
    found = FileHistory("memory://x/t", 7, np.array([True] * 3), (), nothing)
    assert versions_where(found, np.array([True, False, True])) == (7, 9)
    assert found.without(pa.array(["a"])).tolist() == [False] * 3


def test_files_that_events_name_once_each() -> None:
    store = table(
        [[add("a%20b", vector(0)), add("c", vector(0, "i"))], [remove("a%20b", vector(0)), add("d", vector(1))]]
    )
    events = read_events(store, list(list_log(store).commits.values()))
    names = {"a b", "c", "d", *(f"deletion_vector_{IDS[n]}.bin" for n in (0, 1))}
    found = named_by(events, store.url).to_pylist()
    assert set(found) == names and len(found) == len(names)


@pytest.mark.parametrize(
    ("root", "path", "needs"),
    [
        ("file:/t", "file:/t/a%20b", True), ("file:/t", "file:///t/a%20b", True), ("file:/t/", "/t/a%20b", True),
        ("file:/t", "file://localhost/t/a%20b", True), ("file:/t", "file:/tt/a%20b", False), ("file:/t", "a%20b", False),
        ("file:/t", "file:/t/p/a%20b", False), ("file:/tax", "file:/tax/a%20b", True), ("s3a://b/t", "s3://b/t/a%20b", True), ("s3://b/t", "s3n://b/t/a%20b", True),
        ("s3a://b/t", "s3a://c/t/a%20b", False), ("file:/t", "file:/t/other", False),
    ],
)  # fmt: skip
def test_which_clones_need_a_file_of_their_source(root: str, path: str, needs: bool) -> None:
    """However its address is spelled."""
    clone = load_snapshot(table([[add(path), add("own")]]))
    assert needs_any(clone, root, pa.array(["x", "a b"])) is needs
    assert not needs_any(clone, root, pa.array([], pa.string()))


def test_a_clone_needs_the_vectors_of_its_source() -> None:
    address = {**vector(0), "storageType": "p", "pathOrInlineDv": "file:///t/deletion_vector_1.bin"}
    clone = load_snapshot(table([[add("own", address)]]))
    assert needs_any(clone, "file:/t", pa.array(["deletion_vector_1.bin"]))
    assert not needs_any(clone, "file:/t", pa.array(["own"]))
