"""What those who follow a table are to see of it, by its options.

Specification: `org.apache.paimon.table.source.DataTableStreamScan`.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.compaction_options import num_levels
from alluvium.paimon.view.selection import as_streams_see


def as_streams_begin(snapshot: Snapshot) -> Snapshot:
    """A state with the files that a stream begins with.

    What lies below them comes in the changelog of the compaction to come, where there will be one
    (`DataTableStreamScan.tryFirstPlan`); what else lies at level 0 comes in no later change. Of a fallback branch
    streams know nothing (`DelegatedFileStoreTable.newStreamScan`): what changes there would never come.
    """
    options = {**snapshot.schema.options, o.FALLBACK_BRANCH.key: ""}
    snapshot = replace(snapshot, schema=replace(snapshot.schema, options=options))
    lowest = {"lookup": 1, "full-compaction": num_levels(options) - 1}.get(o.CHANGELOG_PRODUCER.get(options), 0)
    return as_streams_see(snapshot, lowest)


def follows_waiting(schema: TableSchema) -> bool:
    """Whether followers are told of rows when they are written, though they have no bucket yet."""
    options = schema.options
    return o.BUCKET.get(options) == o.POSTPONE_BUCKET and o.CHANGELOG_PRODUCER.get(options) == "none"


def follows_overwrites(schema: TableSchema) -> bool:
    """Whether followers are told what overwrites did to rows of keys: `streaming-read-overwrite`."""
    return bool(schema.primary_keys) and o.STREAMING_READ_OVERWRITE.get(schema.options)
