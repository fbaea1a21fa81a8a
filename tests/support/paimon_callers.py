"""Commits that callers have named, and writers that are killed beside them."""

from __future__ import annotations

import pytest
from paimon_rows import append, open_target

from alluvium.commit.loop import Entry
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.callers import is_committed
from alluvium.paimon.commit.port import PaimonPort
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.store import Store


def commit(store: Store, k: int, txn: tuple[str, int] | None = None) -> None:
    append(open_target(store), [{"k": k}], txn=txn)


def expire_all_but_last(store: Store) -> None:
    PaimonTable.forPath(store.url).expire_snapshots(retain_max=1, retain_min=1)


def seen(store: Store, identifier: int, user: str = "job") -> bool:
    return is_committed(load_snapshot(store, At()), user, identifier)


class Killed(BaseException):
    """As by SIGKILL: nothing in between catches it."""


def kill(monkeypatch: pytest.MonkeyPatch, store: Store, txn: tuple[str, int], *, after: bool) -> None:
    """Ends a writer beside the instant of its commit."""
    publish = PaimonPort.publish

    def die(self: PaimonPort, entry: Entry) -> None:
        if after:
            publish(self, entry)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(PaimonPort, "publish", die)
        with pytest.raises(Killed):
            commit(store, 7, txn)
