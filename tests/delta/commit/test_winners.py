"""Commits that came meanwhile, as the conflict rules are told of them; and logs that are no base any more."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_files, make_metadata, removal_of
from plain_writer import commit_rows, open_target

from alluvium.delta.commit.winners import ensure_same_table, has_successors, read_winners
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.terms.actions import Actions, format_entry
from alluvium.delta.terms.spec import FILES, TOMBSTONES, DomainMetadata, Txn
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CommitConflict, CorruptTable, NotFound
from alluvium.storage.stores.memory import MemoryStore

INFO = {
    "timestamp": 77,
    "operation": "MERGE",
    "operationParameters": {},
    "engineInfo": "another",
    "isBlindAppend": True,
}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def put(store: MemoryStore, version: int, *lines: dict[str, Any]) -> None:
    store.put(commit_path(version), "".join(json.dumps(line) + "\n" for line in lines).encode())


def snapshots(store: MemoryStore, count: int) -> list[Snapshot]:
    found = []
    for n in range(count):
        commit_rows(open_target(store), [n])
        found.append(load_snapshot(store))
    return found


def test_all_that_a_winner_did(store: MemoryStore) -> None:
    added = make_files(
        {"path": "a b", "partitionValues": {"p": "x", "q": None}, "stats": '{"numRecords":1}', "tags": [("k", "v")],
         "deletionVector": {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 4, "cardinality": 2},
         "baseRowId": 5, "defaultRowCommitVersion": 3},
        {"path": "c", "size": 9},
        data_change=False,
    )  # fmt: skip
    actions = Actions(
        protocol=LEGACY,
        metadata=make_metadata(),
        added=added,
        removed=removal_of(make_files({"path": "d", "partitionValues": {"p": "y"}}, {"path": "e"})),
        txns=(Txn(app_id="one", version=4), Txn(app_id="two", version=5, last_updated=6)),
        domains=(DomainMetadata(domain="x", configuration="{}", removed=True),),
    )
    store.put(commit_path(3), format_entry(INFO, actions))
    (winner,) = read_winners(store, 3, 3)
    assert (winner.version, winner.timestamp_ms, winner.operation) == (3, 77, "MERGE")
    assert (winner.engine, winner.is_blind_append) == ("another", True)
    told = winner.actions
    assert (told.protocol, told.metadata) == (actions.protocol, actions.metadata)
    assert (told.txns, told.domains) == (actions.txns, actions.domains)
    assert told.added.schema == FILES and told.added.to_pylist() == added.to_pylist()
    assert told.removed.schema == TOMBSTONES
    # The log has what is not null.
    assert told.removed["path"].to_pylist() == ["d", "e"]
    assert told.removed["partitionValues"].to_pylist() == [[("p", "y")], []]
    assert told.removed["dataChange"].to_pylist() == [True, True]


@pytest.mark.parametrize("blind", [None, False, True, "true", 1])
def test_a_winner_that_says_little_of_itself(store: MemoryStore, blind: object) -> None:
    """Only what is said to be a blind append is one."""
    put(store, 1, {"remove": {"path": "x", "dataChange": True}})
    put(store, 2, {"txn": {"appId": "a", "version": 1}}, {"commitInfo": {"isBlindAppend": blind}})
    first, second = read_winners(store, 1, 2)
    assert (first.version, first.timestamp_ms, first.operation, first.engine) == (1, None, None, None)
    assert (first.is_blind_append, second.is_blind_append, second.version) == (False, blind is True, 2)
    assert first.actions.removed["partitionValues"].to_pylist() == [None]
    assert (second.actions.added.num_rows, second.actions.removed.num_rows) == (0, 0)
    assert (second.actions.protocol, second.actions.metadata) == (None, None)


def test_winners_come_from_the_oldest_on_and_none_is_left_out(store: MemoryStore) -> None:
    for version in range(2, 6):
        put(store, version, {"txn": {"appId": f"v{version}", "version": version}})
    assert [w.actions.txns[0].app_id for w in read_winners(store, 2, 5)] == ["v2", "v3", "v4", "v5"]
    assert read_winners(store, 6, 5) == ()
    with pytest.raises(CommitConflict) as caught:
        read_winners(store, 2, 6)
    error = caught.value
    assert (error.code, error.version, error.url, error.attempts) == ("base-expired", 1, store.url, 1)
    assert "version 1, on which" in str(error) and "version 6 came after it and was cleaned" in str(error)
    assert [(c.rule, c.version, c.operation) for c in error.conflicts] == [("base-expired", 1, None)]


def test_a_winner_without_a_base_is_cleaned(store: MemoryStore) -> None:
    with pytest.raises(CommitConflict) as caught:
        read_winners(store, 0, 0)
    assert (caught.value.version, caught.value.conflicts[0].version) == (0, 0)
    assert "no table, on which" in str(caught.value)


def test_a_damaged_winner_says_where(store: MemoryStore) -> None:
    store.put(commit_path(4), b'{"commitInfo":{}}\n{"add":7}\n')
    with pytest.raises(CorruptTable) as caught:
        read_winners(store, 4, 4)
    assert (caught.value.version, caught.value.path) == (4, commit_path(4))


def test_who_has_successors(store: MemoryStore) -> None:
    (only,) = snapshots(MemoryStore(uuid.uuid4().hex, "table"), 1)
    assert not has_successors(only.store, only)
    first, second, third = snapshots(store, 3)
    assert has_successors(store, first) and has_successors(store, second) and not has_successors(store, third)


@pytest.mark.parametrize("gone", [[1], [2], [1, 2], [3]])
def test_successors_that_are_gone(store: MemoryStore, gone: list[int]) -> None:
    base, *_, newest = snapshots(store, 5)
    for version in gone:
        store.delete(commit_path(version))
    with pytest.raises(CommitConflict) as caught:
        has_successors(store, base)
    assert caught.value.code == "base-expired" and caught.value.version == 0
    assert f"version {gone[0]} came after it" in str(caught.value)
    assert str(caught.value).startswith("version 0, on which this was made")
    # What came before a base is nothing to it, nor its own entry, which a checkpoint stands for.
    assert not has_successors(store, newest)


def test_a_checkpoint_tells_of_successors_as_well(store: MemoryStore) -> None:
    base, last = snapshots(store, 2)
    write_checkpoint(store, last.state, CheckpointOptions(0, 0), last.files)
    assert store.head(checkpoint_paths(1)[0]).size > 0
    store.delete(commit_path(1))
    assert not has_successors(store, last)
    with pytest.raises(CommitConflict) as caught:
        has_successors(store, base)
    assert caught.value.code == "base-expired"


def test_a_base_that_is_gone(store: MemoryStore) -> None:
    *_, last = snapshots(store, 3)
    store.delete(commit_path(2))
    with pytest.raises(CommitConflict) as caught:
        has_successors(store, last)
    assert (caught.value.code, caught.value.version) == ("table-replaced", 2) and "gone from the log" in str(
        caught.value
    )
    store.delete(commit_path(1))
    with pytest.raises(CommitConflict, match="gone from the log"):
        has_successors(store, last)
    store.delete(commit_path(0))
    with pytest.raises(NotFound) as missing:
        has_successors(store, last)
    assert missing.value.code == "not-a-table"


def test_another_entry_in_the_place_of_the_base(store: MemoryStore) -> None:
    """An entry of another size, or one of as many bytes in a table of another id."""
    first, second = snapshots(store, 2)
    data = store.get(commit_path(1))
    store.put(commit_path(1), data)
    assert not has_successors(store, second)
    store.put(commit_path(1), data + b"\n")
    with pytest.raises(CommitConflict) as caught:
        has_successors(store, second)
    assert caught.value.code == "table-replaced" and "another entry" in str(caught.value)
    assert has_successors(store, first)
    # As large as before, and of another table.
    store.put(commit_path(1), data)
    name = first.config.metadata.id
    store.put(commit_path(0), store.get(commit_path(0)).replace(name.encode(), str(uuid.UUID(int=9)).encode()))
    with pytest.raises(CommitConflict) as caught:
        has_successors(store, second)
    assert caught.value.code == "table-replaced"


def test_a_table_is_the_same_by_its_id_and_has_no_fewer_versions(store: MemoryStore) -> None:
    first, second = snapshots(store, 2)
    ensure_same_table(store, first, second)
    ensure_same_table(store, second, second)
    for base, newer in ((second, first), (first, snapshots(MemoryStore(uuid.uuid4().hex, "table"), 2)[1])):
        with pytest.raises(CommitConflict) as caught:
            ensure_same_table(store, base, newer)
        assert (caught.value.code, caught.value.version) == ("table-replaced", base.version)


def test_tables_of_actions_have_the_types_of_the_log() -> None:
    store = MemoryStore(uuid.uuid4().hex, "table")
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    add = {
        "path": "f",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 2,
        "dataChange": True,
        "deletionVector": vector,
    }
    put(store, 0, {"add": {**add, "unknown": 7}}, {"unknown": {}})
    (winner,) = read_winners(store, 0, 0)
    (row,) = winner.actions.added.to_pylist()
    assert row["deletionVector"] == {**vector, "offset": None} and row["tags"] is None
    assert isinstance(winner.actions.added, pa.Table) and winner.actions.added.schema == FILES
