"""Expired log entries go, as far as a checkpoint stands for them.

Specification: "Metadata Cleanup", "Checkpoint Protection".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from alluvium.delta.features import checkpoint_protection
from alluvium.delta.log.names import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    CheckpointName,
    ChecksumName,
    CommitName,
    CompactedName,
    parse_name,
)
from alluvium.delta.log.read_checkpoint import read_checkpoint_head
from alluvium.delta.log.segment import Listing, parse_listing
from alluvium.delta.log.sidecar import sidecar_file
from alluvium.delta.properties import parse_properties
from alluvium.delta.snapshot import Snapshot, locating
from alluvium.errors import CorruptTable
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LogCleanup:
    """What a clean-up removes, or has removed.

    Attributes:
        first_version: The oldest version that can be read afterwards; None where nothing may go.
        paths: Files of the log, relative to the table's root, oldest first.
    """

    first_version: int | None
    paths: tuple[str, ...]


def clean_up_log(snapshot: Snapshot, now_ms: int, *, dry_run: bool = False) -> LogCleanup:
    """Deletes log files that are older than `delta.logRetentionDuration` and that no kept version needs.

    Args:
        snapshot: The newest version, for its properties.
        now_ms: Current time, milliseconds since 1970 UTC.
        dry_run: Only tell what would go.

    Raises:
        CorruptTable: A checkpoint that would have to stand for deleted commits is damaged; nothing is deleted.
    """
    store, config = snapshot.store, snapshot.config
    with locating(store, snapshot.version):
        retention_ms = parse_properties(config.metadata.configuration).log_retention_ms
        cutoff_ms = _midnight(now_ms - retention_ms)
        objects = list(store.list_from(LOG_DIRECTORY, ""))
        checkpoint = cutoff_checkpoint(parse_listing(objects), cutoff_ms)
        if checkpoint is None or not checkpoint_protection.may_clean_up_to(config, checkpoint):
            return LogCleanup(None, ())
        kept = _kept_checkpoints(objects, checkpoint)
        # The one thing that must not go wrong: what stands for the deleted commits must be whole.
        needed = _sidecars_of(store, kept)
        expired = expired_files(objects, checkpoint)
        sidecars = _expired_sidecars(store, needed, now_ms)
        if not dry_run:
            for path in expired:
                store.delete(path)
            map_parallel(store.delete, sidecars)
        return LogCleanup(checkpoint, (*expired, *sidecars))


def cutoff_checkpoint(listing: Listing, cutoff_ms: int) -> int | None:
    """The newest checkpoint not newer than the newest commit not newer than the cut-off; None: nothing may go.

    A commit counts as old only if all before it are: the time of a file can be later than that of its successor.
    """
    cutoff_commit = None
    for version, info in listing.commits.items():
        if info.modified_ms > cutoff_ms:
            break
        cutoff_commit = version
    if cutoff_commit is None:
        return None
    found = max((version for version in listing.checkpoints if version <= cutoff_commit), default=None)
    # "We need to preserve the `cutOffCheckpoint` (both the checkpoint file and the JSON commit file at that version)"
    return found if found is not None and found in listing.commits else None


def expired_files(objects: Iterable[ObjectInfo], checkpoint: int) -> tuple[str, ...]:
    """ "Delete all delta log entries, checkpoint files, and version checksum files before the `cutOffCheckpoint`
    checkpoint. Also delete all the log compaction files having startVersion <= `cutOffCheckpoint`'s version."

    Oldest first, so that a clean-up that is cut short leaves a log without holes.
    """
    expired: list[tuple[int, str]] = []
    for info in objects:
        name = parse_name(info.path.rpartition("/")[2])
        if isinstance(name, (CommitName, CheckpointName, ChecksumName)) and name.version < checkpoint:
            expired.append((name.version, info.path))
        elif isinstance(name, CompactedName) and name.start <= checkpoint:
            expired.append((name.start, info.path))
    return tuple(path for _, path in sorted(expired))


def _kept_checkpoints(objects: Iterable[ObjectInfo], checkpoint: int) -> list[ObjectInfo]:
    """Every checkpoint of one file that stays: each may name sidecars. Parts of a larger one name none."""
    kept = []
    for info in objects:
        name = parse_name(info.path.rpartition("/")[2])
        if isinstance(name, CheckpointName) and name.version >= checkpoint and name.parts == 1 and info.size:
            kept.append(info)
    return kept


def _sidecars_of(store: Store, checkpoints: Iterable[ObjectInfo]) -> frozenset[str]:
    """ "Now read all the available checkpoints in the _delta_log directory and identify the corresponding sidecar
    files. These sidecar files need to be protected."
    """
    needed: set[str] = set()
    for info in checkpoints:
        head = read_checkpoint_head(store, [info])
        needed.update(sidecar_file(sidecar, info.path).path for sidecar in head.sidecars)
    present = {info.path for info in store.list_from(SIDECAR_DIRECTORY, "")}
    if missing := sorted(needed - present):
        raise CorruptTable(
            f"a checkpoint names a sidecar that is gone: {missing[0]}",
            code="damaged-checkpoint",
            path=missing[0],
            hint="no log file was deleted; write a new checkpoint",
        )
    return frozenset(needed)


def _expired_sidecars(store: Store, needed: frozenset[str], now_ms: int) -> tuple[str, ...]:
    """ "preserve files that are less than a day old (as of midnight UTC), to not break in-progress checkpoints" """
    oldest_kept = _midnight(now_ms) - _DAY_MS
    found = store.list_from(SIDECAR_DIRECTORY, "")
    return tuple(info.path for info in found if info.path not in needed and info.modified_ms < oldest_kept)


def _midnight(time_ms: int) -> int:
    return time_ms - time_ms % _DAY_MS
