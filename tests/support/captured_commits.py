"""Commits that a verb has carried out up to their last step, to be played again with faults, and what came of each."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_store import Crash, FaultyStore, When

from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Committed, FileChanges
from alluvium.storage.store import Store


class Captured(BaseException):
    """The verb is stopped at its commit, and keeps what it wrote."""

    def __init__(self, changes: FileChanges) -> None:
        self.changes = changes


@contextmanager
def capturing() -> Iterator[None]:
    def stop(self: DeltaTarget, changes: FileChanges) -> Committed:
        raise Captured(changes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTarget, "commit", stop)
        # What was written stays, for the commits to come.
        patch.setattr("alluvium.commands.rows.row_work.RowWork.discard", lambda self, *plans: None)
        yield


def copy(made: Path, url: Path) -> str:
    shutil.copytree(made, url)
    return str(url)


@dataclass(frozen=True, slots=True)
class Fact:
    """What a verb came to: its version, or how it failed."""

    told: str
    version: int | None
    error: BaseException | None


def act(verb: Callable[[], int], told: Callable[[], str]) -> Fact:
    version = error = None
    with warnings.catch_warnings():
        # What is left undone after the commit is a warning.
        warnings.simplefilter("ignore", UserWarning)
        try:
            version = verb()
        except (AlluviumError, Crash) as raised:
            error = raised
    return Fact(told(), version, error)


def captured(verb: Callable[[], object]) -> FileChanges:
    """What a verb would commit."""
    with capturing(), pytest.raises(Captured) as caught:
        verb()
    return caught.value.changes


def commit_again(store: Store, changes: FileChanges) -> int:
    """Commits them to a copy of the table; the version."""
    snapshot = load_snapshot(store)
    return DeltaTarget(store, snapshot.config, snapshot).commit(changes).version


def last_request(store: FaultyStore, at: int, when: When) -> str:
    """Which request failed, and how, for what an assertion says."""
    return f"{store.requests[-1]} ({at}) failed {when.value}"
