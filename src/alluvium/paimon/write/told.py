"""Files that tell how rows changed, beside those of the rows themselves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.compaction_options import CHANGELOG_PREFIX
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import NewFiles
from alluvium.plan.write import LOG_COLUMN


def apart(new: NewFiles) -> tuple[NewFiles, NewFiles]:
    """What a job has left: files of rows, and those that tell how rows changed."""
    tells = pc.match_substring(new.table["path"], f"/{LOG_COLUMN}=1/").to_pylist()
    if not any(tells):
        return new, NewFiles(new.table.slice(0, 0), ())
    parts = []
    for flag in (False, True):
        kept = [place for place, found in enumerate(tells) if found is flag]
        table = new.table.take(pa.array(kept, pa.int64()))
        parts.append(NewFiles(table, tuple(new.footers[place] for place in kept)))
    return parts[0], parts[1]


def told_entries(schema: TableSchema, changes: NewFiles) -> pa.Table:
    """The entries (`ENTRIES`) of files that tell how rows changed."""
    return added_entries(schema, changes.table, changes.footers, CHANGELOG_PREFIX.get(schema.options))
