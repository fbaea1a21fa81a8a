"""A writer that stands still before its put, until its number has been given to another commit, which was cleaned."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.commit.loop import Entry
from alluvium.delta.commit import late
from alluvium.delta.commit.late import Moment
from alluvium.delta.commit.port import DeltaPort
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import LOG_DIRECTORY, commit_path
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict, CommitUnknown
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "t"))


@pytest.fixture(autouse=True)
def every_commit_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "QUICK_S", 0.0)


def append(store: Store, *ids: int) -> None:
    for n in ids:
        commit_rows(open_target(store), [n])


def ids(store: Store) -> list[int]:
    return sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist())


def commits(store: Store) -> list[int]:
    names = (info.path.rpartition("/")[2] for info in store.list_from(LOG_DIRECTORY))
    return [int(name[:20]) for name in names if name[20:] == ".json"]


def clean(store: Store, at: int, keeps_own: bool) -> None:
    """What a clean-up leaves: a checkpoint, with its commit or (other engines) without, and what came after it."""
    snapshot = load_snapshot(store, at)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)
    for version in range(at if keeps_own else at + 1):
        store.delete(commit_path(version))


def age(store: Store, by_s: float = 60) -> None:
    """All that is there becomes older, by the store's clock."""
    for path in Path(store.url.removeprefix("file:"), LOG_DIRECTORY).iterdir():
        at = path.stat().st_mtime - by_s
        os.utime(path, (at, at))


def stand_still(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """What others do before the next put, once."""
    publish = DeltaPort.publish

    def later(self: DeltaPort, entry: Entry) -> PutOutcome:
        monkeypatch.setattr(DeltaPort, "publish", publish)
        meanwhile()
        return publish(self, entry)

    monkeypatch.setattr(DeltaPort, "publish", later)


def put_then(monkeypatch: pytest.MonkeyPatch, store: Store, afterwards: Callable[[], None]) -> None:
    """What others do behind the next put, once."""
    put = type(store).put_if_absent

    def first(self: Store, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        done = put(self, path, data, makes_directory)
        monkeypatch.setattr(type(store), "put_if_absent", put)
        afterwards()
        return done

    monkeypatch.setattr(type(store), "put_if_absent", first)


@pytest.mark.parametrize("more", [0, 1], ids=["newest", "followed"])
@pytest.mark.parametrize("keeps_own", [True, False], ids=["commit kept", "checkpoint alone"])
@pytest.mark.parametrize("replaced", [None, Replace()], ids=["append", "overwrite"])
def test_a_commit_that_comes_too_late_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, more: int, keeps_own: bool, replaced: Replace | None
) -> None:
    append(store, 0)
    # With the commit kept, the number must lie before the checkpoint's to be free again.
    at = 2 if keeps_own else 1

    def others() -> None:
        append(store, *range(1, at + more + 1))
        clean(store, at, keeps_own)
        age(store)

    stand_still(monkeypatch, others)
    with pytest.raises(CommitConflict) as caught:
        commit_rows(open_target(store), [7], replace=replaced)
    assert caught.value.code == "base-expired"
    assert ids(store) == list(range(at + more + 1))
    assert commits(store) == list(range(at if keeps_own else at + 1, at + more + 1))


def test_a_first_commit_that_comes_too_late_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def others() -> None:
        append(store, 0, 1, 2)
        clean(store, 2, keeps_own=True)
        age(store)

    stand_still(monkeypatch, others)
    with pytest.raises(CommitConflict, match="no table, on which this was made"):
        append(store, 7)
    assert ids(store) == [0, 1, 2] and commits(store) == [2]


@pytest.mark.parametrize("more", [0, 1])
def test_a_commit_that_others_go_on_from_stands(store: Store, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """That the one before it was cleaned says nothing by itself, nor does a checkpoint of its own."""
    append(store, 0)

    def others() -> None:
        age(store)
        for n in range(more):
            append(store, 10 + n)
        monkeypatch.setattr(late, "QUICK_S", 0.0)
        age(store, by_s=-1)
        older = Path(store.url.removeprefix("file:"), commit_path(1))
        os.utime(older, (older.stat().st_mtime - 30,) * 2)
        clean(store, 1, keeps_own=True)

    put_then(monkeypatch, store, others)
    append(store, 7)
    assert ids(store) == [0, 7, *range(10, 10 + more)]


def test_two_commits_of_one_moment_are_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    append(store, 0)

    def others() -> None:
        append(store, 1)
        clean(store, 1, keeps_own=True)
        for path in Path(store.url.removeprefix("file:"), LOG_DIRECTORY).iterdir():
            os.utime(path, (1_000_000_000, 1_000_000_000))

    put_then(monkeypatch, store, others)
    with pytest.raises(CommitUnknown, match="the same moment"):
        append(store, 7)
    assert ids(store) == [0, 1, 7]


def test_a_commit_that_was_cleaned_at_once_is_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    append(store, 0)

    def others() -> None:
        append(store, 1)
        clean(store, 2, keeps_own=True)

    put_then(monkeypatch, store, others)
    with pytest.raises(CommitUnknown, match="and so was it"):
        append(store, 7)
    assert ids(store) == [0, 1, 7]


@pytest.mark.parametrize(
    ("running_s", "of_day_s", "is_long"),
    [(0.5, 0.5, False), (1.5, 0.5, True), (0.5, 1.5, True), (0.5, -0.5, True), (0.0, 0.0, False), (1.0, 0.0, True)],
    ids=["quick", "slow", "asleep", "clock set back", "at once", "just slow"],
)
def test_which_commits_ask(monkeypatch: pytest.MonkeyPatch, running_s: float, of_day_s: float, is_long: bool) -> None:
    monkeypatch.setattr(late, "QUICK_S", 1.0)
    then = Moment(100.0, 1_000.0)
    monkeypatch.setattr(Moment, "now", classmethod(lambda cls: cls(100.0 + running_s, 1_000.0 + of_day_s)))
    assert then.is_long_ago() is is_long


def test_a_quick_commit_asks_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a request more, nor a word about commits that nobody can have cleaned meanwhile."""
    monkeypatch.setattr(late, "QUICK_S", 60.0)
    append(store, 0)
    asked: list[str] = []
    head = type(store).head
    monkeypatch.setattr(type(store), "head", lambda self, path: (asked.append(path), head(self, path))[1])
    append(store, 1)
    assert commit_path(0) not in asked and ids(store) == [0, 1]


@pytest.mark.parametrize("more", [1, 2], ids=["the newest", "one in between"])
def test_a_draft_learns_that_a_later_commit_was_cleaned(store: Store, more: int) -> None:
    """Of the newest version too, of which nothing but its checkpoint is left: nobody can tell what it did."""
    append(store, 0)
    target = open_target(store)
    append(store, *range(1, more + 1))
    snapshot = load_snapshot(store, 1)
    write_checkpoint(store, snapshot.state, CheckpointOptions(0, 0), snapshot.files)
    store.delete(commit_path(1))
    with pytest.raises(CommitConflict) as caught:
        commit_rows(target, [7])
    assert caught.value.code == "base-expired"
    assert ids(store) == list(range(more + 1))
