"""Consumers: who reads on where, who is forgotten, and what holds snapshots back; names that lead nowhere else."""

from __future__ import annotations

import json
import uuid

import pytest

from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.log.consumers import (
    Consumer,
    clear_consumers,
    expire_consumers,
    least_next_snapshot,
    list_consumers,
    reset_consumer,
)
from alluvium.paimon.log.names import directory, ensure_name, is_there, list_branches, list_numbers, read_file
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(str(uuid.uuid4()), "t")


@pytest.mark.parametrize("branch", ["main", "b"])
def test_readers_of_a_branch(store: MemoryStore, branch: str) -> None:
    assert list_consumers(store, branch) == [] and least_next_snapshot(store, branch) is None
    for name, number in (("two", 7), ("one", 3), ("zero", 0)):
        reset_consumer(store, name, number, branch)
    assert list_consumers(store, branch) == [Consumer("one", 3), Consumer("two", 7), Consumer("zero", 0)]
    folder = "consumer" if branch == "main" else "branch/branch-b/consumer"
    assert json.loads(store.get(f"{folder}/consumer-two")) == {"nextSnapshot": 7}
    assert list_consumers(store, "b" if branch == "main" else "main") == []
    assert least_next_snapshot(store, branch) == 0
    reset_consumer(store, "zero", None, branch)
    reset_consumer(store, "never", None, branch)
    assert least_next_snapshot(store, branch) == 3
    for name, number in (("a/b", 1), ("..", 1), ("", 1), ("x", -1)):
        with pytest.raises(InvalidRequest) as caught:
            reset_consumer(store, name, number, branch)
        assert caught.value.code == ("invalid-version" if number < 0 else "invalid-name")


@pytest.mark.parametrize(
    ("including", "excluding", "gone"),
    [
        (None, None, ["a1", "a2", "b1"]),
        ("", " ", ["a1", "a2", "b1"]),
        ("a.*", None, ["a1", "a2"]),
        ("a", None, []),
        (None, ".*1", ["a2"]),
        (None, "1", ["a1", "a2", "b1"]),
        ("a.*", "a2", ["a1"]),
    ],
)
def test_who_is_forgotten(store: MemoryStore, including: str | None, excluding: str | None, gone: list[str]) -> None:
    for name in ("a1", "a2", "b1"):
        reset_consumer(store, name, 1)
    store.put("consumer/other", b"")
    assert clear_consumers(store, including, excluding) == gone
    assert [one.name for one in list_consumers(store)] == [n for n in ("a1", "a2", "b1") if n not in gone]
    assert is_there(store, "consumer/other")
    for wrong in ({"including": "("}, {"excluding": "["}):
        with pytest.raises(InvalidRequest) as caught:
            clear_consumers(store, **wrong)
        assert caught.value.code == "invalid-expression"


def test_those_that_have_not_come_on(store: MemoryStore) -> None:
    reset_consumer(store, "old", 1)
    modified = store.head("consumer/consumer-old").modified_ms
    assert expire_consumers(store, modified) == []
    assert expire_consumers(store, modified + 1) == ["old"]
    assert list_consumers(store) == []


@pytest.mark.parametrize("data", [b"", b"{}", b'{"nextSnapshot": "7"}', b'{"next_snapshot": 7}', b"[]", b"\xff"])
def test_damage_is_told(store: MemoryStore, data: bytes) -> None:
    store.put("consumer/consumer-x", data)
    with pytest.raises(CorruptTable) as caught:
        least_next_snapshot(store)
    assert (caught.value.code, caught.value.path) == ("invalid-consumer", "consumer/consumer-x")


@pytest.mark.parametrize(
    ("name", "good"),
    [("a", True), ("a.b-c_1", True), ("...", True), ("..a", True), ("", False), (".", False), ("..", False), ("a/b", False), ("a\\b", False), ("a\0", False)],
)  # fmt: skip
def test_names_in_paths(name: str, good: bool) -> None:
    if good:
        assert ensure_name(name, "tag") == name and directory(name, "tag") == f"branch/branch-{name}/tag"
        return
    for call in (lambda: ensure_name(name, "tag"), lambda: directory(name, "schema")):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.code == "invalid-name"


def test_files_by_their_numbers(store: MemoryStore) -> None:
    for text in (
        "0",
        "7",
        "10",
        "9223372036854775807",
        "9223372036854775808",
        "01",
        "-1",
        "+1",
        "x",
        "",
        "1x",
        "1.tmp",
        "٣",
    ):
        store.put(f"snapshot/snapshot-{text}", b"")
    for other in ("snapshot/LATEST", "snapshot/xsnapshot-5", "other/snapshot-6"):
        store.put(other, b"")
    assert list_numbers(store, "snapshot", "snapshot-") == [0, 7, 10, (1 << 63) - 1]
    assert list_numbers(store, "nowhere", "snapshot-") == []


def test_branches_and_files_that_are_there(store: MemoryStore) -> None:
    for path in ("branch/branch-b/schema/schema-0", "branch/branch-a/snapshot/snapshot-1", "branch/branch-c/tag/tag-x",
                 "branch/branch-d/consumer/consumer-x", "branch/branch-e", "branch/other-f/schema/schema-0"):  # fmt: skip
        store.put(path, b"data")
    assert list_branches(store) == ["a", "b", "c"]
    missing = NotFound("gone", code="mine")
    assert read_file(store, "branch/branch-e", missing) == b"data"
    with pytest.raises(NotFound) as caught:
        read_file(store, "nothing", missing)
    assert caught.value is missing
    assert (is_there(store, "branch/branch-e"), is_there(store, "nothing")) == (True, False)
