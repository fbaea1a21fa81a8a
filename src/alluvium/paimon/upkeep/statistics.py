"""Statistics of a whole state, as query planners want them: a document beside the snapshot that names it.

Specification: `org.apache.paimon.stats.Statistics`, `FileStoreCommitImpl.commitStatistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of the values of a column; None: it is not.

    Attributes:
        name: The column's.
        distinct: How many values there are, about.
        low: The least, as Java writes it.
        high: The greatest.
        nulls: How many rows have none.
        average_length: Of a value, bytes.
        greatest_length: Of the longest.
    """

    name: str
    distinct: int | None = None
    low: str | None = None
    high: str | None = None
    nulls: int | None = None
    average_length: int | None = None
    greatest_length: int | None = None


def format_statistics(
    snapshot: Snapshot, row_count: int, size_bytes: int, columns: Sequence[ColumnStatistics]
) -> bytes:
    """The document's bytes."""
    document = snapshot.document
    assert document is not None, "there are rows to describe"
    found = {}
    for column in columns:
        own = snapshot.schema.find(column.name)
        assert own is not None, "columns are the table's"
        said = {
            "colId": own.id,
            "distinctCount": column.distinct,
            "min": column.low,
            "max": column.high,
            "nullCount": column.nulls,
            "avgLen": column.average_length,
            "maxLen": column.greatest_length,
        }
        found[column.name] = {key: value for key, value in said.items() if value is not None}
    return msgspec.json.encode(
        {
            "snapshotId": document.id,
            "schemaId": document.schema_id,
            "mergedRecordCount": row_count,
            "mergedRecordSize": size_bytes,
            "colStats": found,
        }
    )


def commit_statistics(snapshot: Snapshot, statistics: bytes, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
    """Publishes statistics with a snapshot of their own; the rows stay as they are.

    Raises:
        CommitConflict: Others were faster every time.
    """
    draft = Draft(snapshot.schema, ENTRIES.empty_table(), statistics=statistics)
    published = publish(snapshot.store, draft, snapshot, retry)
    done = Committed.nothing(published.entry.version)
    return Committed(done.version, done.files, {}, published.attempts)
