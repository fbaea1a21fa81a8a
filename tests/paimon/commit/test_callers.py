"""Commits that callers have named are known when their snapshots have expired, or nobody says that they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_callers import Killed, commit, expire_all_but_last, kill, seen
from paimon_rows import append, ks, open_target

import alluvium
from alluvium.errors import CommitConflict, CommitUnknown, CorruptTable
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.port import PaimonPort
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store(tmp_path: Path) -> Store:
    PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    return open_store(str(tmp_path / "t"))


def test_a_commit_is_known_after_its_snapshot(store: Store) -> None:
    assert not seen(store, 0)
    commit(store, 1, ("job", 4))
    commit(store, 2)
    assert [seen(store, n) for n in (3, 4, 5)] == [True, True, False]
    commit(store, 3, ("other", 9))
    expire_all_but_last(store)
    assert alluvium.open(store.url).system("snapshots")["commit_user"].to_pylist() == ["other"]
    assert [seen(store, n) for n in (3, 4, 5)] == [True, True, False]
    commit(store, 4, ("job", 5))
    commit(store, 5)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (5, 6)] == [True, False]
    assert seen(store, 9, "other")


def expire_as_others_do(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other engines know nothing of callers' files."""
    with monkeypatch.context() as patched:
        patched.setattr("alluvium.paimon.upkeep.removal.expire.note_expiring", lambda *args: [])
        expire_all_but_last(store)


@pytest.mark.parametrize("after", [True, False], ids=["behind", "before"])
def test_a_writer_that_was_killed(store: Store, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """As long as the snapshots since are there they tell; then nobody does."""
    commit(store, 1, ("job", 4))
    kill(monkeypatch, store, ("job", 5), after=after)
    commit(store, 2)
    assert [seen(store, n) for n in (4, 5, 6)] == [True, after, False]
    commit(store, 3)
    expire_as_others_do(store, monkeypatch)
    assert [seen(store, n) for n in (4, 6)] == [True, False]
    with pytest.raises(CommitUnknown) as caught:
        seen(store, 5)
    assert (caught.value.code, caught.value.version) == ("transaction-unknown", 1)
    assert caught.value.hint is not None
    path = str(caught.value.path)
    # As the hint has it, where the rows are there and where they are not.
    known = store.get(path)
    store.put(path, json.dumps({**json.loads(known), "done": 5}).encode())
    assert seen(store, 5)
    store.delete(path)
    assert not seen(store, 5)


@pytest.mark.parametrize("after", [True, False], ids=["behind", "before"])
@pytest.mark.parametrize("steps", [1, 2], ids=["at once", "in steps"])
def test_who_lets_snapshots_expire_tells_what_became_of_a_writer_that_was_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch, after: bool, steps: int
) -> None:
    commit(store, 1, ("job", 4))
    kill(monkeypatch, store, ("job", 5), after=after)
    for k in range(2, 2 + steps):
        commit(store, k)
        expire_all_but_last(store)
    assert [seen(store, n) for n in (4, 5, 6)] == [True, after, False]
    if not after:
        commit(store, 7, ("job", 5))
    assert seen(store, 5)
    # The next attempt is another one.
    kill(monkeypatch, store, ("job", 6), after=False)
    assert [seen(store, n) for n in (5, 6)] == [True, False]
    commit(store, 9)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (5, 6)] == [True, False]
    assert sorted(ks(store)) == sorted([1, 7, 9, *range(2, 2 + steps)])


def test_snapshots_that_expired_before_a_writer_had_noted_its_commit_are_none_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, 1)
    put, refresh, slow = type(store).put, PaimonPort.refresh, [2, 1]

    def put_late(self: Store, path: str, *args: object, **more: object) -> object:
        if "alluvium-callers" in path and slow:
            with monkeypatch.context() as others:
                others.setattr(PaimonPort, "refresh", refresh)
                for k in range(slow.pop(0)):
                    commit(store, 10 + k)
                    expire_all_but_last(store)
        return put(self, path, *args, **more)

    def die(self: PaimonPort, base: Snapshot) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "put", put_late)
        patched.setattr(PaimonPort, "refresh", die)
        with pytest.raises(Killed):
            commit(store, 7, ("job", 5))
    for k in (30, 31):
        commit(store, k)
        expire_all_but_last(store)
    assert not slow and not seen(store, 5)


