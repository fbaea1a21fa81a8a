"""A writer that stands still before its put, until its number has been given to another snapshot, which has expired."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, ks, open_target

import alluvium
from alluvium.commit.loop import Entry
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.port import PaimonPort
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    return open_store(str(tmp_path / "t"))


def commit(store: Store, k: int, replaced: Replace | None = None) -> int:
    return append(open_target(store), [{"k": k}], replaced).version


def expire_all_but_last(store: Store) -> None:
    PaimonTable.forPath(store.url).expire_snapshots(retain_max=1, retain_min=1)


def snapshots(store: Store) -> list[int]:
    return alluvium.open(store.url).system("snapshots")["snapshot_id"].to_pylist()


def stand_still(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """What others do before the next put, once."""
    publish = PaimonPort.publish

    def late(self: PaimonPort, entry: Entry) -> PutOutcome:
        monkeypatch.setattr(PaimonPort, "publish", publish)
        meanwhile()
        return publish(self, entry)

    monkeypatch.setattr(PaimonPort, "publish", late)


@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("meanwhile", [2, 3])
def test_rows_that_come_too_late_come_behind_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: int, meanwhile: int
) -> None:
    for k in range(before):
        commit(store, k)

    def others() -> None:
        for k in range(meanwhile):
            commit(store, 10 + k)
        expire_all_but_last(store)
        age(store)

    stand_still(monkeypatch, others)
    assert commit(store, 7) == before + meanwhile + 1
    assert snapshots(store) == [before + meanwhile, before + meanwhile + 1]
    assert sorted(ks(store)) == [*range(before), 7, *range(10, 10 + meanwhile)]


def age(store: Store, by_s: float = 60) -> None:
    """All that is there becomes older, by the store's clock."""
    for path in Path(store.url.removeprefix("file:"), "snapshot").glob("snapshot-*"):
        at = path.stat().st_mtime - by_s
        os.utime(path, (at, at))


def test_what_may_not_come_later_is_refused_and_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1)

    def others() -> None:
        commit(store, 2)
        commit(store, 3)
        expire_all_but_last(store)
        age(store)

    stand_still(monkeypatch, others)
    with pytest.raises(CommitConflict):
        commit(store, 7, Replace())
    assert snapshots(store) == [3] and sorted(ks(store)) == [1, 2, 3]


