"""Files of columns of rows that are there already: their manifest entries, in tables with data evolution.

Specification: "files with overlapping row-id ranges are zipped by row id; each column comes from the newest file (max
sequence) whose `_WRITE_COLS` [...] contain it".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.range_candidates import RANGE
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import Patches


def patch_entries(schema: TableSchema, snapshot: Snapshot, patches: Patches) -> tuple[pa.Table, pa.Array]:
    """The entries (`ENTRIES`) of files of columns, and the names of the live files of the same rows.

    Args:
        schema: The table's.
        snapshot: The state whose rows they are about.
        patches: The files.

    Raises:
        CorruptTable: A file has not the rows that it is about (`"rows-differ"`): nothing may be published.
    """
    live, new = snapshot.entries, patches.new
    names = pc.replace_substring_regex(patches.paths, "^.*/", "")
    places = pc.index_in(names, value_set=live["file_name"].combine_chunks())
    about = live.take(places)
    written, wanted = new.table["num_rows"].combine_chunks(), about["row_count"].combine_chunks()
    if not written.equals(wanted) or len(pc.unique(names)) != len(names):
        raise CorruptTable(
            f"files of columns have {written.to_pylist()} rows, those that they are about {wanted.to_pylist()}",
            code="rows-differ",
            url=snapshot.store.url,
        )
    # Their statistics are those of the columns that they have, in the schema's order.
    held = replace(schema, fields=tuple(f for f in schema.fields if f.name in patches.columns), partition_keys=())
    added = added_entries(held, new.table, new.footers)
    columns = [f.name for f in held.fields]
    values = {
        "partition": about["partition"].combine_chunks(),
        "bucket": about["bucket"].combine_chunks(),
        "first_row_id": about["first_row_id"].combine_chunks(),
        "write_cols": pa.array([columns] * added.num_rows, pa.list_(pa.string())),
    }
    for name, array in values.items():
        place = added.schema.get_field_index(name)
        added = added.set_column(place, added.schema.field(place), array.cast(added.schema.field(place).type))
    # A range, not a file, is what must be as it was.
    same = live.select(RANGE).append_column("place", pa.array(np.arange(live.num_rows)))
    places = same.join(about.select(RANGE), RANGE, join_type="left semi")["place"]
    return added, live["file_name"].combine_chunks().take(places.combine_chunks())
