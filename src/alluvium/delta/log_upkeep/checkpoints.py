"""What a committer leaves beside its commit: a checksum each time, a checkpoint every `delta.checkpointInterval`
commits, and then a log without expired entries.
"""

from __future__ import annotations

import time

import msgspec
import pyarrow as pa

from alluvium.commit.afterwards import afterwards
from alluvium.commit.loop import Entry
from alluvium.delta.features.log import v2_checkpoint
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.checksum import checksum_after
from alluvium.delta.log.large.checkpoint import write_large_checkpoint
from alluvium.delta.log.large.pieces import Pieces
from alluvium.delta.log.names import checksum_path
from alluvium.delta.log_upkeep.file_columns import checkpoint_files
from alluvium.delta.log_upkeep.log_cleanup import clean_up_log
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import LastCheckpoint, parse_own_actions
from alluvium.delta.view.snapshot import Snapshot, load_snapshot, refresh
from alluvium.errors import CorruptTable
from alluvium.storage.store import Store

#: "writers should occasionally create a v2 Classic Checkpoint to maintain compatibility with older clients": each
#: such one of v2 checkpoints.
_CLASSIC_NAME_EVERY = 10


def keep_up(store: Store, entry: Entry, base: Snapshot | None) -> None:
    """Does what is due after a commit.

    The commit stands already, so nothing that goes wrong here may look like a failed commit: it becomes a warning, and
    the next writer, or the next interval, makes up for what is missing.
    """
    standing = f"version {entry.version} of {store.url}"
    afterwards(standing, "checksum", lambda: write_checksum(store, entry, base))
    afterwards(standing, "checkpoint", lambda: _checkpoint_if_due(base, entry.version))


def is_checkpoint_due(version: int, config: TableConfig) -> bool:
    """Whether it is the turn of a version."""
    return version % parse_properties(config.metadata.configuration).checkpoint_interval == 0


def write_checksum(store: Store, entry: Entry, base: Snapshot | None) -> None:
    """ "Writers SHOULD produce a Version Checksum file for each commit"; "Writers MUST NOT overwrite existing Version
    Checksum files".
    """
    state = None if base is None else base.state
    checksum = checksum_after(state, parse_own_actions(entry.data))
    if checksum is not None:
        data = msgspec.json.encode(checksum)
        store.put_if_absent(checksum_path(entry.version), data, makes_directory=False)


def refresh_to(base: Snapshot, version: int) -> Snapshot:
    """The snapshot at exactly `version`, reading only what is new where nobody was faster still."""
    newest = refresh(base)
    return newest if newest.version == version else load_snapshot(base.store, version)


def write_checkpoint_at(snapshot: Snapshot) -> LastCheckpoint:
    """Writes the checkpoint of a snapshot as the table's properties want it, then points `_last_checkpoint` at it."""
    config = snapshot.config
    properties = parse_properties(config.metadata.configuration)
    v2 = v2_checkpoint.is_used(config)
    turn = snapshot.version // properties.checkpoint_interval
    options = CheckpointOptions(
        now_ms=now_by_store(snapshot),
        tombstone_retention_ms=properties.deleted_file_retention_ms,
        txn_retention_ms=properties.txn_retention_ms,
        v2=v2,
        classic_name=v2 and turn % _CLASSIC_NAME_EVERY == 0,
    )

    def formed(files: pa.Table) -> pa.Table:
        return checkpoint_files(files, config, properties, snapshot.time_zone)

    if snapshot.is_unread:
        try:
            return write_large_checkpoint(Pieces(snapshot.store, snapshot.state), options, formed)
        except CorruptTable as error:
            if error.code != "damaged-checkpoint":
                raise
    return write_checkpoint(snapshot.store, snapshot.whole, options, formed(snapshot.files))


def _checkpoint_if_due(base: Snapshot | None, version: int) -> None:
    if base is None or not is_checkpoint_due(version, base.config):
        return
    snapshot = refresh_to(base, version)
    write_checkpoint_at(snapshot)
    if parse_properties(snapshot.config.metadata.configuration).expired_log_cleanup:
        clean_up_log(snapshot, now_by_store(snapshot))


def now_by_store(snapshot: Snapshot) -> int:
    """Milliseconds since 1970 UTC by the store's clock, as the newest commit tells it: a machine whose own is ahead
    would forget, and delete, what is within the retention.
    """
    return min(int(time.time() * 1000), snapshot.timestamp_ms)
