"""Who lets snapshots expire is killed before the files of these are gone: commits that callers have named are known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_callers import Killed, commit, expire_all_but_last, kill, seen
from paimon_rows import ks

from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

FOLDER = "alluvium-callers"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    return open_store(str(tmp_path / "t"))


def expire_and_die(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents are gone, and what they name is there."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("alluvium.paimon.upkeep.removal.expire.remove_dead", die)
        with pytest.raises(Killed):
            expire_all_but_last(store)


def gone(store: Store) -> list[str]:
    return [info.path for info in store.list_tree(FOLDER) if info.path.endswith(".gone")]


def test_a_commit_whose_snapshot_expired_but_for_its_manifests(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, 1, ("job", 4))
    commit(store, 2, ("other", 1))
    commit(store, 3)
    expire_and_die(store, monkeypatch)
    assert [seen(store, n) for n in (3, 4, 5)] == [True, True, False]
    assert [seen(store, n, "other") for n in (1, 2)] == [True, False]
    commit(store, 4, ("job", 5))
    assert [seen(store, n) for n in (5, 6)] == [True, False]
    assert sorted(ks(store)) == [1, 2, 3, 4]


def test_a_writer_that_was_killed_before_it_could_note_its_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, 1, ("job", 4))
    kill(monkeypatch, store, ("job", 5), after=True)
    commit(store, 3)
    expire_and_die(store, monkeypatch)
    assert [seen(store, n) for n in (4, 5, 6)] == [True, True, False]
    # Nor does a second expiry forget it.
    commit(store, 4)
    expire_all_but_last(store)
    assert [seen(store, n) for n in (4, 5, 6)] == [True, True, False]


def test_notes_do_not_pile_up(store: Store) -> None:
    """Of each caller those of its last commit stay, at most."""
    for k in range(6):
        commit(store, k, ("job", k))
        commit(store, k + 10, ("other", k))
        commit(store, k + 20)
        expire_all_but_last(store)
    assert 0 < len(gone(store)) <= 4
    assert seen(store, 5) and seen(store, 5, "other") and not seen(store, 6)


def test_a_snapshot_that_stays_after_all_is_not_noted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback went on meanwhile: what was to expire is the newest again."""
    commit(store, 1, ("job", 4))
    commit(store, 2)
    delete = type(store).delete

    def rolled_back(self: Store, path: str) -> None:
        delete(self, path)
        if path == "snapshot/snapshot-1":
            delete(self, "snapshot/snapshot-2")

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "delete", rolled_back)
        expire_all_but_last(store)
    assert load_snapshot(store, At()).version == 1
    assert seen(store, 4) and gone(store) == []