def test_snapshots_that_others_let_expire_are_not_counted_as_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(monkeypatch, store, ("job", 1), after=True)
    commit(store, 2)
    commit(store, 3)
    expire_as_others_do(store, monkeypatch)
    commit(store, 4)
    expire_all_but_last(store)
    with pytest.raises(CommitUnknown):
        seen(store, 1)


def test_what_was_seen_of_a_snapshot_is_forgotten_with_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table = PaimonTable.forPath(store.url)
    commit(store, 1)
    table.create_tag("old")
    kill(monkeypatch, store, ("job", 1), after=True)
    commit(store, 2)
    expire_all_but_last(store)
    assert seen(store, 1)
    table.rollback_to("old")
    assert not seen(store, 1)
    for k in (3, 4, 5):
        commit(store, k)
        expire_all_but_last(store)
        assert not seen(store, 1)


def test_an_attempt_that_failed_is_over(store: Store) -> None:
    commit(store, 1)
    late = open_target(store)
    commit(store, 2)
    with pytest.raises(CommitConflict):
        append(late, [{"k": 3}], Replace(), txn=("job", 1))
    commit(store, 4)
    expire_all_but_last(store)
    assert not seen(store, 1)


def test_what_a_rollback_took_back_is_written_again(store: Store) -> None:
    commit(store, 1)
    commit(store, 2, ("job", 1))
    PaimonTable.forPath(store.url).rollback_to(1)
    assert not seen(store, 1)
    commit(store, 3)
    assert not seen(store, 1)
    commit(store, 2, ("job", 1))
    assert seen(store, 1)


def test_a_rollback_is_not_forgotten_with_the_snapshots_that_came_in_the_place_of_others(store: Store) -> None:
    """Numbers are given again, and expire again: of a commit that was taken back nobody would know it any more."""
    commit(store, 1, ("early", 1))
    commit(store, 2, ("job", 1))
    PaimonTable.forPath(store.url).rollback_to(1)
    commit(store, 3)
    commit(store, 4)
    expire_all_but_last(store)
    assert not seen(store, 1)
    assert seen(store, 1, "early")
    commit(store, 2, ("job", 1))
    assert ks(store) == [1, 2, 3, 4] and seen(store, 1)


def test_a_rollback_leaves_what_the_same_caller_committed_before(store: Store) -> None:
    """The caller's file names the newest alone."""
    commit(store, 1, ("job", 1))
    commit(store, 2, ("job", 2))
    PaimonTable.forPath(store.url).rollback_to(1)
    commit(store, 3)
    commit(store, 4)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (1, 2)] == [True, False]


def test_a_rollback_behind_what_has_expired_leaves_nobody_sure_of_it(store: Store) -> None:
    commit(store, 1, ("job", 1))
    commit(store, 2)
    expire_all_but_last(store)
    assert seen(store, 1)
    commit(store, 3, ("job", 2))
    PaimonTable.forPath(store.url).rollback_to(2)
    assert not seen(store, 2)
    with pytest.raises(CommitUnknown, match="taken back") as caught:
        seen(store, 1)
    assert (caught.value.code, caught.value.version) == ("transaction-unknown", 2)
    commit(store, 4, ("job", 2))
    assert [seen(store, n) for n in (1, 2, 3)] == [True, True, False]
    # Where all is taken back at once, what is before the first of it is in doubt.
    commit(store, 5, ("job", 3))
    PaimonTable.forPath(store.url).rollback_to(2)
    assert [seen(store, n) for n in (2, 3)] == [False, False]
    with pytest.raises(CommitUnknown):
        seen(store, 1)


def test_a_rollback_by_others_leaves_nobody_sure_of_what_came_before(store: Store) -> None:
    commit(store, 1, ("job", 3))
    commit(store, 2)
    expire_all_but_last(store)
    commit(store, 3, ("job", 4))
    store.delete("snapshot/snapshot-3")
    store.put("snapshot/LATEST", b"2")
    commit(store, 4)
    assert not seen(store, 4)
    with pytest.raises(CommitUnknown):
        seen(store, 3)


def test_an_attempt_that_failed_leaves_an_earlier_one_that_was_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(monkeypatch, store, ("job", 4), after=True)
    late = open_target(store)
    commit(store, 2)
    with pytest.raises(CommitConflict):
        append(late, [{"k": 3}], Replace(), txn=("job", 5))
    commit(store, 5)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (4, 5)] == [True, False]


