"""What a table is after it went back: hints, tags, changelogs, and what an earlier rollback has left half-way."""

from __future__ import annotations

import logging
import uuid

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.errors import AlluviumError, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.travel import list_snapshots, list_tags, read_tag
from alluvium.paimon.upkeep.life import as_latest, purge
from alluvium.paimon.upkeep.life.as_latest import identities, rollback_to_as_latest
from alluvium.paimon.upkeep.life.purge import Purged, purge_files
from alluvium.paimon.upkeep.life.rollback import (
    forget_changelogs,
    rollback_to_snapshot,
    rollback_to_tag,
    rollback_to_time,
    rollback_to_watermark,
)
from alluvium.paimon.upkeep.life.tags import create_tag, list_all_tags, tag_path
from alluvium.paimon.upkeep.removal.expire import expire_snapshots
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.storage.store import Store

ONLY_THE_NEWEST = Retention(1, 1, 1 << 62, 1 << 62)


@pytest.fixture
def store() -> Store:
    made = make(f"memory://{uuid.uuid4().hex}/t")
    for k in range(4):
        append(open_target(made), [{"k": k}])
    return made


def hints(store: Store) -> tuple[bytes, bytes]:
    return store.get("snapshot/EARLIEST"), store.get("snapshot/LATEST")


def test_back_to_a_tag_whose_snapshot_has_expired(store: Store) -> None:
    create_tag(store, "two", 2)
    plain = store.get("snapshot/snapshot-2")
    expire_snapshots(store, ONLY_THE_NEWEST)
    assert hints(store) == (b"4", b"4")
    assert rollback_to_tag(store, "two") == 2
    assert hints(store) == (b"2", b"2") and list_snapshots(store) == [2]
    assert store.get("snapshot/snapshot-2") == plain and ks(store) == [0, 1]


def test_back_to_a_snapshot_that_is_there_leaves_the_oldest(store: Store) -> None:
    create_tag(store, "three", 3)
    assert rollback_to_snapshot(store, 2) == 2
    assert hints(store) == (b"1", b"2") and list_snapshots(store) == [1, 2] and list_tags(store) == []
    # Nothing is behind it: not even the hint is written.
    counting = FaultyStore(store)
    assert rollback_to_snapshot(counting, 2) == 2
    assert not [path for verb, path in counting.requests if verb == "put" and path == "snapshot/LATEST"]


def test_tags_of_earlier_rollbacks_to_the_same_snapshot_go(store: Store) -> None:
    """A crash has left them; those that are called otherwise, or are of other snapshots, are somebody's."""
    left, other = f"rollback-{uuid.uuid4()}", f"rollback-{uuid.uuid4()}"
    kept = {other: 1, "rollback-2": 2, f"x{left}": 2, f"{left}x": 2, "rollback-to-as-latest": 1, "mine": 2}
    create_tag(store, left, 2)
    for name, number in kept.items():
        create_tag(store, name, number)
    assert rollback_to_snapshot(store, 2) == 2
    assert sorted(list_tags(store)) == sorted(kept)


