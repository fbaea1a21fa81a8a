"""A checkpoint every `delta.checkpointInterval` commits, written by the committer itself."""

from __future__ import annotations

import time
import warnings

from alluvium.commit.loop import Entry
from alluvium.delta.log.checkpoint import write_checkpoint
from alluvium.delta.properties import parse_properties
from alluvium.delta.snapshot import Snapshot, load_snapshot, refresh
from alluvium.errors import AlluviumError
from alluvium.storage.store import Store


def checkpoint_if_due(store: Store, entry: Entry, base: Snapshot | None) -> None:
    """Writes a checkpoint of the version just committed, if it is that version's turn.

    The commit stands already, so nothing that goes wrong here may look like a failed commit: the next
    writer, or the next interval, makes up for a checkpoint that is missing.
    """
    if base is None or entry.version % parse_properties(base.config.metadata.configuration).checkpoint_interval:
        return
    try:
        write_checkpoint_at(refresh_to(base, entry.version))
    except AlluviumError as error:
        message = f"version {entry.version} of {store.url} is committed, its checkpoint is not: {error}"
        warnings.warn(message, stacklevel=2)


def refresh_to(base: Snapshot, version: int) -> Snapshot:
    """The snapshot at exactly `version`, reading only what is new where nobody was faster still."""
    newest = refresh(base)
    return newest if newest.version == version else load_snapshot(base.store, version)


def write_checkpoint_at(snapshot: Snapshot) -> None:
    """Writes the checkpoint of a snapshot, then points `_last_checkpoint` at it."""
    properties = parse_properties(snapshot.config.metadata.configuration)
    write_checkpoint(
        snapshot.store,
        snapshot.state,
        now_ms=int(time.time() * 1000),
        tombstone_retention_ms=properties.deleted_file_retention_ms,
        txn_retention_ms=properties.txn_retention_ms,
    )
