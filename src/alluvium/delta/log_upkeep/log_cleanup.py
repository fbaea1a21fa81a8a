"""Expired log entries go, as far as a checkpoint stands for them.

Specification: "Metadata Cleanup", "Checkpoint Protection".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from alluvium.delta.features.log import checkpoint_protection
from alluvium.delta.log.names import (
    COMPACTED_END,
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    CheckpointName,
    ChecksumName,
    CommitName,
    CompactedName,
    commit_path,
    parse_name,
)
from alluvium.delta.log.read_checkpoint import read_checkpoint_head
from alluvium.delta.log.segment import Listing, parse_listing
from alluvium.delta.log.sidecar import sidecar_file
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store

_DAY_MS, _MINUTE_MS = 86_400_000, 60_000


@dataclass(frozen=True, slots=True)
class LogCleanup:
    """What a clean-up removes, or has removed.

    Attributes:
        first_version: The oldest version that can be read afterwards; None where nothing may go.
        paths: Files of the log, relative to the table's root, oldest first.
    """

    first_version: int | None
    paths: tuple[str, ...]


def clean_up_log(
    snapshot: Snapshot, now_ms: int, *, dry_run: bool = False, retention_ms: int | None = None
) -> LogCleanup:
    """Deletes log files that are older than `delta.logRetentionDuration` and that no kept version needs.

    Args:
        snapshot: The newest version, for its properties.
        now_ms: Current time, milliseconds since 1970 UTC.
        dry_run: Only tell what would go.
        retention_ms: How old log files must be, to the minute; None: as the table's property says, to the day.

    Raises:
        CorruptTable: A checkpoint that would have to stand for deleted commits is damaged; nothing is deleted.
    """
    store, config = snapshot.store, snapshot.config
    with locating(store, snapshot.version):
        if retention_ms is None:
            oldest_ms = _midnight(now_ms - parse_properties(config.metadata.configuration).log_retention_ms)
        else:
            oldest_ms = (now_ms - retention_ms) // _MINUTE_MS * _MINUTE_MS
        if _is_young(store, oldest_ms) or _is_clean(store, oldest_ms):
            return LogCleanup(None, ())
        objects = store.list_from(LOG_DIRECTORY, "")
        listing = parse_listing(objects)
        checkpoint = cutoff_checkpoint(listing, oldest_ms)
        if checkpoint is None or not checkpoint_protection.may_clean_up_to(config, checkpoint):
            return LogCleanup(None, ())
        expired = expired_files(objects, checkpoint)
        found = store.list_from(SIDECAR_DIRECTORY, "")
        # Run beside every checkpoint: mostly nothing has expired since the last one, and then sidecars that only later
        # checkpoints can name are not looked into, and nothing is read.
        old = _old_sidecars(found, now_ms if expired else min(now_ms, oldest_ms + _DAY_MS))
        if not expired and not old:
            return LogCleanup(checkpoint, ())
        # The one thing that must not go wrong: what stands for the deleted commits must be whole.
        standing = listing.checkpoints[checkpoint]
        needed = _sidecars_of(store, standing, {info.path for info in found})
        others = [info for info in _kept_checkpoints(objects, checkpoint) if info not in standing]
        sidecars = _unneeded(store, old - needed, others)
        if not dry_run:
            for path in expired:
                store.delete(path)
            map_parallel(store.delete, sidecars)
        return LogCleanup(checkpoint, (*expired, *sidecars))


def _is_young(store: Store, oldest_ms: int) -> bool:
    """Whether not even the first commit has expired: a commit counts as old only if all before it are.

    A log of some weeks is not listed for that, which would make every tenth commit slower than the one before.
    """
    try:
        return store.head(commit_path(0)).modified_ms > oldest_ms
    except NotFound:
        return False


def _is_clean(store: Store, oldest_ms: int) -> bool:
    """Whether by names and one time nothing can have expired: a long log's own times are as many requests of a disk.

    Something goes only behind a checkpoint that has an older entry before it, and whose commit has expired.
    """
    names = store.list_names(LOG_DIRECTORY)
    if any(name.endswith(COMPACTED_END) for name in names) or store.list_names(SIDECAR_DIRECTORY):
        return False
    # In the order of their names, which is that of their versions: the first few tell.
    entries = (n for n in map(parse_name, names) if isinstance(n, (CommitName, CheckpointName, ChecksumName)))
    oldest = next((n.version for n in entries), 0)
    first = next((n.version for n in entries if isinstance(n, CheckpointName) and n.version > oldest), None)
    if first is None:
        return True
    try:
        return store.head(commit_path(first)).modified_ms > oldest_ms
    except NotFound:
        return False


def cutoff_checkpoint(listing: Listing, oldest_ms: int) -> int | None:
    """The newest checkpoint not newer than the newest commit not newer than the cut-off; None: nothing may go.

    A commit counts as old only if all before it are: the time of a file can be later than that of its successor.
    """
    cutoff_commit = None
    for version, info in listing.commits.items():
        if info.modified_ms > oldest_ms:
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


def _sidecars_of(store: Store, checkpoint: Sequence[ObjectInfo], present: Set[str]) -> frozenset[str]:
    """The sidecars of a checkpoint, of all its parts; it is thereby found whole.

    Raises:
        CorruptTable: It is not.
    """
    head = read_checkpoint_head(store, checkpoint)
    needed = frozenset(sidecar_file(sidecar, checkpoint[0].path).path for sidecar in head.sidecars)
    if missing := sorted(needed - present):
        raise CorruptTable(
            f"a checkpoint names a sidecar that is gone: {missing[0]}",
            code="damaged-checkpoint",
            path=missing[0],
            hint="no log file was deleted; write a new checkpoint",
        )
    return needed


def _unneeded(store: Store, candidates: Set[str], kept: Iterable[ObjectInfo]) -> tuple[str, ...]:
    """ "Now read all the available checkpoints in the _delta_log directory and identify the corresponding sidecar
    files. These sidecar files need to be protected."
    """
    left = set(candidates)
    for info in kept:
        if not left:
            break
        # A name alone counts: what is missing of a later checkpoint is for its readers to find.
        head = read_checkpoint_head(store, [info])
        left.difference_update(sidecar_file(sidecar, info.path).path for sidecar in head.sidecars)
    return tuple(sorted(left))


def _old_sidecars(sidecars: Iterable[ObjectInfo], now_ms: int) -> frozenset[str]:
    """ "preserve files that are less than a day old (as of midnight UTC), to not break in-progress checkpoints" """
    oldest_kept = _midnight(now_ms) - _DAY_MS
    return frozenset(info.path for info in sidecars if info.modified_ms < oldest_kept)


def _midnight(time_ms: int) -> int:
    return time_ms - time_ms % _DAY_MS
