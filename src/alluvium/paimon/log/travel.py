"""Which snapshot a reader wants: by id, tag, time or watermark.

Specification: `org.apache.paimon.table.source.snapshot.TimeTravelUtil`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from alluvium.codecs.temporal_text import parse_timestamp, parse_zone
from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.names import directory, ensure_name, list_names, list_numbers, read_file
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.terms.spec import SnapshotDocument, parse_snapshot
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class At:
    """A point of a table's history; none of the members: the newest.

    Attributes:
        snapshot_id: This snapshot.
        tag: The snapshot that was tagged so.
        timestamp_ms: The newest snapshot at or before this time, milliseconds since 1970 UTC.
        watermark: The oldest snapshot whose watermark is at least this.
        version: A tag's name, or else a snapshot's id.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_ms: int | None = None
    watermark: int | None = None
    version: str | None = None

    @property
    def is_latest(self) -> bool:
        return self == At()

    @property
    def tag_name(self) -> str | None:
        """The tag that names the point, by either word."""
        return self.tag or (self.version if self.version and not self.version.isdecimal() else None)


#: The options that name a point, and whether they hold numbers.
_OPTIONS = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.timestamp-millis": "timestamp_ms",
    "scan.timestamp": "timestamp_ms",
    "scan.watermark": "watermark",
    "scan.version": "version",
}


def parse_at(at: At, options: Mapping[str, str], time_zone: str = "UTC") -> At:
    """The point that a call's arguments and a table's dynamic options name together.

    Raises:
        InvalidRequest: More than one point, or a value that is none.
    """
    found = at
    for name, attribute in _OPTIONS.items():
        if name not in options:
            continue
        if not found.is_latest:
            raise InvalidRequest(
                "more than one point in time was asked for", code="version-and-timestamp", hint=f"leave {name} out"
            )
        found = _with(found, attribute, _value(name, options[name], time_zone))
    return found


def _with(at: At, attribute: str, value: int | str) -> At:
    members: dict[str, Any] = {attribute: value}
    return replace(at, **members)


def _value(name: str, text: str, time_zone: str) -> int | str:
    if name in ("scan.tag-name", "scan.version"):
        return text
    if name == "scan.timestamp":
        micros = parse_timestamp(text, parse_zone(time_zone))
        if micros is None:
            raise InvalidRequest(f"{name} {text!r} is no time", code="invalid-timestamp", hint="yyyy-MM-dd HH:mm:ss")
        return micros // 1000
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a number, not {text!r}", code="invalid-version") from None


def list_snapshots(store: Store, branch: str = MAIN_BRANCH) -> list[int]:
    """Ids of the snapshots that exist, ascending."""
    return list_numbers(store, directory(branch, "snapshot"), "snapshot-")


