"""What a commit finds when it comes to be made: the base is as old as the job before it was long."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import commit_path
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, NotFound
from alluvium.plan.changes import Append, NewFiles, Operation, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture(params=["disk", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A disk, and a store that has no directories."""
    return open_store(str(tmp_path / "t")) if request.param == "disk" else MemoryStore(tmp_path.name, "t")


def append(store: Store, *ids: int) -> None:
    for n in ids:
        commit_rows(open_target(store), [n])


def ids(store: Store) -> list[int]:
    return sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist())


def log_of(store: Store) -> list[str]:
    return [info.path.rpartition("/")[2] for info in store.list_from("_delta_log")]


def overwrite(store: Store) -> Callable[[], object]:
    """A commit in the making that has read all rows, on the newest version."""
    target = open_target(store)
    return lambda: commit_rows(target, [100], replace=Replace())


def say_nothing(store: Store) -> None:
    """A commit that bothers nobody."""
    nothing = Append(NewFiles.none(), Operation("WRITE"), ReadScope.nothing(), ("other", 1))
    open_target(store).commit(nothing)


@pytest.mark.parametrize("order", ["conflict first", "conflict last"])
def test_every_winner_counts_and_not_only_the_last(store: Store, order: str) -> None:
    append(store, 1)
    ours = overwrite(store)
    others = [lambda: append(store, 2), lambda: say_nothing(store)]
    for act in others if order == "conflict first" else reversed(others):
        act()
    with pytest.raises(CommitConflict) as caught:
        ours()
    assert caught.value.code == "concurrent-append"
    assert caught.value.conflicts[0].version == (1 if order == "conflict first" else 2)
    assert ids(store) == [1, 2]


def test_winners_that_bother_nobody_cost_no_attempt(store: Store) -> None:
    append(store, 1)
    target = open_target(store)
    append(store, 2, 3)
    done = commit_rows(target, [100])
    assert (done.version, done.attempts, ids(store)) == (3, 1, [1, 2, 3, 100])


def clean(store: Store, kept: int) -> None:
    """What a clean-up of the log leaves: a checkpoint, and what came after it."""
    newest = load_snapshot(store, kept)
    write_checkpoint(store, newest.state, CheckpointOptions(0, 0), newest.files)
    for version in range(kept + 1):
        store.delete(commit_path(version))


@pytest.mark.parametrize("others", [2, 3])
@pytest.mark.parametrize("has_read", [False, True])
def test_a_hole_that_the_clean_up_left_is_not_filled(store: Store, others: int, has_read: bool) -> None:
    """The next place after the base is free again: whoever takes it has committed into the past."""
    append(store, 0)
    target = open_target(store)
    append(store, *range(1, others + 1))
    clean(store, 2)
    before = log_of(store)
    with pytest.raises(CommitConflict) as caught:
        commit_rows(target, [100], replace=Replace() if has_read else None)
    assert caught.value.code == "base-expired"
    assert log_of(store) == before
    assert ids(store) == list(range(others + 1))


def test_a_base_that_only_a_checkpoint_tells_of_is_a_good_one(store: Store) -> None:
    append(store, 0, 1)
    clean(store, 1)
    assert commit_rows(open_target(store), [100]).version == 2
    assert ids(store) == [0, 1, 100]


def drop(store: Store) -> None:
    store.delete_tree("")


@pytest.mark.parametrize("has_read", [False, True])
def test_a_table_that_was_dropped_does_not_come_back(store: Store, has_read: bool) -> None:
    append(store, 0, 1)
    target = open_target(store)
    drop(store)
    with pytest.raises(NotFound) as caught:
        commit_rows(target, [100], replace=Replace() if has_read else None)
    assert caught.value.code == "not-a-table"
    assert log_of(store) == []


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_files_of_a_dropped_table_do_not_come_into_its_successor(store: Store, versions: int) -> None:
    append(store, 0, 1)
    target = open_target(store)
    drop(store)
    append(store, *range(50, 50 + versions))
    if versions > 1 and target.url.startswith("file:"):
        # Made within one tick of the clock, entries of the same size could not be told apart.
        os.utime(Path(target.url.removeprefix("file:")) / commit_path(1), (1, 1))
    with pytest.raises(CommitConflict) as caught:
        commit_rows(target, [100])
    assert caught.value.code == "table-replaced"
    assert ids(store) == list(range(50, 50 + versions))


def test_a_folder_that_goes_between_the_last_look_and_the_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path / "t"))
    append(store, 0, 1)
    target = open_target(store)
    put = type(store).put_if_absent

    def late(self: Store, path: str, data: bytes, makes_directory: bool = True) -> object:
        shutil.rmtree(tmp_path / "t")
        return put(self, path, data, makes_directory)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store), "put_if_absent", late)
    with pytest.raises(NotFound):
        commit_rows(target, [100])
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_a_table_is_created_once(store: Store) -> None:
    first, second = (DeltaTarget(store, open_target(store).config, None) for _ in range(2))
    commit_rows(first, [1])
    with pytest.raises(CommitConflict) as caught:
        commit_rows(second, [2])
    assert caught.value.code == "protocol-changed"
    assert ids(store) == [1]


def touched(entry: Path) -> None:
    os.utime(entry)


def linked(entry: Path) -> None:
    os.link(entry, entry.with_name("backup"))


def restored(entry: Path) -> None:
    data = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(data)


@pytest.mark.parametrize("act", [touched, linked, restored, lambda entry: entry.chmod(0o600)])
def test_who_looks_after_files_makes_no_other_table(tmp_path: Path, act: Callable[[Path], None]) -> None:
    store = open_store(str(tmp_path / "t"))
    append(store, 1, 2)
    target = open_target(store)
    act(tmp_path / "t" / commit_path(1))
    commit_rows(target, [3])
    assert ids(store) == [1, 2, 3]
