"""Documents that expire, and the hints to those that stay: branch by branch, beside consumers and changelogs."""

from __future__ import annotations

import logging
import uuid

import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.errors import NotFound
from alluvium.paimon.log.consumers import reset_consumer
from alluvium.paimon.log.names import list_numbers
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots
from alluvium.paimon.upkeep.life.branches import create_branch
from alluvium.paimon.upkeep.life.tags import create_tag, tag_path
from alluvium.paimon.upkeep.removal.expire import (
    Expired,
    expire_changelogs,
    expire_snapshots,
    point_to,
    repair_earliest,
)
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Replace
from alluvium.storage.store import Store

FAR = 1 << 62
ONE = Retention(1, 1, FAR, FAR)
BRANCHES = {"main": "", "b": "branch/branch-b/"}


@pytest.fixture
def store() -> Store:
    """Four snapshots, and as many of a branch, each in the place of the one before."""
    made = make(f"memory://{uuid.uuid4().hex}/t")
    append(open_target(made), [{"k": 0}])
    create_tag(made, "begin", 1)
    create_branch(made, "b", "begin")
    made.delete(tag_path("begin"))
    made.delete(tag_path("begin", "b"))
    for k in (1, 2, 3):
        append(open_target(made), [{"k": k}], Replace())
        snapshot = load_snapshot(made, At(), "b")
        append(PaimonTarget(made, snapshot.schema, snapshot), [{"k": 10 * k}], Replace())
    return made


def said(store: Store, branch: str, kind: str) -> tuple[list[int], dict[str, str]]:
    """The numbers of a folder's documents, and its hints."""
    folder = f"{BRANCHES[branch]}{kind}"
    hints = {
        name: store.get(f"{folder}/{name}").decode()
        for name in ("EARLIEST", "LATEST")
        if name in store.list_names(folder)
    }
    return list_numbers(store, folder, f"{kind}-"), hints


@pytest.mark.parametrize("branch", ["main", "b"])
def test_snapshots_of_a_branch(store: Store, branch: str) -> None:
    other = "b" if branch == "main" else "main"
    before, untouched = {info.path for info in store.list_tree("")}, said(store, other, "snapshot")
    assert expire_snapshots(store, ONE, branch, dry_run=True) == Expired((1, 2, 3))
    assert {info.path for info in store.list_tree("")} == before
    done = expire_snapshots(store, Retention(2, 2, FAR, FAR), branch)
    # The first is of both: its file stays.
    assert done.ids == (1, 2) and len([path for path in done.paths if path.endswith(".parquet")]) == 1
    assert said(store, branch, "snapshot") == ([3, 4], {"EARLIEST": "3", "LATEST": "4"})
    assert said(store, other, "snapshot") == untouched
    gone = before - {info.path for info in store.list_tree("")}
    assert gone == {*done.paths, *(f"{BRANCHES[branch]}snapshot/snapshot-{n}" for n in (1, 2))}
    assert said(store, branch, "changelog") == ([], {})
    assert [ks(store, branch=one) for one in (branch, other)] == ([[3], [30]] if branch == "main" else [[30], [3]])


@pytest.mark.parametrize(("least", "ids"), [(3, (1,)), (4, ()), (5, ()), (1, (1, 2, 3))])
def test_nothing_is_asked_for_where_nothing_can_expire(store: Store, least: int, ids: tuple[int, ...]) -> None:
    counting = FaultyStore(store)
    assert expire_snapshots(counting, Retention(least, least, FAR, FAR)).ids == ids
    assert bool(counting.count("get")) is bool(ids)


@pytest.mark.parametrize("branch", ["main", "b"])
def test_what_the_slowest_reader_of_the_branch_reads_next_stays(store: Store, branch: str) -> None:
    reset_consumer(store, "slow", 3, branch)
    reset_consumer(store, "quick", 4, branch)
    reset_consumer(store, "another", 1, "b" if branch == "main" else "main")
    assert expire_snapshots(store, ONE, branch).ids == (1, 2)
    assert list_snapshots(store, branch) == [3, 4]


