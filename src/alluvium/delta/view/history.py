"""The history of a table: one row a commit, in the columns of `DESCRIBE HISTORY`."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from alluvium.delta.features.log.in_commit_timestamp import enablement
from alluvium.delta.log.segment import list_log
from alluvium.delta.log.timeline import commit_timestamps, read_commit_infos, read_in_commit_timestamp
from alluvium.delta.terms.spec import STRING_MAP, CommitInfo
from alluvium.delta.view.snapshot import Snapshot
from alluvium.storage.locating import locating

HISTORY = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("userId", pa.string()),
        pa.field("userName", pa.string()),
        pa.field("operation", pa.string()),
        pa.field("operationParameters", STRING_MAP),
        pa.field("job", pa.string()),
        pa.field("notebook", pa.string()),
        pa.field("clusterId", pa.string()),
        pa.field("readVersion", pa.int64()),
        pa.field("isolationLevel", pa.string()),
        pa.field("isBlindAppend", pa.bool_()),
        pa.field("operationMetrics", STRING_MAP),
        pa.field("userMetadata", pa.string()),
        pa.field("engineInfo", pa.string()),
    ]
)


def commit_time_ms(snapshot: Snapshot) -> int:
    """When the version was committed, milliseconds since 1970 UTC, later than that of any version before it.

    The file's own time will not do: a copied table may have one time for all of its files.

    Raises:
        CorruptTable: The commit lacks the time that it must carry (`no-in-commit-timestamp`).
    """
    with locating(snapshot.store, snapshot.version):
        in_commit = enablement(snapshot.config)
        if in_commit is not None and snapshot.version >= in_commit.version:
            commit = list_log(snapshot.store, snapshot.version).commits.get(snapshot.version)
            if commit is not None:
                return read_in_commit_timestamp(snapshot.store, commit)
        times = {t.version: t.timestamp_ms for t in commit_timestamps(snapshot.store)}
    # The commit's own entry may have been cleaned up behind a checkpoint.
    return times.get(snapshot.version, snapshot.timestamp_ms)


def read_history(snapshot: Snapshot, limit: int | None = None) -> pa.Table:
    """The commits up to the snapshot's version whose log entries still exist, newest first.

    Args:
        snapshot: The newest version to show.
        limit: At most so many rows.
    """
    with locating(snapshot.store, snapshot.version):
        versions = [v for v in list_log(snapshot.store).commits if v <= snapshot.version]
        newest = versions if limit is None else versions[max(0, len(versions) - limit) :]
        found = read_commit_infos(snapshot.store, newest, enablement(snapshot.config))
    return pa.Table.from_pylist([_row(v, ms, info) for v, info, ms in found], schema=HISTORY)


def _row(version: int, timestamp_ms: int, info: CommitInfo | None) -> dict[str, object]:
    row: dict[str, object] = {"version": version, "timestamp": timestamp_ms}
    if info is None:
        return row
    for f in HISTORY:
        if f.name not in row and f.name in info.content:
            row[f.name] = _value(info.content[f.name], f.type)
    return row


def _value(value: object, data_type: pa.DataType) -> object:
    """commitInfo is free-form: what has not the usual type is shown as text, or not at all."""
    if pa.types.is_map(data_type):
        return [(k, _text(v)) for k, v in value.items()] if isinstance(value, dict) else None
    if pa.types.is_string(data_type):
        return _text(value)
    fits = (
        isinstance(value, bool) if pa.types.is_boolean(data_type) else type(value) is int and -(2**63) <= value < 2**63
    )
    return value if fits else None


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
