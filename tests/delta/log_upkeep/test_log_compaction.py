"""Specification: "Log Compaction Files"."""

from __future__ import annotations

import uuid

import pytest
from delta_values import LEGACY, make_metadata

from alluvium.delta.log.names import commit_path, compacted_path
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.terms.spec import Add, DomainMetadata, Remove, Txn, format_actions, parse_actions
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.storage.stores.memory import MemoryStore


def add(path: str) -> Add:
    return Add(path=path, partition_values={}, size=5, modification_time=1, data_change=True)


def remove(path: str) -> Remove:
    return Remove(path=path, deletion_timestamp=10, data_change=True)


@pytest.fixture
def store() -> MemoryStore:
    """Versions 4 to 6 as in the example of the specification."""
    made = MemoryStore(uuid.uuid4().hex, "table")
    head = [LEGACY, make_metadata(), add("f1")]
    domain = DomainMetadata(domain="d", configuration="", removed=True)
    commits = {
        0: head, 1: [add("f10")], 2: [add("f20")], 3: [add("f30")],
        4: [add("f2"), remove("f1")],
        5: [add("f3"), add("f4"), Txn(app_id="x", version=4389), domain],
        6: [remove("f3"), Txn(app_id="x", version=4390)],
    }  # fmt: skip
    for version, actions in commits.items():
        made.put(commit_path(version), format_actions(actions))
    return made


def test_the_example_of_the_specification(store: MemoryStore) -> None:
    path = compact_log(store, 4, 6)
    assert path == compacted_path(4, 6)
    found = parse_actions(store.get(path))
    assert {a.path for a in found if isinstance(a, Add)} == {"f2", "f4"}
    assert {a.path for a in found if isinstance(a, Remove)} == {"f1", "f3"}
    assert [a for a in found if isinstance(a, Txn)] == [Txn(app_id="x", version=4390)]
    # A domain that was removed before the range would rise from the dead.
    assert [a.domain for a in found if isinstance(a, DomainMetadata)] == ["d"]


def test_it_reads_like_the_commits(store: MemoryStore) -> None:
    before = load_snapshot(store)
    compact_log(store, 0, 6)
    after = load_snapshot(store)
    assert sorted(after.files["path"].to_pylist()) == sorted(before.files["path"].to_pylist())
    assert (after.config, after.state.txns) == (before.config, before.state.txns)


def test_one_that_is_there_stays(store: MemoryStore) -> None:
    store.put(compacted_path(4, 6), b"{}\n")
    compact_log(store, 4, 6)
    assert store.get(compacted_path(4, 6)) == b"{}\n"


@pytest.mark.parametrize(("start", "end"), [(4, 4), (5, 4), (-1, 2)])
def test_the_range(store: MemoryStore, start: int, end: int) -> None:
    """ "`y` must be _greater_ than `x`" """
    with pytest.raises(InvalidRequest):
        compact_log(store, start, end)


def test_commits_that_are_not_there_or_damaged(store: MemoryStore) -> None:
    with pytest.raises(NotFound) as missing:
        compact_log(store, 5, 7)
    assert missing.value.version == 7
    store.put(commit_path(5), b'{"add":5}\n')
    with pytest.raises(CorruptTable):
        compact_log(store, 4, 6)
