"""changeDataFeed: writers record which rows they changed, so that readers can ask for the changes of versions.

Specification: "Add CDC File", "Change Data Files". Snapshots are read as if it were not there; the changes are read by
`delta.changes`.
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest
from alluvium.schema.spark_json import parse_schema

ENABLED = "delta.enableChangeDataFeed"
#: What the feed adds to the table's columns.
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


def is_used(config: TableConfig) -> bool:
    """ "When `delta.enableChangeDataFeed` is `true`, writers must produce the relevant `AddCDCFile`'s for any operation
    that changes data".
    """
    return config.metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def ensure_no_reserved_columns(metadata: Metadata, before: TableConfig | None) -> Metadata:
    """Refuses a change feed on a table whose columns have the names that the feed adds.

    Raises:
        InvalidRequest: There is such a column (`reserved-column`).
    """
    if metadata.configuration.get(ENABLED, "").strip().lower() != "true":
        return metadata
    names = {name.lower() for name in parse_schema(metadata.schema_string).names}
    taken = [name for name in CHANGE_COLUMNS if name in names]
    if taken:
        raise InvalidRequest(
            f"a table with a change data feed cannot have a column {taken[0]!r}: the feed adds one",
            code="reserved-column",
            column=taken[0],
            hint=f"rename the column, or leave {ENABLED} out",
        )
    return metadata


FEATURE = Feature(
    name="changeDataFeed",
    reader=False,
    spec="Add CDC File",
    legacy_writer=4,
    is_used=is_used,
    on_change=ensure_no_reserved_columns,
)
