"""From the start and end that a user names to the versions of a change feed.

The specification is silent here: the rules are those that delta-spark 4.4 was seen to follow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from alluvium.delta.features.log.in_commit_timestamp import Enablement
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import not_a_table
from alluvium.delta.log.timeline import file_times, format_moment, read_in_commit_timestamp
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.store import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range, both ends included: a version, or a time in milliseconds since 1970 UTC."""

    version: int | None = None
    timestamp_ms: int | None = None


class Clock:
    """When versions were committed.

    Args:
        store: The table's objects.
        commits: The commits that are there, ascending.
        in_commit: Since when commits carry their time, if they do.
    """

    def __init__(self, store: Store, commits: Mapping[int, ObjectInfo], in_commit: Enablement | None) -> None:
        self.commits = commits
        self._store = store
        self._in_commit = in_commit
        self._of_files = {time.version: time.timestamp_ms for time in file_times(commits)}
        self._carried: dict[int, int] = {}

    def time_of(self, version: int) -> int:
        """When a version was committed, milliseconds since 1970 UTC.

        "For commits with version >= `delta.inCommitTimestampEnablementVersion`, readers should use the
        `inCommitTimestamp` field of the `commitInfo` action."

        Raises:
            CorruptTable: The commit lacks the time that it must carry (`no-in-commit-timestamp`).
        """
        if not self.is_carried(version):
            return self._of_files[version]
        if version not in self._carried:
            self._carried[version] = read_in_commit_timestamp(self._store, self.commits[version])
        return self._carried[version]

    def is_carried(self, version: int) -> bool:
        """Whether the commit itself must say its time."""
        return self._in_commit is not None and version >= self._in_commit.version

    def learn(self, version: int, timestamp_ms: int) -> None:
        """Takes the time that a commit carries, so that the commit is not read again for it."""
        self._carried[version] = timestamp_ms

    def ordered_time_of(self, version: int) -> int:
        """As `time_of`, but never less than that of a version before: versions can be searched by it."""
        time = self.time_of(version)
        border = self._in_commit
        if border is None or border.timestamp_ms is None or version >= border.version:
            return time
        # "If `timestamp X` >= `delta.inCommitTimestampEnablementTimestamp`, only table versions >=
        # `delta.inCommitTimestampEnablementVersion` should be considered": files may be younger than that.
        return min(time, border.timestamp_ms - 1)


@dataclass(frozen=True, slots=True)
class Range:
    """The versions of a feed, both included; none where `last` is less than `first`."""

    first: int
    last: int

    @property
    def is_empty(self) -> bool:
        return self.last < self.first


def resolve_range(
    clock: Clock, latest: int, start: Bound, end: Bound | None, *, allow_out_of_range: bool = False
) -> Range:
    """The versions between two bounds.

    Args:
        clock: Of the commits up to `latest`.
        latest: The newest version that counts; an end beyond it is cut.
        start: The first version, or the first one at or after a time.
        end: The last version, or the last one at or before a time; None: `latest`.
        allow_out_of_range: A range beyond the latest version is empty, and not an error.

    Raises:
        NotFound: The start lies after the latest version, a time before the first or after the latest, or a commit of
            the range is gone (`missing-version`).
        InvalidRequest: The end lies before the start (`invalid-range`).
    """
    if not clock.commits:
        raise not_a_table()
    first = start.version if start.version is not None else _first_from(clock, start)
    last = latest if end is None else end.version if end.version is not None else None
    if first > latest:
        if allow_out_of_range:
            return Range(first, first - 1)
        raise _after_latest(clock, latest, start)
    if last is None and end is not None:
        last = _last_until(clock, latest, end, allow_out_of_range)
        if start.timestamp_ms is not None and end.timestamp_ms is not None:
            if start.timestamp_ms > end.timestamp_ms:
                raise _backwards(format_moment(start.timestamp_ms), format_moment(end.timestamp_ms))
            # Both times lie between two commits: nothing happened then.
            if last == first - 1:
                return Range(first, last)
    assert last is not None
    if last < first:
        raise _backwards(f"version {first}", f"version {last}")
    found = Range(first, min(last, latest))
    _ensure_present(clock.commits, found)
    return found


def _first_from(clock: Clock, start: Bound) -> int:
    """The first version committed at or after a time; one more than the latest where all are older."""
    assert start.timestamp_ms is not None
    versions = list(clock.commits)
    index = bisect_left(versions, start.timestamp_ms, key=clock.ordered_time_of)
    return versions[index] if index < len(versions) else versions[-1] + 1


def _last_until(clock: Clock, latest: int, end: Bound, allow_out_of_range: bool) -> int:
    assert end.timestamp_ms is not None
    versions = list(clock.commits)
    index = bisect_right(versions, end.timestamp_ms, key=clock.ordered_time_of) - 1
    if index < 0:
        earliest = format_moment(clock.time_of(versions[0]))
        raise NotFound(
            f"the end {format_moment(end.timestamp_ms)} lies before version {versions[0]}, the first one there is, "
            f"of {earliest}",
            code="missing-version",
            hint=f"ask for changes up to {earliest} or later",
        )
    if end.timestamp_ms > clock.time_of(latest) and not allow_out_of_range:
        raise NotFound(
            f"the end {format_moment(end.timestamp_ms)} lies after the latest version {latest}, of "
            f"{format_moment(clock.time_of(latest))}",
            code="missing-version",
            hint="leave the end out for all changes that there are",
        )
    return versions[index]


def _after_latest(clock: Clock, latest: int, start: Bound) -> NotFound:
    named = f"version {start.version}" if start.timestamp_ms is None else format_moment(start.timestamp_ms)
    return NotFound(
        f"the start {named} lies after the latest version {latest}, of {format_moment(clock.time_of(latest))}",
        code="missing-version",
        version=start.version,
        hint="there are no such changes yet",
    )


def _backwards(start: str, end: str) -> InvalidRequest:
    return InvalidRequest(
        f"the range of changes ends ({end}) before it starts ({start})",
        code="invalid-range",
        hint="both ends are included: give the same version twice for the changes of one",
    )


def _ensure_present(commits: Mapping[int, ObjectInfo], wanted: Range) -> None:
    """Changes need each commit of the range: a checkpoint has the sum of them only."""
    missing = next((v for v in range(wanted.first, wanted.last + 1) if v not in commits), None)
    if missing is not None:
        earliest = min((v for v in commits if v > missing), default=None)
        raise NotFound(
            f"the commit of version {missing} is no longer in the log",
            code="missing-version",
            version=missing,
            path=commit_path(missing),
            hint=f"ask for changes from version {earliest} on" if earliest is not None else None,
        )
