"""When versions were committed, and by whom.

Specification: "Commit Provenance Information", "In-Commit Timestamps". Times of commits that do not carry their own
follow the reference implementation: those of the files, forced to increase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import msgspec

from alluvium.delta.features.log.in_commit_timestamp import Enablement
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import commit_version, read_each
from alluvium.delta.log.segment import list_log, not_a_table
from alluvium.delta.terms.lines import decode_lines
from alluvium.delta.terms.spec import CommitInfo, Wire, parse_commit_info
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo, Store

_AHEAD_BYTES = 4 << 20
# Of larger commits the first line is looked at first.
_FIRST_LINE_BYTES = 1 << 16


class _InfoLine(Wire, frozen=True, kw_only=True):
    commit_info: msgspec.Raw = msgspec.Raw(b"")


_INFO_LINES = msgspec.json.Decoder(_InfoLine)


@dataclass(frozen=True, slots=True)
class CommitTime:
    """A version and when it was committed, milliseconds since 1970 UTC."""

    version: int
    timestamp_ms: int


def commit_timestamps(store: Store) -> tuple[CommitTime, ...]:
    """The times of all commits in the log; see `file_times`."""
    return file_times(list_log(store).commits)


def file_times(commits: Mapping[int, ObjectInfo]) -> tuple[CommitTime, ...]:
    """The times of the files of some commits, ascending, strictly increasing.

    A file that is as old as the one before it, or older, counts as one millisecond younger: clocks of storage may run
    backwards, versions may not.
    """
    times: list[CommitTime] = []
    for version, info in commits.items():
        earliest = times[-1].timestamp_ms + 1 if times else info.modified_ms
        times.append(CommitTime(version, max(info.modified_ms, earliest)))
    return tuple(times)


def version_at(store: Store, timestamp_ms: int, in_commit: Enablement | None = None) -> int:
    """The newest version committed at or before a time.

    Only versions that can still be read count.

    Args:
        store: The table's objects.
        timestamp_ms: Milliseconds since 1970 UTC.
        in_commit: Since when the newest version's commits carry their time, if they do.

    Raises:
        NotFound: The time lies before the first version or after the newest (`missing-version`), or there is no table
            (`not-a-table`).
        CorruptTable: A commit lacks the time that it must carry (`no-in-commit-timestamp`).
    """
    listing = list_log(store)
    if listing.latest < 0:
        raise not_a_table()
    earliest = listing.earliest or 0
    times = [time for time in commit_timestamps(store) if time.version >= earliest]
    if in_commit is None:
        return version_among(times, timestamp_ms)
    carrying = [listing.commits[time.version] for time in times if time.version >= in_commit.version]
    # "Otherwise, only table versions less than `delta.inCommitTimestampEnablementVersion` should be considered".
    before = [time for time in times if time.version < in_commit.version]
    if before and in_commit.timestamp_ms is not None and timestamp_ms < in_commit.timestamp_ms:
        # There is a version after them, so that a time after the last one of them is its time.
        return version_among(before, min(timestamp_ms, before[-1].timestamp_ms))
    # "If `timestamp X` >= `delta.inCommitTimestampEnablementTimestamp`, only table versions >=
    # `delta.inCommitTimestampEnablementVersion` should be considered for the query."
    return _search(store, carrying, timestamp_ms)


def _search(store: Store, commits: Sequence[ObjectInfo], timestamp_ms: int) -> int:
    """The newest of some commits, ascending, that carries a time at or before the one given.

    "The In-Commit Timestamps writer feature strongly associates a monotonically increasing timestamp with each commit":
    halving the range reads few of them.
    """
    if not commits:
        return version_among([], timestamp_ms)
    first, last = _carried(store, commits[0]), _carried(store, commits[-1])
    if not first.timestamp_ms <= timestamp_ms <= last.timestamp_ms:
        return version_among([first, last], timestamp_ms)
    low, high = 0, len(commits)
    while high - low > 1:
        middle = (low + high) // 2
        if _carried(store, commits[middle]).timestamp_ms <= timestamp_ms:
            low = middle
        else:
            high = middle
    return commit_version(commits[low])


def _carried(store: Store, commit: ObjectInfo) -> CommitTime:
    version = commit_version(commit)
    return CommitTime(version, read_in_commit_timestamp(store, commit))


def read_in_commit_timestamp(store: Store, commit: ObjectInfo) -> int:
    """The time that a commit carries, milliseconds since 1970 UTC.

    Raises:
        CorruptTable: It carries none (`no-in-commit-timestamp`), or is damaged.
    """
    version = commit_version(commit)
    data = store.get_range(commit.path, 0, _FIRST_LINE_BYTES) if commit.size > _FIRST_LINE_BYTES else b""
    # "The `commitInfo` action must be the first action in the commit."
    line = data.partition(b"\n")[0]
    info = _commit_info(line, version) if len(line) < len(data) else None
    if info is None or info.in_commit_timestamp is None:
        info = _commit_info(store.get(commit.path), version)
    if info is None or info.in_commit_timestamp is None:
        raise CorruptTable(
            f"commit {version} carries no inCommitTimestamp, which the table says that it does",
            code="no-in-commit-timestamp",
            path=commit_path(version),
            version=version,
            hint="travel by version instead",
        )
    return info.in_commit_timestamp


def version_among(times: Sequence[CommitTime], timestamp_ms: int) -> int:
    """The newest of some versions (ascending) that was committed at or before a time; errors as `version_at`."""
    found = next((time for time in reversed(times) if time.timestamp_ms <= timestamp_ms), None)
    if found is None or timestamp_ms > times[-1].timestamp_ms:
        if not times:
            raise NotFound("no version's commit is left in the log to tell its time", code="missing-version")
        first, last = times[0], times[-1]
        side = "before the first version" if found is None else "after the newest version"
        begin, end = format_moment(first.timestamp_ms), format_moment(last.timestamp_ms)
        raise NotFound(
            f"{format_moment(timestamp_ms)} lies {side}: the table has versions {first.version} ({begin})"
            f" to {last.version} ({end})",
            code="missing-version",
            hint=f"ask for a time from {begin} to {end}",
        )
    return found.version


def read_commit_infos(
    store: Store, versions: Iterable[int] | None = None, in_commit: Enablement | None = None
) -> list[tuple[int, CommitInfo | None, int]]:
    """Provenance of versions, newest first: version, commitInfo (None where the commit has none), time in ms.

    "For commits with version >= `delta.inCommitTimestampEnablementVersion`, readers should use the `inCommitTimestamp`
    field of the `commitInfo` action. For commits with version < `delta.inCommitTimestampEnablementVersion`, readers
    should use the file modification timestamp." A commit that breaks this has its file's time.

    Args:
        store: The table's objects.
        versions: Which; None for all commits in the log. Versions whose commit is gone are left out.
        in_commit: Since when commits carry their time, if they do.

    Raises:
        CorruptTable: A commit is damaged before its commitInfo.
    """
    times = {time.version: time.timestamp_ms for time in commit_timestamps(store)}
    commits = list_log(store).commits
    wanted = sorted(commits if versions is None else set(versions) & set(commits), reverse=True)
    infos = []
    for info, data in read_each(store, [commits[version] for version in wanted], _AHEAD_BYTES):
        version = commit_version(info)
        found = _commit_info(data, version)
        carried = None if found is None or in_commit is None else found.in_commit_timestamp
        own = carried if in_commit is not None and version >= in_commit.version else None
        infos.append((version, found, times[version] if own is None else own))
    return infos


def _commit_info(data: bytes, version: int) -> CommitInfo | None:
    for line in decode_lines(data, _INFO_LINES, commit_path(version), version, mentioning=b'"commitInfo"'):
        if line.commit_info:
            return parse_commit_info(line.commit_info)
    return None


def format_moment(timestamp_ms: int) -> str:
    """A time for messages, in UTC."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds")
