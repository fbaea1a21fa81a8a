"""What becomes of an entry that was put too late: it is taken away, but never another's in its place."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from alluvium.commit.loop import Entry
from alluvium.commit.standing import Standing
from alluvium.errors import NotFound, StorageError
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.memory import MemoryStore

OURS = Entry(3, "log/3", b"ours")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def standing(store: MemoryStore, is_late: bool, before: Callable[[], None] = lambda: None) -> Standing:
    def asked(entry: Entry) -> bool:
        before()
        return is_late

    return Standing(store, asked)


def test_what_is_not_late_stands(store: MemoryStore) -> None:
    store.put(OURS.path, OURS.data)
    asked = standing(store, is_late=False)
    assert asked.outcome(PutOutcome.DONE, OURS) is PutOutcome.DONE
    assert asked.landed(OURS) is True
    assert store.get(OURS.path) == OURS.data


def test_what_is_late_is_taken_away(store: MemoryStore) -> None:
    store.put(OURS.path, OURS.data)
    asked = standing(store, is_late=True)
    assert asked.outcome(PutOutcome.DONE, OURS) is PutOutcome.EXISTS
    with pytest.raises(NotFound):
        store.get(OURS.path)
    # Nothing is there now, which alone would leave the outcome open.
    assert asked.landed(OURS) is False


def test_what_is_late_by_a_lost_answer_is_taken_away(store: MemoryStore) -> None:
    store.put(OURS.path, OURS.data)
    asked = standing(store, is_late=True)
    assert asked.outcome(PutOutcome.UNKNOWN, OURS) is PutOutcome.UNKNOWN
    assert asked.landed(OURS) is False
    with pytest.raises(NotFound):
        store.get(OURS.path)


def test_anothers_entry_is_not_taken_away(store: MemoryStore) -> None:
    store.put(OURS.path, OURS.data)
    asked = standing(store, True, before=lambda: store.put(OURS.path, b"theirs"))
    assert asked.outcome(PutOutcome.DONE, OURS) is PutOutcome.EXISTS
    assert store.get(OURS.path) == b"theirs"


def test_a_store_that_does_not_say_leaves_the_outcome_open(store: MemoryStore) -> None:
    def silent() -> None:
        raise StorageError("503")

    store.put(OURS.path, OURS.data)
    asked = standing(store, True, before=silent)
    assert asked.outcome(PutOutcome.DONE, OURS) is PutOutcome.UNKNOWN
    assert asked.landed(OURS) is None
    assert store.get(OURS.path) == OURS.data


def test_what_is_late_and_cannot_be_read_leaves_the_outcome_open(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still be ours: who said that it does not stand would commit the rows once more."""

    def silent(self: MemoryStore, path: str) -> bytes:
        raise StorageError("503")

    store.put(OURS.path, OURS.data)
    asked = standing(store, True, before=lambda: monkeypatch.setattr(MemoryStore, "get", silent))
    assert asked.outcome(PutOutcome.DONE, OURS) is PutOutcome.UNKNOWN
    monkeypatch.undo()
    asked = standing(store, is_late=True)
    assert asked.landed(OURS) is False
    with pytest.raises(NotFound):
        store.get(OURS.path)


@pytest.mark.parametrize("put", [PutOutcome.EXISTS, PutOutcome.UNKNOWN])
def test_of_what_was_not_put_nothing_is_asked(store: MemoryStore, put: PutOutcome) -> None:
    store.put(OURS.path, b"theirs")
    asked = standing(store, is_late=True)
    assert asked.outcome(put, OURS) is put
    assert asked.landed(OURS) is False
    assert store.get(OURS.path) == b"theirs"
