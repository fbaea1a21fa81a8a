"""Which files make up a version: a listing of `_delta_log` becomes a LogSegment.

Specification: "Delta Log Entries", "Checkpoints", "Last Checkpoint File".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from alluvium.delta.log.last_checkpoint import read_last_checkpoint
from alluvium.delta.log.names import (
    LOG_DIRECTORY,
    MAX_VERSION,
    CheckpointName,
    ChecksumName,
    CommitName,
    CompactedName,
    commit_path,
    parse_name,
    version_prefix,
)
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo, Store

#: Commits that are looked for by name; a log with more holes has lost them.
_MOST_OVERLOOKED = 1000


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The log files that a version is read from.

    Attributes:
        version: The version.
        checkpoint_version: The version of the checkpoint; None where the log is read from its beginning.
        checkpoint: All files of the checkpoint, in order of their parts.
        commits: The commits after the checkpoint, ascending, without a gap, up to `version`.
        timestamp_ms: Time of the last commit's file (of the checkpoint's, where the commit itself is gone).
        compactions: Log compactions that begin after the checkpoint; they may be read in place of commits.
        last: The last commit itself, be it the checkpoint's; None where it is gone.
    """

    version: int
    checkpoint_version: int | None
    checkpoint: tuple[ObjectInfo, ...]
    commits: tuple[ObjectInfo, ...]
    timestamp_ms: int
    compactions: tuple[ObjectInfo, ...] = ()
    last: ObjectInfo | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of the log that count, by version.

    Attributes:
        commits: Commits, ascending.
        checkpoints: The best complete checkpoint of each version, ascending; its files in order.
        compactions: Log compactions that are not empty, by their first and last version.
        checksums: Version checksum files, by version.
    """

    commits: Mapping[int, ObjectInfo]
    checkpoints: Mapping[int, tuple[ObjectInfo, ...]]
    compactions: Mapping[tuple[int, int], ObjectInfo] = field(default_factory=dict)
    checksums: Mapping[int, ObjectInfo] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        """The newest version; -1 for an empty log."""
        return max(max(self.commits, default=-1), max(self.checkpoints, default=-1))

    @property
    def earliest(self) -> int | None:
        """The oldest version that can be read."""
        return 0 if 0 in self.commits else min(self.checkpoints, default=None)


def parse_listing(objects: Iterable[ObjectInfo], without: Collection[str] = ()) -> Listing:
    """Sorts the files of the log directory; litter is ignored.

    Args:
        objects: What lies in the directory.
        without: Paths of checkpoint files known to be damaged.
    """
    commits: dict[int, ObjectInfo] = {}
    compactions: dict[tuple[int, int], ObjectInfo] = {}
    checksums: dict[int, ObjectInfo] = {}
    groups: dict[tuple[int, int, str], dict[int, ObjectInfo]] = {}
    for info in objects:
        name = parse_name(info.path.rpartition("/")[2])
        if isinstance(name, CommitName):
            commits[name.version] = info
        # A checkpoint without a byte is what a writer left that died; it can hold nothing.
        elif isinstance(name, CheckpointName) and info.size > 0 and info.path not in without:
            groups.setdefault((name.version, name.parts, name.uuid or ""), {})[name.part] = info
        elif isinstance(name, CompactedName) and info.size > 0:
            compactions[name.start, name.end] = info
        elif isinstance(name, ChecksumName):
            checksums[name.version] = info
    checkpoints: dict[int, tuple[ObjectInfo, ...]] = {}
    # Sorted so that of one version's checkpoints a classic one wins over one of the second kind, then fewer parts.
    for (version, parts, _), files in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2] != "", item[0])):
        # "readers must only use a complete checkpoint, wherein all fragments are present"
        if len(files) == parts:
            checkpoints.setdefault(version, tuple(files[part] for part in sorted(files)))
    return Listing(dict(sorted(commits.items())), checkpoints, compactions, checksums)


def list_log(store: Store, start: int = 0, without: Collection[str] = ()) -> Listing:
    """Lists the log from a version on."""
    return _with_overlooked(store, parse_listing(store.list_from(LOG_DIRECTORY, version_prefix(start)), without))


def _with_overlooked(store: Store, listing: Listing) -> Listing:
    """The listing with commits that it overlooked.

    A directory of a disk is not listed at one instant: a commit that came meanwhile may be missing where the one behind
    it is not.
    """
    first = max(min(listing.commits, default=0), max(listing.checkpoints, default=-1) + 1)
    holes = (version for version in range(first, listing.latest) if version not in listing.commits)
    # A log may have a gap of millions.
    looked_for = islice(holes, _MOST_OVERLOOKED)
    found = {version: info for version in looked_for if (info := _head(store, version)) is not None}
    return replace(listing, commits=dict(sorted({**listing.commits, **found}.items()))) if found else listing


def _head(store: Store, version: int) -> ObjectInfo | None:
    try:
        return store.head(commit_path(version))
    except NotFound:
        return None


def list_segment(store: Store, version: int | None = None, without: Collection[str] = ()) -> LogSegment:
    """Finds the files to read for a version.

    Args:
        store: The table's objects.
        version: The version; None for the newest.
        without: Paths of checkpoint files that turned out to be damaged; another way is then looked for.

    Raises:
        NotFound: There is no table (`not-a-table`), or not this version (`missing-version`).
        CorruptTable: A commit between the checkpoint and the version is missing (`gap-in-log`).
    """
    if version is not None and not 0 <= version <= MAX_VERSION:
        raise _missing_version(version, list_log(store))
    hint = read_last_checkpoint(store)
    # The file is a hint only. A listing from there saves time, and it is used if it alone leads to the version.
    if hint is not None and 0 < hint.version <= (MAX_VERSION if version is None else version):
        listing = list_log(store, hint.version, without)
        if hint.version in listing.checkpoints and listing.latest >= (version or 0):
            return _segment(listing, version)
    return _segment(list_log(store, 0, without), version)


def list_commits_after(store: Store, segment: LogSegment) -> tuple[ObjectInfo, ...] | None:
    """The commits after those of a segment, ascending; None where nothing proves that they go on from it.

    A table that was dropped and made anew has commits of the same names. What proves that it is still the same is the
    segment's last commit: the same file is still there.

    Raises:
        CorruptTable: They do not follow each other (`gap-in-log`).
    """
    commits = dict(list_log(store, segment.version).commits)
    if segment.last is None or commits.pop(segment.version, None) != segment.last:
        return None
    _ensure_contiguous(commits, segment.version + 1, max(commits, default=segment.version))
    return tuple(commits.values())


def has_same_checkpoint(store: Store, segment: LogSegment) -> bool:
    """Whether the files of a version's checkpoint are those that were listed: somebody may have written it again, or
    another table in the place of this one. What is gone is left to whoever reads it.
    """
    listed = store.list_from(LOG_DIRECTORY, version_prefix(segment.checkpoint_version or 0))
    now = {info.path: info for info in listed}
    pairs = [(was, now.get(was.path, was)) for was in segment.checkpoint]
    return all(
        found == was or (was.identity and (found.size, found.identity) == (was.size, was.identity))
        for was, found in pairs
    )


def not_a_table() -> NotFound:
    """The error for a directory without a log."""
    return NotFound(
        "there is no Delta table here: _delta_log holds no commit and no checkpoint",
        code="not-a-table",
        hint="check the path; a table is the directory that holds _delta_log",
    )


def _segment(listing: Listing, version: int | None) -> LogSegment:
    if listing.latest < 0:
        raise not_a_table()
    wanted = listing.latest if version is None else version
    checkpoint = max((v for v in listing.checkpoints if v <= wanted), default=None)
    if wanted > listing.latest or (version is not None and checkpoint is None and 0 not in listing.commits):
        raise _missing_version(wanted, listing)
    _ensure_contiguous(listing.commits, 0 if checkpoint is None else checkpoint + 1, wanted)
    files = () if checkpoint is None else listing.checkpoints[checkpoint]
    base = -1 if checkpoint is None else checkpoint
    commits = tuple(info for v, info in listing.commits.items() if base < v <= wanted)
    compactions = tuple(info for (start, end), info in listing.compactions.items() if base < start and end <= wanted)
    last = listing.commits.get(wanted)
    timestamp_ms = (last or files[-1]).modified_ms
    return LogSegment(wanted, checkpoint, files, commits, timestamp_ms, compactions, last)


def _ensure_contiguous(commits: Mapping[int, ObjectInfo], first: int, last: int) -> None:
    """ "A table has a single serial history of atomic versions, which are named using contiguous [...] integers." """
    missing = next((v for v in range(first, last + 1) if v not in commits), None)
    if missing is None:
        return
    raise CorruptTable(
        f"commit {missing} is missing from the log, needed for version {last}"
        + (f"; the first commit there is {min(commits)}" if commits and missing < min(commits) else ""),
        code="gap-in-log",
        version=missing,
        path=commit_path(missing),
        hint="restore the file from a copy, or read a version before the gap",
    )


def _missing_version(version: int, listing: Listing) -> NotFound:
    if listing.latest < 0:
        return not_a_table()
    earliest = listing.earliest
    if earliest is None:
        return NotFound(f"version {version} does not exist, and no version can be read", code="missing-version")
    return NotFound(
        f"version {version} does not exist: the table has versions {earliest} to {listing.latest}",
        code="missing-version",
        version=version,
        hint=f"ask for a version from {earliest} to {listing.latest}",
    )
