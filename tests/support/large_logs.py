"""Logs whose checkpoints count as larger than memory, be they ever so small, beside themselves read as a whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.delta.log import read_checkpoint
from alluvium.delta.log.large import checkpoint as large_checkpoint
from alluvium.delta.log.large import pieces
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot
from alluvium.storage.store import Store


def load_unread(store: Store, version: int | None = None) -> Snapshot:
    """A version whose checkpoint is not read before somebody needs its files."""
    RECENT.clear()
    snapshot = load_snapshot(store, version, max_checkpoint_bytes=0)
    assert snapshot.is_unread
    return snapshot


def in_small_pieces(patch: pytest.MonkeyPatch, rows: int = 2) -> None:
    """What is read, held and written at once is a few rows."""
    patch.setattr(read_checkpoint, "_ROWS", rows)
    patch.setattr(pieces, "PIECE_ROWS", rows)
    patch.setattr(large_checkpoint, "_HELD_ROWS", rows + 1)
    patch.setattr(large_checkpoint, "_ALL_HELD_ROWS", 3 * rows)


def listed(files: pa.Table) -> list[dict[str, object]]:
    """File actions in order of their names and vectors."""
    return sorted(files.to_pylist(), key=lambda row: (row["path"], str(row["deletionVector"])))