def test_a_later_commit_of_a_caller_tells_of_one_that_was_killed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others, who know nothing of our files, went on by the caller's name."""
    commit(store, 1)
    kill(monkeypatch, store, ("job", 4), after=False)
    with monkeypatch.context() as patched:
        for name in ("begin", "stands"):
            patched.setattr(f"alluvium.paimon.write.target.{name}", lambda *args: None)
        commit(store, 2, ("job", 5))
    commit(store, 3)
    expire_all_but_last(store)
    assert seen(store, 4)


@pytest.mark.parametrize("after", [True, False], ids=["behind", "before"])
@pytest.mark.parametrize("by_others", [True, False], ids=["by others", "by us"])
def test_a_caller_goes_on_behind_a_commit_that_was_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch, after: bool, by_others: bool
) -> None:
    """The next one in the making does not take the place of what became of it."""
    commit(store, 1, ("job", 4))
    kill(monkeypatch, store, ("job", 5), after=after)
    commit(store, 2)
    if by_others:
        with monkeypatch.context() as patched:
            for name in ("begin", "stands"):
                patched.setattr(f"alluvium.paimon.write.target.{name}", lambda *args: None)
            commit(store, 3, ("job", 6))
    kill(monkeypatch, store, ("job", 7), after=False)
    assert [seen(store, n) for n in (4, 5, 6, 7)] == [True, after or by_others, by_others, False]
    commit(store, 4)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (4, 5, 6, 7)] == [True, after or by_others, by_others, False]


def test_nobody_knows_of_a_commit_that_was_killed_once_others_let_its_snapshot_expire(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, 1, ("job", 4))
    kill(monkeypatch, store, ("job", 5), after=True)
    commit(store, 2)
    expire_as_others_do(store, monkeypatch)
    kill(monkeypatch, store, ("job", 6), after=False)
    with pytest.raises(CommitUnknown):
        seen(store, 5)
    assert [seen(store, 4), seen(store, 6)] == [True, False]


def test_a_rollback_takes_what_was_begun_behind_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1, ("job", 1))
    commit(store, 2)
    kill(monkeypatch, store, ("job", 2), after=True)
    PaimonTable.forPath(store.url).rollback_to(1)
    for k in (3, 4, 5):
        commit(store, k)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (1, 2)] == [True, False]


def test_a_rollback_by_others_leaves_nobody_sure(store: Store) -> None:
    """Theirs know nothing of our files, but what the snapshot alone named stays, as it does not when one expires."""
    commit(store, 1)
    commit(store, 2, ("job", 4))
    store.delete("snapshot/snapshot-2")
    store.put("snapshot/LATEST", b"1")
    commit(store, 3)
    commit(store, 4)
    expire_all_but_last(store)
    with pytest.raises(CommitUnknown) as caught:
        seen(store, 4)
    assert caught.value.code == "transaction-unknown"
    assert not seen(store, 5)
    commit(store, 5, ("job", 5))
    assert [seen(store, n) for n in (4, 5)] == [True, True]


def test_what_a_tag_keeps_stood(store: Store) -> None:
    """Its manifests stay with it, though it has expired."""
    commit(store, 1, ("job", 4))
    PaimonTable.forPath(store.url).create_tag("kept")
    commit(store, 2)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (4, 5)] == [True, False]


def test_a_branch_that_the_table_goes_on_as(store: Store) -> None:
    """What was committed to it is, and what it leaves behind is not."""
    commit(store, 1, ("both", 1))
    table = PaimonTable.forPath(store.url)
    table.create_tag("start")
    table.create_branch("b", "start")
    commit(store, 2, ("main", 1))
    branch = replace(open_target(store), snapshot=load_snapshot(store, At(), "b"))
    append(branch, [{"k": 3}], txn=("branch", 1))
    table.fast_forward("b")
    commit(store, 4)
    commit(store, 5)
    expire_all_but_last(store)
    assert [seen(store, 1, user) for user in ("both", "main", "branch")] == [True, False, True]


