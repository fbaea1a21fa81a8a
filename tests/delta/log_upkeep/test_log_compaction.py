"""Specification: "Log Compaction Files"."""

from __future__ import annotations

import uuid

import pytest
from delta_values import LEGACY, make_metadata

from alluvium.delta.log.names import commit_path, compacted_path
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.terms.spec import (
    Add,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Protocol,
    Remove,
    RowIdHighWaterMark,
    Txn,
    format_actions,
    parse_actions,
)
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitUnknown, CorruptTable, InvalidRequest, NotFound
from alluvium.storage.store import PutOutcome
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


def test_all_kinds_of_actions(store: MemoryStore) -> None:
    """Of those that replace each other the newest, in one line each."""
    marks = [RowIdHighWaterMark(high_water_mark=n) for n in (3, 4)]
    metadata = [make_metadata(properties={"x": n}) for n in "12"]
    protocol = Protocol(min_reader_version=1, min_writer_version=4)
    store.put(commit_path(7), format_actions([CommitInfo({"a": 1}), marks[0], metadata[0], LEGACY]))
    store.put(commit_path(8), format_actions([marks[1], metadata[1], protocol, CommitInfo({"b": 2})]))
    found = parse_actions(store.get(compact_log(store, 7, 8)))
    assert sorted(map(repr, found)) == sorted(map(repr, [marks[1], metadata[1], protocol]))


def test_files_keep_all_that_is_said_of_them(store: MemoryStore) -> None:
    vector = DeletionVector(storage_type="u", path_or_inline_dv="ab", offset=3, size_in_bytes=4, cardinality=2)
    told = Add(
        path="a%20b", partition_values={"p": None, "q": "x"}, size=5, modification_time=1, data_change=False, stats="{}", tags={"t": "u"},
        deletion_vector=vector, base_row_id=7, default_row_commit_version=3, clustering_provider="c",
    )  # fmt: skip
    gone = Remove(
        path="r", deletion_timestamp=10, data_change=True, size=9, partition_values={}, deletion_vector=vector
    )
    store.put(commit_path(7), format_actions([told]))
    store.put(commit_path(8), format_actions([gone]))
    assert parse_actions(store.get(compact_log(store, 7, 8))) == [told, gone]


@pytest.mark.parametrize(("start", "end", "gone"), [(0, 1, None), (0, 6, 0), (3, 6, 5), (3, 4, None), (6, 7, 7)])
def test_which_commit_is_missing(store: MemoryStore, start: int, end: int, gone: int | None) -> None:
    if gone is not None and gone <= 6:
        store.delete(commit_path(gone))
    if gone is None:
        assert compact_log(store, start, end) == compacted_path(start, end)
        return
    with pytest.raises(NotFound) as caught:
        compact_log(store, start, end)
    error = caught.value
    assert (error.code, error.version, error.path, error.url) == ("missing-version", gone, commit_path(gone), store.url)


def test_ranges_of_fewer_than_two_commits_say_so(store: MemoryStore) -> None:
    for start, end in ((0, 0), (4, 3), (-1, 1)):
        with pytest.raises(InvalidRequest, match=f"not from {start} to {end}") as caught:
            compact_log(store, start, end)
        assert (caught.value.code, caught.value.url) == ("invalid-range", store.url)


@pytest.mark.parametrize("outcome", list(PutOutcome))
def test_a_store_that_does_not_say_whether_it_was_written(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, outcome: PutOutcome
) -> None:
    monkeypatch.setattr(store, "put_if_absent", lambda path, data: outcome)
    if outcome is PutOutcome.UNKNOWN:
        with pytest.raises(CommitUnknown) as caught:
            compact_log(store, 4, 6)
        assert (caught.value.path, caught.value.url) == (compacted_path(4, 6), store.url)
    else:
        assert compact_log(store, 4, 6) == compacted_path(4, 6)


def test_a_description_that_is_damaged_is_told(store: MemoryStore) -> None:
    store.put(commit_path(5), b'{"metaData":{"id":5}}\n')
    with pytest.raises(CorruptTable) as caught:
        compact_log(store, 4, 6)
    assert (caught.value.version, caught.value.path) == (5, commit_path(5))
    assert compacted_path(4, 6) not in {info.path for info in store.list_tree("")}
