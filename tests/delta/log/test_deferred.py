"""Checkpoints beyond a limit: their files are left to an engine, and what it brings is reconciled with the commits."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.read_checkpoint import checkpoint_rows
from alluvium.delta.log.replay import overlay
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.terms.spec import FILES
from alluvium.storage.stores.memory import MemoryStore


def _commit(store: MemoryStore, version: int, *actions: dict[str, object]) -> None:
    store.put(f"_delta_log/{version:020}.json", "\n".join(map(json.dumps, actions)).encode())


def _add(path: str, **more: object) -> dict[str, object]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True, **more}}


def _remove(path: str) -> dict[str, object]:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}}


def _store() -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[]}',
        "partitionColumns": [],
        "configuration": {},
    }
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    _commit(store, 0, protocol, {"metaData": metadata}, *map(_add, ["a", "b%20c", "d"]))
    write_checkpoint(store, _load(store, None), CheckpointOptions(2, 0))
    _commit(store, 1, _remove("a"), _add("d", size=7), _add("e"))
    _commit(store, 2, _remove("b c"), _remove("e"), _add("f"))
    return store


def _load(store: MemoryStore, limit: int | None) -> LogState:
    return load_state(store, list_segment(store), lambda protocol: None, limit)


def test_a_checkpoint_within_the_limit_is_read() -> None:
    state = _load(_store(), 1 << 20)
    assert state.deferred == ()
    assert sorted(state.files["path"].to_pylist()) == ["d", "f"]


def test_what_an_engine_brings_is_reconciled_with_later_commits() -> None:
    """ "keep only the newest reference for each logical file", however its path is spelled."""
    store = _store()
    state = _load(store, 10)
    assert [info.path for info in state.deferred] == [f"_delta_log/{0:020}.checkpoint.parquet"]
    assert sorted(state.files["path"].to_pylist()) == ["d", "f"]
    # All files of the checkpoint, and only some of them: what is left out does not come back.
    older = _load(MemoryStoreAt0(store), None).files.to_batches()
    whole = overlay(older, state.files, state.tombstones)
    assert sorted(zip(whole["path"].to_pylist(), whole["size"].to_pylist(), strict=True)) == [("d", 7), ("f", 1)]
    some = overlay([older[0].slice(0, 2)], state.files, state.tombstones)
    assert sorted(some["path"].to_pylist()) == ["d", "f"]


class MemoryStoreAt0(MemoryStore):
    """The store as it was at version 0."""

    def __init__(self, of: MemoryStore) -> None:
        super().__init__(uuid.uuid4().hex, "/t")
        for version in (0,):
            path = f"_delta_log/{version:020}.json"
            self.put(path, of.get(path))


def test_rows_of_a_checkpoint_become_files() -> None:
    kind = pa.struct([("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string())), ("size", pa.int64()),
                      ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string())])  # fmt: skip
    row = {"path": "a", "partitionValues": [], "size": 1, "modificationTime": 2, "dataChange": False, "stats": "{}"}
    batch = checkpoint_rows(pa.array([None, row], kind))
    assert batch.schema == FILES
    assert batch.column("path").to_pylist() == ["a"]


@pytest.mark.parametrize("how", [{}, {"max_actions": 1}, {"v2": True}, {"v2": True, "max_actions": 2}], ids=str)
def test_the_limit_is_of_all_files_together(how: dict[str, Any]) -> None:
    """Of a checkpoint with sidecars it is they that list files, beside its own."""
    store = _store()
    state = load_state(store, list_segment(store, 0), lambda protocol: None)
    for info in store.list_tree("_delta_log"):
        if ".checkpoint" in info.path:
            store.delete(info.path)
    write_checkpoint(store, state, CheckpointOptions(2, 0, **how))
    listed = [info for info in store.list_tree("_delta_log") if info.path.endswith(".parquet")]
    total = sum(info.size for info in listed)
    whole = _load(store, total)
    assert whole.deferred == () and sorted(whole.files["path"].to_pylist()) == ["d", "f"]
    late = _load(store, total - 1)
    assert {info.path for info in late.deferred} == {info.path for info in listed}
    assert sorted(late.files["path"].to_pylist()) == ["d", "f"]
    assert sorted(late.tombstones["path"].to_pylist()) == ["a", "b c", "e"]
    assert late.protocol == state.protocol and late.metadata == state.metadata


def test_a_checkpoint_of_lines_is_read_whatever_its_size() -> None:
    store = _store()
    lines = store.get(f"_delta_log/{0:020}.json").splitlines()
    (checkpoint,) = [info.path for info in store.list_tree("_delta_log") if info.path.endswith(".parquet")]
    store.delete(checkpoint)
    version = b'{"checkpointMetadata":{"version":0}}'
    store.put(f"_delta_log/{0:020}.checkpoint.{uuid.UUID(int=1)}.json", b"\n".join([version, *lines]))
    state = _load(store, 1)
    assert state.segment.checkpoint_version == 0 and state.deferred == ()
    assert sorted(state.files["path"].to_pylist()) == ["d", "f"]


@pytest.mark.parametrize("how", [{}, {"v2": True}], ids=str)
def test_files_that_only_an_unread_checkpoint_lists_are_not_among_those_of_the_state(how: dict[str, Any]) -> None:
    store = _store()
    head = store.get(f"_delta_log/{0:020}.json").splitlines()[:2]
    for info in store.list_tree("_delta_log"):
        store.delete(info.path)
    _commit(store, 0, *map(json.loads, head), *map(_add, ["untouched", "gone"]))
    write_checkpoint(store, _load(store, None), CheckpointOptions(2, 0, **how))
    _commit(store, 1, _remove("gone"), _add("f"))
    whole, late = _load(store, None), _load(store, 1)
    assert sorted(whole.files["path"].to_pylist()) == ["f", "untouched"] and whole.deferred == ()
    assert (late.files["path"].to_pylist(), late.tombstones["path"].to_pylist()) == (["f"], ["gone"])
    assert late.deferred and all(info.path.endswith(".parquet") for info in late.deferred)
