"""Where a stream begins: by the scan mode, or by what a consumer has read.

Specification: `org.apache.paimon.table.source.DataTableStreamScan`, `org.apache.paimon.consumer.ConsumerManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.names import directory, ensure_name
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import At, find_snapshot, list_snapshots, parse_at
from alluvium.paimon.schema.checks import check_overwrites
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.streams.offset import Offset
from alluvium.paimon.terms.options import (
    BUCKET,
    POSTPONE_BUCKET,
    SCAN_MODE,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_OVERWRITE,
)

#: Options that say where; the rest of a reader's are the table's.
CONSUMER = "consumer-id"
_MODE, _SNAPSHOT = "scan.mode", "scan.snapshot-id"
_TIMES = ("scan.timestamp-millis", "scan.timestamp")
STARTS = (_MODE, "log.scan", _SNAPSHOT, *_TIMES, CONSUMER)
_WHOLE = ("default", "latest-full", "full")


class _Consumer(msgspec.Struct, frozen=True, rename="camel"):
    next_snapshot: int


def ensure_start(said: Mapping[str, str]) -> None:
    """Refuses what says no start, or two, before anything is read.

    Args:
        said: Options of `STARTS`.

    Raises:
        InvalidRequest: A mode without the point that it names, or a point that the mode does not.
        UnsupportedFeature: A mode that streams do not have here.
    """
    mode = _mode(said)
    if mode not in (*_WHOLE, "latest", "from-snapshot", "from-snapshot-full", "from-timestamp"):
        raise UnsupportedFeature(f"the scan mode {mode!r} of a stream", code="unsupported-scan", features=(mode,))
    needs = {"from-snapshot": (_SNAPSHOT,), "from-snapshot-full": (_SNAPSHOT,), "from-timestamp": _TIMES}.get(mode, ())
    given = [name for name in (_SNAPSHOT, *_TIMES) if name in said]
    if len(given) != (1 if needs else 0) or not set(given) <= set(needs):
        raise InvalidRequest(
            f"a stream of the scan mode {mode!r} begins at {' or '.join(needs) or 'no point that is named'}, not at "
            f"{', '.join(given) or 'none'}",
            code="invalid-option",
            hint="from-snapshot and from-snapshot-full take scan.snapshot-id, from-timestamp scan.timestamp-millis",
        )


def ensure_overwrites(schema: TableSchema) -> None:
    """Refuses to tell of overwrites what cannot be told: a reader may ask for it of any table.

    Raises:
        InvalidRequest: The table has no primary key, or changes would come twice (`"invalid-table-option"`).
        UnsupportedFeature: Rows wait for a bucket: their files are not sorted, and nothing in them tells which row of a
            key is the last. Java takes back rows that had gone long before (`"unsupported-stream"`).
    """
    problem = next(check_overwrites(schema), None)
    if problem is not None:
        raise InvalidRequest(
            problem.message,
            code=problem.code,
            hint=None if schema.primary_keys else f"{STREAMING_READ_APPEND_OVERWRITE.key} is for tables without one",
        )
    overwrites = STREAMING_READ_OVERWRITE.key
    if STREAMING_READ_OVERWRITE.get(schema.options) and BUCKET.get(schema.options) == POSTPONE_BUCKET:
        raise UnsupportedFeature(
            f"{overwrites} of a table whose rows wait for a bucket ({BUCKET.key} = {POSTPONE_BUCKET})",
            code="unsupported-stream",
            features=(overwrites,),
            hint=f"read with {overwrites}=false: overwrites are left out then",
        )


def begin_of(now: Snapshot, said: Mapping[str, str]) -> Offset:
    """Where a stream begins.

    Args:
        now: The newest state.
        said: Options of `STARTS`.

    Raises:
        NotFound: The snapshot that is named has expired, or the one that the consumer would read next.
    """
    if CONSUMER in said:
        found = read_consumer(now, said[CONSUMER])
        if found is not None:
            return Offset(found)
    mode, newest = _mode(said), now.version
    after = 1 if newest is None else newest + 1
    if mode in _WHOLE:
        return Offset(after) if newest is None else Offset(newest, is_whole=True)
    if mode == "latest":
        return Offset(after)
    point = parse_at(At(), {name: text for name, text in said.items() if name in (_SNAPSHOT, *_TIMES)}, now.time_zone)
    if point.snapshot_id is not None:
        if mode == "from-snapshot-full":
            find_snapshot(now.store, point, now.branch)
        return Offset(point.snapshot_id, is_whole=mode == "from-snapshot-full")
    assert point.timestamp_ms is not None
    return Offset(_first_since(now, point.timestamp_ms))


def _first_since(now: Snapshot, timestamp_ms: int) -> int:
    """The first snapshot at a time or later.

    Specification: `ContinuousFromTimestampStartingScanner`: behind the last one before it.
    """
    there = list_snapshots(now.store, now.branch)
    if not there:
        return 1
    try:
        found = find_snapshot(now.store, At(timestamp_ms=timestamp_ms - 1), now.branch)
    except NotFound as error:
        if error.code != "no-snapshot-before":
            raise
        return there[0]
    return there[0] if found is None else found.id + 1


def read_consumer(now: Snapshot, name: str) -> int | None:
    """Which snapshot a consumer reads next; None: it has read nothing.

    Raises:
        CorruptTable: Its file cannot be read.
    """
    path = _path(now, name)
    try:
        return msgspec.json.decode(now.store.get(path), type=_Consumer).next_snapshot
    except NotFound:
        return None
    except DECODE_ERRORS as error:
        raise CorruptTable(
            f"the consumer {name!r} cannot be read: {error}", code="damaged-consumer", path=path
        ) from None


def write_consumer(now: Snapshot, name: str, next_snapshot: int) -> None:
    """Tells those who expire snapshots what is still to be read."""
    now.store.put(_path(now, name), msgspec.json.encode(_Consumer(next_snapshot)))


def _path(now: Snapshot, name: str) -> str:
    return f"{directory(now.branch, 'consumer')}/consumer-{ensure_name(name, 'consumer')}"


def _mode(said: Mapping[str, str]) -> str:
    mode = SCAN_MODE.get(said)
    if mode != "default":
        return mode
    # As `CoreOptions.startupMode`: a point that is named says the mode.
    if _SNAPSHOT in said:
        return "from-snapshot"
    return "from-timestamp" if any(name in said for name in _TIMES) else "default"
