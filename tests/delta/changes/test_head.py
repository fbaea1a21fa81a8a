"""Protocol and metadata of an older version."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from change_table import ChangeTable, metadata, protocol

from alluvium.delta.changes.head import load_head
from alluvium.delta.log.names import commit_path
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def table(tmp_path: Path) -> ChangeTable:
    """Version 0 makes the table, 1 appends, 2 sets a property, 3 another protocol, 4 appends."""
    made = ChangeTable(tmp_path)
    made.commit(protocol(1, 2), metadata(properties={"n": "0"}))
    made.commit(made.add("a.parquet", [1]))
    made.commit(metadata(properties={"n": "2"}))
    made.commit(protocol(1, 4))
    made.commit(made.add("b.parquet", [2]))
    return made


def head(table: ChangeTable, version: int) -> tuple[int, str]:
    found = load_head(open_store(table.url), version)
    return found[0].min_writer_version, found[1].configuration["n"]


def test_the_newest_of_each_holds(table: ChangeTable) -> None:
    """ "The latest `protocol` action seen wins", "The latest `metaData` action seen wins" """
    assert [head(table, version) for version in range(5)] == [(2, "0"), (2, "0"), (2, "2"), (4, "2"), (4, "2")]


def test_what_is_older_comes_from_a_checkpoint(table: ChangeTable) -> None:
    write_checkpoint_at(load_snapshot(open_store(table.url), 2))
    for version in range(3):
        (table.root / "_delta_log" / f"{version:020d}.json").unlink()
    assert head(table, 4) == (4, "2")
    assert head(table, 2) == (2, "2")
    with pytest.raises(NotFound):
        head(table, 1)


def test_a_damaged_checkpoint_is_passed_over(table: ChangeTable) -> None:
    (table.root / "_delta_log" / f"{3:020d}.checkpoint.parquet").write_bytes(b"PAR1xxxxPAR1")
    with warnings.catch_warnings(record=True):
        assert head(table, 4) == (4, "2")


def test_a_log_without_a_protocol(tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(metadata())
    with pytest.raises(CorruptTable) as caught:
        load_head(open_store(table.url), 0)
    assert caught.value.code == "no-protocol"


class Reads(MemoryStore):
    """Notes which objects are read."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "/t")
        self.reads: list[str] = []

    def get(self, path: str) -> bytes:
        self.reads.append(path)
        return super().get(path)


def put(store: MemoryStore, version: int, *actions: dict[str, object]) -> None:
    store.put(commit_path(version), "\n".join(map(json.dumps, actions)).encode())


def test_no_more_of_the_log_is_read_than_tells() -> None:
    store = Reads("head-reads")
    put(store, 0, protocol(1, 2), metadata(properties={"n": "0"}))
    put(store, 1, metadata(properties={"n": "1"}))
    put(store, 2, protocol(1, 3))
    put(store, 3, {"txn": {"appId": "a", "version": 1}})
    put(store, 4, protocol(1, 4), metadata(properties={"n": "4"}))
    for version, last, writer, n in ((0, 0, 2, "0"), (1, 0, 2, "1"), (2, 1, 3, "1"), (3, 1, 3, "1"), (4, 4, 4, "4")):
        store.reads.clear()
        found = load_head(store, version)
        assert (found[0].min_writer_version, found[1].configuration["n"]) == (writer, n)
        assert [path for path in store.reads if path.endswith(".json")] == [
            commit_path(v) for v in range(version, last - 1, -1)
        ]


@pytest.mark.parametrize(
    ("actions", "code", "word"),
    [
        ([metadata()], "no-protocol", "protocol"),
        ([protocol()], "no-metadata", "metaData"),
        ([], "no-protocol", "protocol"),
    ],
)
def test_a_log_that_says_one_of_both(actions: list[dict[str, object]], code: str, word: str) -> None:
    store = MemoryStore(f"head-{code}-{len(actions)}", "/t")
    put(store, 0, *actions, {"txn": {"appId": "a", "version": 1}})
    put(store, 1, {"txn": {"appId": "a", "version": 2}})
    with pytest.raises(CorruptTable) as caught:
        load_head(store, 1)
    assert (caught.value.code, caught.value.version) == (code, 1)
    assert f"up to version 1 holds no {word} action" in caught.value.message


def test_what_a_checkpoint_says_counts_less_than_what_came_behind_it(table: ChangeTable) -> None:
    store = open_store(table.url)
    write_checkpoint_at(load_snapshot(store, 1))
    for version in range(2):
        (table.root / "_delta_log" / f"{version:020d}.json").unlink()
    # The description behind it, the protocol out of it; and the other way round.
    assert [head(table, version) for version in (1, 2, 3)] == [(2, "0"), (2, "2"), (4, "2")]