def test_a_rollback_that_fails_takes_its_own_tag_along(store: Store) -> None:
    with pytest.raises(AlluviumError):
        rollback_to_snapshot(FaultyStore(store, Fault(1, verb="put", path="snapshot/LATEST")), 2)
    assert list_tags(store) == [] and list_snapshots(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_table_without_snapshots_goes_nowhere(branch: str) -> None:
    empty = make(f"memory://{uuid.uuid4().hex}/t")
    PaimonTable.forPath(empty.url).create_branch("b")
    for act, code in (
        (lambda: rollback_to_time(empty, 1 << 50, branch), "no-snapshot-before"),
        (lambda: rollback_to_watermark(empty, 1, branch), "snapshot-not-found"),
        (lambda: rollback_to_snapshot(empty, 1, branch), "snapshot-not-found"),
        (lambda: rollback_to_as_latest(empty, 1, branch=branch), "snapshot-not-found"),
    ):
        with pytest.raises(NotFound) as caught:
            act()
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("there", "first", "left", "hint"),
    [
        ([1, 2, 5], 3, [1, 2], b"2"), ([1, 2, 5], 2, [1], b"1"), ([1, 2, 5], 1, [], b"-1"), ([1, 2, 5], 6, [1, 2, 5], b"5"),
        ([4], 4, [], b"-1"), ([], 1, [], None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["changelog", "branch/branch-b/changelog"])
def test_changelogs_from_a_number_on_go(there: list[int], first: int, left: list[int], hint: bytes | None, folder: str) -> None:  # fmt: skip
    store = make(f"memory://{uuid.uuid4().hex}/t")
    for number in there:
        store.put(f"{folder}/changelog-{number}", b"{}")
    forget_changelogs(store, first, "main" if folder == "changelog" else "b")
    named = {info.path.removeprefix(f"{folder}/"): store.get(info.path) for info in store.list_tree(folder)}
    assert named == {f"changelog-{n}": b"{}" for n in left} | ({} if hint is None else {"LATEST": hint})


def test_a_state_that_is_the_newest_again_says_whose_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    create_tag(store, "old", 1)
    seen: list[tuple[str, object]] = []
    publish = as_latest.publish

    def looking(*arguments: object) -> object:
        seen.extend((tag.name, tag.retained) for tag in list_all_tags(store) if tag.name != "old")
        return publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(as_latest, "publish", looking)
    done = rollback_to_as_latest(store, tag="old")
    assert (done.previous, done.restored, done.current) == (4, 1, 5)
    ((name, retained),) = seen
    # Where a crash leaves it, it goes after a day: the other one keeps the files.
    assert name.startswith("rollback-to-as-latest-old-") and str(retained) == "1 day, 0:00:00"
    assert list_tags(store) == ["old"]
    seen.clear()
    assert rollback_to_as_latest(store, 2).current == 6
    ((name, retained),) = seen
    assert name.startswith("rollback-to-as-latest-2-") and retained is None and read_tag(store, name).id == 2
    user = PaimonTable.forPath(store.url)._store.get("snapshot/snapshot-6").decode()
    assert '"commitUser": "rollback-to-as-latest-' in user


def test_a_tag_that_cannot_be_deleted_is_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    create_tag(store, "old", 1)
    failing = FaultyStore(store, Fault(1, verb="delete", path="tag/tag-rollback-to-as-latest"))
    with caplog.at_level(logging.WARNING, "alluvium"):
        assert rollback_to_as_latest(failing, tag="old").current == 5
    assert "of a rollback stays" in caplog.text and len(list_tags(store)) == 2


def test_what_tells_an_entry_from_others() -> None:
    rows = [("f", 0, []), ("f", 5, []), ("f", 0, ["x"]), ("f", 0, ["x", "y"]), ("g", 0, []), ("f", 0, None)]
    entries = pa.table(
        {
            "file_name": [name for name, _, _ in rows],
            "level": pa.array([level for _, level, _ in rows], pa.int32()),
            "extra_files": pa.array([extra for _, _, extra in rows], pa.list_(pa.string())),
        }
    )
    found = identities(entries).to_pylist()
    assert None not in found and len(set(found[:5])) == 5
    assert identities(entries.take([0, 3])).to_pylist() == [found[0], found[3]]


def test_what_went_with_the_past_of_a_table_is_told(store: Store) -> None:
    table = PaimonTable.forPath(store.url)
    for name, number in (("z", 1), ("a", 2)):
        create_tag(store, name, number)
    table.create_branch("b", "a")
    table.create_branch("c")
    for name in ("reader", "other"):
        table.reset_consumer(name, 1)
    assert purge_files(store) == Purged(5, ("b", "c"), ("z", "a"), ("other", "reader"))
    assert list_snapshots(store) == [5] and ks(store) == []
    assert not [info.path for info in store.list_tree("") if info.path.endswith(".parquet")]


def test_rows_go_before_the_past_does(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads meanwhile gets none, or a clear error."""
    create_tag(store, "a", 2)
    seen: list[tuple[list[int], list[str]]] = []
    delete = purge.delete_tag

    def looking(*arguments: object) -> object:
        seen.append((ks(store), list_tags(store)))
        return delete(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(purge, "delete_tag", looking)
    purge_files(store)
    assert seen == [([], ["a"])]
    assert tag_path("a") not in {info.path for info in store.list_tree("tag")}