def put_then(monkeypatch: pytest.MonkeyPatch, store: Store, afterwards: Callable[[], None]) -> None:
    """What others do behind the next put, once."""
    put = type(store).put_behind

    def first(self: Store, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        done = put(self, parts, path, data)
        if "/snapshot-" in f"/{path}":
            monkeypatch.setattr(type(store), "put_behind", put)
            afterwards()
        return done

    monkeypatch.setattr(type(store), "put_behind", first)


def others_go_on(store: Store, more: int, stay: int) -> None:
    age(store)
    for k in range(more):
        commit(store, 10 + k)
    PaimonTable.forPath(store.url).expire_snapshots(retain_max=stay, retain_min=1)


@pytest.mark.parametrize("more", [0, 1])
def test_a_snapshot_that_others_go_on_from_stands(store: Store, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """That the one before it has expired says nothing by itself."""
    commit(store, 1)
    put_then(monkeypatch, store, lambda: others_go_on(store, more, stay=more + 1))
    assert commit(store, 7) == 2
    assert sorted(ks(store)) == [1, 7, *range(10, 10 + more)]


def test_a_snapshot_that_has_expired_at_once_is_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1)
    put_then(monkeypatch, store, lambda: others_go_on(store, 2, stay=1))
    with pytest.raises(CommitUnknown, match="one of them has expired"):
        commit(store, 7)
    # It stood: of one that did not nothing would tell it from this one.
    assert sorted(ks(store)) == [1, 7, 10, 11]


def test_two_snapshots_of_one_moment_are_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1)

    def others() -> None:
        commit(store, 2)
        PaimonTable.forPath(store.url).expire_snapshots(retain_max=2, retain_min=2)
        for path in Path(store.url.removeprefix("file:"), "snapshot").glob("snapshot-*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))

    put_then(monkeypatch, store, others)
    with pytest.raises(CommitUnknown, match="the same moment"):
        commit(store, 7)


def rows_of(store: Store) -> list[int]:
    return sorted(ks(store))


def take_back(store: Store, again: int) -> None:
    PaimonTable.forPath(store.url).rollback_to(1)
    for k in range(again):
        commit(store, 10 + k)


@pytest.mark.parametrize("again", [0, 1, 2], ids=["taken back", "one since", "two since"])
def test_what_an_append_was_made_on_is_taken_back(store: Store, monkeypatch: pytest.MonkeyPatch, again: int) -> None:
    """A snapshot that goes on from one that was taken back would bring its rows back, and lose those since."""
    for k in (1, 2, 3):
        commit(store, k)
    stand_still(monkeypatch, lambda: take_back(store, again))
    assert commit(store, 7) == 2 + again
    assert sorted(ks(store)) == [1, 7, *range(10, 10 + again)]
    assert snapshots(store) == list(range(1, 3 + again))


@pytest.mark.parametrize("again", [0, 1, 2], ids=["taken back", "one since", "two since"])
def test_what_was_read_is_taken_back(store: Store, monkeypatch: pytest.MonkeyPatch, again: int) -> None:
    for k in (1, 2, 3):
        commit(store, k)
    stand_still(monkeypatch, lambda: take_back(store, again))
    with pytest.raises(CommitConflict, match="rolled back or made anew"):
        commit(store, 7, Replace())
    assert sorted(ks(store)) == [1, *range(10, 10 + again)]
    assert snapshots(store) == list(range(1, 2 + again))


def test_a_snapshot_between_two_of_another_history_is_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in (1, 2, 3):
        commit(store, k)

    def behind() -> None:
        """By the time the put is answered another writer goes on from what it put."""
        commit(store, 20)

    def others() -> None:
        take_back(store, 1)
        put_then(monkeypatch, store, behind)

    stand_still(monkeypatch, others)
    with pytest.raises(CommitUnknown, match="was taken back"):
        commit(store, 7)


def drop(store: Store) -> None:
    shutil.rmtree(store.url.removeprefix("file:"))


def make_anew(store: Store) -> None:
    drop(store)
    time.sleep(0.002)
    PaimonTable.create(store.url, pa.schema([("k", pa.int32())]))


def everything(store: Store) -> list[Path]:
    return [path for path in Path(store.url.removeprefix("file:")).rglob("*") if path.is_file()]


@pytest.mark.parametrize("before", [0, 1, 3], ids=["first", "second", "fourth"])
def test_a_table_that_was_dropped_has_taken_no_rows(store: Store, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """The put of a writer that stood still makes a folder of its own, and was told as committed."""
    for k in range(before):
        commit(store, k)
    stand_still(monkeypatch, lambda: drop(store))
    with pytest.raises(NotFound):
        commit(store, 7)
    assert not [path for path in everything(store) if path.parent.name in ("snapshot", "manifest")]


@pytest.mark.parametrize("before", [0, 1, 3], ids=["first", "second", "fourth"])
@pytest.mark.parametrize("since", [0, 1], ids=["empty", "with rows"])
def test_a_table_that_was_made_anew_is_left_as_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: int, since: int
) -> None:
    """Its schema may look alike: it was made at another time."""
    for k in range(before):
        commit(store, k)

    def others() -> None:
        make_anew(store)
        for k in range(since):
            commit(store, 10 + k)

    stand_still(monkeypatch, others)
    with pytest.raises(AlluviumError) as told:
        commit(store, 7)
    assert told.value.code == "table-replaced"
    assert snapshots(store) == [1][:since] and sorted(ks(store)) == [10][:since]
