"""The history of a table: one row a snapshot, in the columns of `DESCRIBE HISTORY`."""

from __future__ import annotations

import pyarrow as pa

from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import read_snapshots
from alluvium.paimon.terms.spec import SnapshotDocument

_STRING_MAP = pa.map_(pa.string(), pa.string())
HISTORY = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("userId", pa.string()),
        pa.field("operation", pa.string()),
        pa.field("operationParameters", _STRING_MAP),
        pa.field("operationMetrics", _STRING_MAP),
    ]
)


def read_history(snapshot: Snapshot, limit: int | None = None) -> pa.Table:
    """The snapshots of the branch that still exist, up to this one, newest first.

    Args:
        snapshot: The newest to show.
        limit: At most so many rows.
    """
    if snapshot.version is None:
        return HISTORY.empty_table()
    newest = snapshot.version
    documents = [d for d in read_snapshots(snapshot.store, snapshot.branch) if d.id <= newest]
    documents = documents[::-1][:limit]
    return pa.Table.from_pylist([_row(document) for document in documents], HISTORY)


def _row(document: SnapshotDocument) -> dict[str, object]:
    counts = (
        ("totalRecordCount", document.total_record_count),
        ("deltaRecordCount", document.delta_record_count),
        ("changelogRecordCount", document.changelog_record_count),
    )
    return {
        "version": document.id,
        "timestamp": document.time_millis,
        "userId": document.commit_user,
        "operation": document.commit_kind,
        "operationParameters": [
            ("commitIdentifier", str(document.commit_identifier)),
            ("schemaId", str(document.schema_id)),
        ],
        "operationMetrics": [(name, str(count)) for name, count in counts if count is not None],
    }