def read_snapshot(store: Store, snapshot_id: int, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """One snapshot.

    Raises:
        NotFound: It has expired (`"snapshot-expired"`) or never was (`"snapshot-not-found"`); says which exist.
    """
    path = f"{directory(branch, 'snapshot')}/snapshot-{snapshot_id}"
    try:
        return parse_snapshot(store.get(path), path)
    except NotFound:
        raise _no_snapshot(store, snapshot_id, branch) from None


def read_snapshots(store: Store, branch: str = MAIN_BRANCH) -> list[SnapshotDocument]:
    """All snapshots, oldest first."""
    return map_parallel(lambda number: read_snapshot(store, number, branch), list_snapshots(store, branch))


def read_changelog(store: Store, snapshot_id: int, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """A snapshot, or what is kept of an expired one for its changelog's sake."""
    try:
        return read_snapshot(store, snapshot_id, branch)
    except NotFound as missing:
        path = f"{directory(branch, 'changelog')}/changelog-{snapshot_id}"
        return parse_snapshot(read_file(store, path, missing), path)


def list_tags(store: Store, branch: str = MAIN_BRANCH) -> list[str]:
    return list_names(store, directory(branch, "tag"), "tag-")


def read_tag(store: Store, name: str, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """The snapshot of a tag, which lives on when the snapshot expires.

    Raises:
        NotFound: There is no such tag (`"tag-not-found"`).
    """
    path = f"{directory(branch, 'tag')}/tag-{ensure_name(name, 'tag')}"
    try:
        data = store.get(path)
    except NotFound:
        known = list_tags(store, branch)
        raise NotFound(
            f"there is no tag {name!r}",
            code="tag-not-found",
            hint=f"tags: {', '.join(known[:12])}" if known else "the table has no tags",
        ) from None
    return parse_snapshot(data, path)


def kept_by(store: Store, snapshot_id: int, branch: str = MAIN_BRANCH) -> str | None:
    """A tag of a snapshot that has expired itself; None: it is there, or no tag has it."""
    if snapshot_id in list_snapshots(store, branch):
        return None
    names = list_tags(store, branch)
    ids = map_parallel(lambda name: read_tag(store, name, branch).id, names)
    return next((name for name, number in zip(names, ids, strict=True) if number == snapshot_id), None)


def find_snapshot(store: Store, at: At, branch: str = MAIN_BRANCH) -> SnapshotDocument | None:
    """The snapshot at a point; None where the table has none yet.

    Raises:
        NotFound: There is nothing at that point.
    """
    if at.snapshot_id is not None:
        return read_snapshot(store, at.snapshot_id, branch)
    if at.tag is not None:
        return read_tag(store, at.tag, branch)
    if at.version is not None:
        return _by_version(store, at.version, branch)
    numbers = list_snapshots(store, branch)
    if at.timestamp_ms is not None:
        return _at_time(store, at.timestamp_ms, numbers, branch)
    if at.watermark is not None:
        return _at_watermark(store, at.watermark, numbers, branch)
    return read_snapshot(store, numbers[-1], branch) if numbers else None


def _by_version(store: Store, version: str, branch: str) -> SnapshotDocument:
    """ "scan.version": a tag of this name first, then a snapshot id; `watermark-N` is a watermark."""
    if version in list_tags(store, branch):
        return read_tag(store, version, branch)
    if version.startswith("watermark-") and version[len("watermark-") :].isdecimal():
        number = int(version[len("watermark-") :])
        return _at_watermark(store, number, list_snapshots(store, branch), branch)
    if version.isdecimal():
        return read_snapshot(store, int(version), branch)
    return read_tag(store, version, branch)


def _at_time(store: Store, time_ms: int, numbers: list[int], branch: str) -> SnapshotDocument:
    low, high = 0, len(numbers)
    found: SnapshotDocument | None = None
    while low < high:
        middle = (low + high) // 2
        document = read_snapshot(store, numbers[middle], branch)
        if document.time_millis <= time_ms:
            found, low = document, middle + 1
        else:
            high = middle
    if found is None:
        first = read_snapshot(store, numbers[0], branch).time_millis if numbers else None
        raise NotFound(
            f"there is no snapshot at or before {time_ms} ms",
            code="no-snapshot-before",
            hint="the table has no snapshot" if first is None else f"the earliest snapshot was made at {first} ms",
        )
    return found


def find_since(store: Store, time_ms: int, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """The first snapshot at or after a time (milliseconds since 1970 UTC).

    Raises:
        NotFound: All are older, or there is none (`"snapshot-not-found"`).
    """
    numbers = list_snapshots(store, branch)
    low, high = 0, len(numbers)
    found: SnapshotDocument | None = None
    while low < high:
        middle = (low + high) // 2
        document = read_snapshot(store, numbers[middle], branch)
        if document.time_millis >= time_ms:
            found, high = document, middle
        else:
            low = middle + 1
    if found is None:
        last = read_snapshot(store, numbers[-1], branch).time_millis if numbers else None
        raise NotFound(
            f"there is no snapshot at or after {time_ms} ms",
            code="snapshot-not-found",
            hint="the table has no snapshot" if last is None else f"the latest snapshot was made at {last} ms",
        )
    return found


def find_until_watermark(store: Store, watermark: int, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """The newest snapshot whose watermark is not beyond one.

    Raises:
        NotFound: There is none (`"snapshot-not-found"`).
    """
    known = []
    for document in reversed(read_snapshots(store, branch)):
        if document.watermark is not None and document.watermark <= watermark:
            return document
        known += [] if document.watermark is None else [document.watermark]
    raise NotFound(
        f"no snapshot has a watermark of {watermark} or earlier",
        code="snapshot-not-found",
        hint=f"the earliest watermark is {min(known)}" if known else "no snapshot has a watermark",
    )


def find_since_watermark(store: Store, watermark: int, branch: str = MAIN_BRANCH) -> SnapshotDocument:
    """The first snapshot, or one that a tag keeps, whose watermark is at least this.

    Raises:
        NotFound: There is none (`"snapshot-not-found"`).
    """
    kept = map_parallel(lambda name: read_tag(store, name, branch), list_tags(store, branch))
    known = [document for document in (*read_snapshots(store, branch), *kept) if document.watermark is not None]
    reached = [one for one in known if one.watermark is not None and one.watermark >= watermark]
    if reached:
        return min(reached, key=lambda one: (one.watermark, one.id))
    raise NotFound(
        f"no snapshot has a watermark of {watermark} or later",
        code="snapshot-not-found",
        hint=f"the latest watermark is {max(d.watermark or 0 for d in known)}"
        if known
        else "no snapshot has a watermark",
    )


def _at_watermark(store: Store, watermark: int, numbers: list[int], branch: str) -> SnapshotDocument:
    known = []
    for document in map_parallel(lambda number: read_snapshot(store, number, branch), numbers):
        if document.watermark is not None and document.watermark >= watermark:
            return document
        known += [] if document.watermark is None else [document.watermark]
    raise NotFound(
        f"no snapshot has a watermark of {watermark} or later",
        code="snapshot-not-found",
        hint=f"the latest watermark is {max(known)}" if known else "no snapshot has a watermark",
    )


def _no_snapshot(store: Store, snapshot_id: int, branch: str) -> NotFound:
    numbers = list_snapshots(store, branch)
    if not numbers:
        return NotFound(
            f"there is no snapshot {snapshot_id}: the table has none", code="snapshot-not-found", version=snapshot_id
        )
    expired = 0 < snapshot_id < numbers[0]
    return NotFound(
        f"snapshot {snapshot_id} {'has expired' if expired else 'does not exist'}",
        code="snapshot-expired" if expired else "snapshot-not-found",
        version=snapshot_id,
        hint=f"snapshots {numbers[0]} to {numbers[-1]} exist",
    )
