"""Which older versions have something of a feature: those that can be read, the oldest first, few of them read."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from delta_values import make_metadata

from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.spec import Protocol, format_actions
from alluvium.delta.upkeep.drop.feature_history import first_with_traces
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.storage.stores.memory import MemoryStore

ON, IDLE = {"delta.X": "true"}, {"delta.x": None}


class Reading(MemoryStore):
    """Notes which commits are read."""

    read: list[str]

    def get(self, path: str) -> bytes:
        self.read.append(path)
        return super().get(path)


def table(*properties: dict[str, str] | None) -> Reading:
    """A commit each that sets properties, or (None) only adds a file."""
    store = Reading(uuid.uuid4().hex, "t")
    store.read = []
    for version, said in enumerate(properties):
        head = [Protocol(min_reader_version=1, min_writer_version=2)] if version == 0 else []
        add = {"path": f"f{version}", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        metadata = [] if said is None else [make_metadata(properties=said)]
        line = json.dumps({"add": add}) + "\n"
        store.put(commit_path(version), format_actions([*head, *metadata]) + line.encode())
    return store


def first(store: MemoryStore, properties: dict[str, str | None] | None = None, problem: Any = None) -> int | None:
    return first_with_traces(
        load_snapshot(store), IDLE if properties is None else properties, problem or (lambda found: False)
    )


def test_the_oldest_that_sets_a_property() -> None:
    assert first(table({}, None, ON, None, {}, None)) == 2
    assert first(table(ON, {}, None)) == 0
    assert first(table({}, None, None)) is None
    # The newest version does not count: it is what is to change.
    assert first(table({}, ON)) is None and first(table({}, ON, None)) == 1


@pytest.mark.parametrize(
    ("idle", "value", "counts"),
    [
        (None, "true", True), (None, "TRUE", True), (None, "false", False), (None, "False", False), (None, "none", False),
        (None, "NONE", False), (None, "", True), ("classic", "classic", False), ("classic", "CLASSIC", False), ("classic", "v2", True),
    ],
)  # fmt: skip
def test_values_of_who_does_not_use_it(idle: str | None, value: str, counts: bool) -> None:
    store = table({"DELTA.x": value}, {}, None)
    assert first(store, {"delta.X": idle}) == (0 if counts else None)
    assert first(store, {}) is None and first(store, {"delta.other": None}) is None
    assert first(store, {"delta.other": None, "delta.x": idle}) == (0 if counts else None)


def test_what_files_have_of_it() -> None:
    def has(version: int) -> Any:
        return lambda found: found.version == version

    store = table({}, None, {}, None, {}, None)
    assert first(store, problem=has(2)) == 2 and first(store, problem=has(0)) == 0
    # Only where properties or vectors are named anything can have changed.
    assert first(store, problem=has(3)) is None and first(store, problem=has(5)) is None
    store.put(commit_path(3), store.get(commit_path(3)).replace(b'"path"', b'"tags":{"deletionVector":"x"},"path"'))
    assert first(store, problem=has(3)) == 3


def test_versions_that_nobody_can_read_do_not_count() -> None:
    store = table({}, ON, {}, None, {}, None)
    snapshot = load_snapshot(store, 3)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)
    assert first(store) == 1
    store.delete(commit_path(0))
    assert first(store) is None
    assert first(store, problem=lambda found: found.version == 4) == 4


def test_few_versions_are_read() -> None:
    store = table({}, *[None] * 8)
    seen: list[int] = []

    def look(found: Snapshot) -> bool:
        seen.append(found.version)
        return False

    newest = load_snapshot(store)
    store.read.clear()
    assert first_with_traces(newest, IDLE, look) is None
    assert seen == [0] and {path for path in store.read if path.endswith(".json")} == {commit_path(n) for n in range(8)}


def test_the_first_that_can_be_read_is_looked_at_whatever_its_commit_tells() -> None:
    """A clean-up was cut short: nobody reads what lies before the checkpoint, and what was set there still holds."""
    store = table({}, ON, None, None, {}, None)
    snapshot = load_snapshot(store, 3)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)
    store.delete(commit_path(0))
    assert first(store) == 3


def test_a_version_of_which_a_checkpoint_alone_is_left_is_looked_at() -> None:
    """Somebody deleted its commit, and it can be read all the same."""
    store = table({}, ON, {}, None)
    snapshot = load_snapshot(store, 1)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)
    for version in (0, 1):
        store.delete(commit_path(version))
    assert first(store) == 1