def test_what_was_committed_before_a_branch_is_known_where_the_table_goes_on_as_it(store: Store) -> None:
    """The caller has a commit in the making on the branch, and one that stands on the main one."""
    commit(store, 1, ("job", 1))
    table = PaimonTable.forPath(store.url)
    commit(store, 2)
    expire_all_but_last(store)
    table.create_tag("start")
    table.create_branch("b", "start")
    branch = replace(open_target(store), snapshot=load_snapshot(store, At(), "b"))
    append(branch, [{"k": 3}])
    late = replace(open_target(store), snapshot=load_snapshot(store, At(), "b"))
    append(branch, [{"k": 4}])
    with pytest.raises(CommitConflict):
        append(late, [{"k": 5}], Replace(), txn=("job", 2))
    table.fast_forward("b")
    assert [seen(store, n) for n in (1, 2)] == [True, False]


def test_a_branch_knows_what_stood_when_it_began_where_the_main_one_went_back_since(store: Store) -> None:
    table = PaimonTable.forPath(store.url)
    commit(store, 1)
    commit(store, 2, ("job", 1))
    commit(store, 3)
    table.create_tag("start")
    table.create_branch("b", "start")
    table.rollback_to(1)
    assert not seen(store, 1)
    table.fast_forward("b")
    assert ks(store) == [1, 2, 3]
    assert [seen(store, n) for n in (1, 2)] == [True, False]
    commit(store, 4)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (1, 2)] == [True, False]


def test_what_stood_on_the_main_branch_below_another_history_does_not_stand_there(store: Store) -> None:
    table = PaimonTable.forPath(store.url)
    for k in (1, 2, 3):
        commit(store, k)
    table.create_tag("start")
    table.create_branch("b", "start")
    table.rollback_to(1)
    commit(store, 4, ("job", 1))
    table.fast_forward("b")
    assert ks(store) == [1, 2, 3]
    assert not seen(store, 1)


def test_a_branch_of_a_caller_that_was_killed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What became of its commit is told when the branch is made, or nobody knows it there."""
    table = PaimonTable.forPath(store.url)
    commit(store, 1)
    kill(monkeypatch, store, ("job", 1), after=True)
    kill(monkeypatch, store, ("other", 1), after=False)
    commit(store, 2)
    table.create_tag("start")
    expire_as_others_do(store, monkeypatch)
    kill(monkeypatch, store, ("later", 1), after=True)
    table.create_branch("b", "start")
    table.fast_forward("b")
    with pytest.raises(CommitUnknown):
        seen(store, 1)
    # Between the state that it began on and the branch nothing has expired.
    assert [seen(store, 1, user) for user in ("other", "later")] == [False, False]


def test_what_stood_before_a_branch_is_in_doubt_where_the_table_goes_back_behind_it(store: Store) -> None:
    """It stood, but nobody can tell where any more."""
    table = PaimonTable.forPath(store.url)
    commit(store, 1, ("job", 1))
    commit(store, 2)
    commit(store, 3)
    table.create_tag("start")
    table.create_branch("b", "start")
    table.fast_forward("b")
    commit(store, 4)
    table.expire_snapshots(retain_max=3, retain_min=1)
    assert seen(store, 1)
    table.rollback_to(2)
    with pytest.raises(CommitUnknown):
        seen(store, 1)


class Expiring(MemoryStore):
    """While it is read the snapshots below a number expire."""

    def __init__(self, table: Store, first: int) -> None:
        super().__init__(f"expiring-{first}", "/t")
        self._gone = {f"snapshot/snapshot-{n}" for n in range(1, first)}
        for info in table.list_tree(""):
            self.put(info.path, table.get(info.path))

    def get(self, path: str) -> bytes:
        if path in self._gone:
            self.delete(path)
        return super().get(path)


def test_snapshots_that_expire_while_they_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1)
    kill(monkeypatch, store, ("job", 1), after=True)
    commit(store, 2)
    for user in ("job", "nobody"):
        assert seen(Expiring(store, 1), 1, user) is (user == "job")
    assert not seen(Expiring(store, 3), 1, "nobody")
    with pytest.raises(CommitUnknown):
        seen(Expiring(store, 3), 1)


def test_damage_is_told(store: Store) -> None:
    commit(store, 1, ("job", 1))
    (path,) = [info.path for info in store.list_tree("alluvium-callers")]
    store.put(path, b"{")
    with pytest.raises(CorruptTable) as caught:
        seen(store, 1)
    assert (caught.value.code, caught.value.path) == ("damaged-callers", path)
