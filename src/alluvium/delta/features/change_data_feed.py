"""changeDataFeed: writers record which rows they changed, so that readers can ask for the changes of versions.

Specification: "Add CDC File", "Change Data Files". Snapshots are read as if it were not there; the changes are read by
`delta.changes`.
"""

from __future__ import annotations

from alluvium.delta.config import TableConfig
from alluvium.delta.features.feature import Feature

ENABLED = "delta.enableChangeDataFeed"


def is_used(config: TableConfig) -> bool:
    """ "When `delta.enableChangeDataFeed` is `true`, writers must produce the relevant `AddCDCFile`'s for any operation
    that changes data".
    """
    return config.metadata.configuration.get(ENABLED, "").strip().casefold() == "true"


FEATURE = Feature(
    name="changeDataFeed",
    reader=False,
    spec="Add CDC File",
    legacy_writer=4,
    writable=False,
    writable_while_idle=True,
    is_used=is_used,
)
