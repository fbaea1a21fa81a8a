"""A store that does not say whose entry stands leaves that open: who took it for another's would commit again."""

from __future__ import annotations

import uuid
from pathlib import Path

from alluvium.commit.landed import landed
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore


def test_ours_and_anothers() -> None:
    store = MemoryStore(uuid.uuid4().hex, "table")
    assert landed(store, "log/1", b"ours") is None
    store.put("log/1", b"ours")
    assert landed(store, "log/1", b"ours") is True
    assert landed(store, "log/1", b"theirs") is False


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert landed(LocalStore(str(tmp_path)), "loop", b"ours") is None
