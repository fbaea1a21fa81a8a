"""When versions were committed, and by whom.

Specification: "Commit Provenance Information". Times of commits follow the reference implementation: those of the
files, forced to increase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import msgspec

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import commit_version, read_each
from alluvium.delta.log.segment import list_log, not_a_table
from alluvium.delta.spec import DECODE_ERRORS, CommitInfo, Wire, parse_commit_info
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import Store

_AHEAD_BYTES = 4 << 20


class _InfoLine(Wire, frozen=True, kw_only=True):
    commit_info: msgspec.Raw = msgspec.Raw(b"")


_INFO_LINES = msgspec.json.Decoder(_InfoLine)


@dataclass(frozen=True, slots=True)
class CommitTime:
    """A version and when it was committed, milliseconds since 1970 UTC."""

    version: int
    timestamp_ms: int


def commit_timestamps(store: Store) -> tuple[CommitTime, ...]:
    """The times of all commits in the log, ascending, strictly increasing.

    A file that is as old as the one before it, or older, counts as one millisecond younger: clocks of storage may run
    backwards, versions may not.
    """
    times: list[CommitTime] = []
    for version, info in list_log(store).commits.items():
        earliest = times[-1].timestamp_ms + 1 if times else info.modified_ms
        times.append(CommitTime(version, max(info.modified_ms, earliest)))
    return tuple(times)


def version_at(store: Store, timestamp_ms: int) -> int:
    """The newest version committed at or before a time.

    Only versions that can still be read count. For tables with in-commit timestamps the caller has to look into the
    commits instead; see `version_among`.

    Args:
        store: The table's objects.
        timestamp_ms: Milliseconds since 1970 UTC.

    Raises:
        NotFound: The time lies before the first version or after the newest (`missing-version`), or there is no table
            (`not-a-table`).
    """
    listing = list_log(store)
    if listing.latest < 0:
        raise not_a_table()
    earliest = listing.earliest or 0
    return version_among([time for time in commit_timestamps(store) if time.version >= earliest], timestamp_ms)


def version_among(times: Sequence[CommitTime], timestamp_ms: int) -> int:
    """The newest of some versions (ascending) that was committed at or before a time; errors as `version_at`."""
    found = next((time for time in reversed(times) if time.timestamp_ms <= timestamp_ms), None)
    if found is None or timestamp_ms > times[-1].timestamp_ms:
        if not times:
            raise NotFound("no version's commit is left in the log to tell its time", code="missing-version")
        first, last = times[0], times[-1]
        side = "before the first version" if found is None else "after the newest version"
        raise NotFound(
            f"{_text(timestamp_ms)} lies {side}: the table has versions {first.version} ({_text(first.timestamp_ms)})"
            f" to {last.version} ({_text(last.timestamp_ms)})",
            code="missing-version",
            hint=f"ask for a time from {_text(first.timestamp_ms)} to {_text(last.timestamp_ms)}",
        )
    return found.version


def read_commit_infos(store: Store, versions: Iterable[int] | None = None) -> list[tuple[int, CommitInfo | None, int]]:
    """Provenance of versions, newest first: version, commitInfo (None where the commit has none), time in ms.

    Args:
        store: The table's objects.
        versions: Which; None for all commits in the log. Versions whose commit is gone are left out.

    Raises:
        CorruptTable: A commit is damaged before its commitInfo.
    """
    times = {time.version: time.timestamp_ms for time in commit_timestamps(store)}
    commits = list_log(store).commits
    wanted = sorted(commits if versions is None else set(versions) & set(commits), reverse=True)
    infos = []
    for info, data in read_each(store, [commits[version] for version in wanted], _AHEAD_BYTES):
        version = commit_version(info)
        infos.append((version, _commit_info(data, version), times[version]))
    return infos


def _commit_info(data: bytes, version: int) -> CommitInfo | None:
    for number, text in enumerate(data.split(b"\n"), 1):
        if b'"commitInfo"' not in text:
            continue
        try:
            found = _INFO_LINES.decode(text).commit_info
        except DECODE_ERRORS as error:
            raise CorruptTable(
                f"line {number} of the log entry is damaged: {error}",
                code="damaged-line",
                path=commit_path(version),
                version=version,
            ) from None
        if found:
            return parse_commit_info(found)
    return None


def _text(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds")