@pytest.mark.parametrize("branch", ["main", "b"])
def test_changelogs_take_the_place_of_snapshots_and_go_later(store: Store, branch: str) -> None:
    whole = {n: store.get(f"{BRANCHES[branch]}snapshot/snapshot-{n}") for n in (1, 2, 3)}
    expire_snapshots(store, Retention(3, 3, FAR, FAR), branch, keeps_changelog=True)
    assert said(store, branch, "changelog") == ([1], {"EARLIEST": "1", "LATEST": "1"})
    expire_snapshots(store, ONE, branch, keeps_changelog=True)
    assert said(store, branch, "changelog") == ([1, 2, 3], {"EARLIEST": "1", "LATEST": "3"})
    assert {n: store.get(f"{BRANCHES[branch]}changelog/changelog-{n}") for n in (1, 2, 3)} == whole
    keep_two = Retention(3, 3, FAR, FAR)
    assert expire_changelogs(store, keep_two, branch, dry_run=True).ids == (1,)
    assert said(store, branch, "changelog")[0] == [1, 2, 3]
    done = expire_changelogs(store, keep_two, branch)
    assert done.ids == (1,) and said(store, branch, "changelog") == ([2, 3], {"EARLIEST": "2", "LATEST": "3"})
    reset_consumer(store, "slow", 3, branch)
    assert expire_changelogs(store, ONE, branch).ids == (2,)
    # All of them go whoever reads.
    assert expire_changelogs(store, None, branch).ids == (3,)
    assert said(store, branch, "changelog")[0] == [] and list_snapshots(store, branch) == [4]
    assert expire_changelogs(store, None, branch) == expire_changelogs(store, ONE, branch) == Expired()


def test_changelogs_that_are_young_stay(store: Store) -> None:
    expire_snapshots(store, ONE, keeps_changelog=True)
    times = [load_snapshot(store, At()).document.time_millis] if load_snapshot(store, At()).document else []
    assert expire_changelogs(store, Retention(9, 1, 0, FAR)).ids == ()
    assert expire_changelogs(store, Retention(9, 1, times[0] + 1, 2)).ids == (1, 2)


def test_of_a_table_without_snapshots_nothing_expires() -> None:
    empty = make(f"memory://{uuid.uuid4().hex}/t")
    empty.put("changelog/changelog-1", b"{}")
    assert expire_snapshots(empty, ONE) == expire_changelogs(empty, None) == Expired()
    assert empty.get("changelog/changelog-1") == b"{}"


class Racing(FaultyStore):
    """Somebody else takes a document away just before it is read."""

    def __init__(self, inner: Store, path: str) -> None:
        super().__init__(inner)
        self._path = path

    def get(self, path: str) -> bytes:
        if path == self._path:
            self._inner.delete(path)
        return super().get(path)


@pytest.mark.parametrize("number", [2, 3])
def test_of_two_that_let_the_same_expire_one_takes_its_files(store: Store, number: int) -> None:
    every = expire_snapshots(store, ONE, dry_run=True).ids
    done = expire_snapshots(Racing(store, f"snapshot/snapshot-{number}"), ONE)
    assert done.ids == every and list_snapshots(store) == [4]
    # What the other one took needs its file still, as far as this one knows.
    assert len([path for path in done.paths if path.endswith(".parquet")]) == 1
    assert ks(store) == [3]


@pytest.mark.parametrize(("hint", "told"), [(b"7", 7), (b" 3 \n", 3), (b"x", 1), (b"", 1), (None, 1)])
@pytest.mark.parametrize("branch", ["main", "b"])
def test_the_hint_of_the_oldest_is_put_right(store: Store, hint: bytes | None, told: int, branch: str) -> None:
    path = f"{BRANCHES[branch]}snapshot/EARLIEST"
    if hint is None:
        store.delete(path)
    else:
        store.put(path, hint)
    assert repair_earliest(store, 2, branch) == told and store.get(path) == b"2"
    with pytest.raises(NotFound) as caught:
        repair_earliest(store, 9, branch)
    assert caught.value.code == "snapshot-not-found" and store.get(path) == b"2"


def test_a_hint_is_not_worth_failing_for(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "alluvium"):
        point_to(FaultyStore(store, Fault(1, verb="put")), "snapshot/EARLIEST", 3)
        failing = FaultyStore(store, Fault(1, verb="put", path="snapshot/EARLIEST"))
        assert expire_snapshots(failing, ONE).ids == (1, 2, 3)
    assert caplog.text.count("the hint snapshot/EARLIEST was not written") == 2
    assert list_snapshots(store) == [4]
