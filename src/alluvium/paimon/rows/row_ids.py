"""Files that store the ids of their rows: what is in them beside the columns, and what manifests say of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn
from alluvium.paimon.features.row_tracking import is_tracked
from alluvium.paimon.files.file_forms import field_id
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import DATA_EVOLUTION, FILE_FORMAT
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.merge import SEQUENCE
from alluvium.plan.scan import FIELD_ID
from alluvium.plan.write import StoredIds
from alluvium.schema.types import LONG, Field

#: The columns of files that store rows' ids and the snapshots that changed them, and their numbers.
_NUMBERS = ((ROW_ID, 2147483642), (SEQUENCE, 2147483646))
_TEXTS = pa.list_(pa.string())


def stored_ids(schema: TableSchema) -> StoredIds | None:
    """How files store the ids of rows that were in others before; None where rows have none, or never move."""
    if not is_tracked(schema.options) or DATA_EVOLUTION.get(schema.options):
        return None
    row_id, sequence = (Field(name, LONG, True, {FIELD_ID: number}) for name, number in _NUMBERS)
    file_format = FILE_FORMAT.get(schema.options)
    return StoredIds(
        (row_id, sequence),
        tuple(pa.field(name, pa.int64(), metadata=field_id(file_format, number)) for name, number in _NUMBERS),
        (FooterColumn((SEQUENCE,), LONG),),
        is_apart=True,
    )


def with_stored_ids(added: pa.Table, schema: TableSchema, footers: Sequence[FileFooter]) -> pa.Table:
    """Entries of files that store the ids of all of their rows.

    Java's commit takes a first number of 0 for a file all of whose rows are new or changed, and a last one of 0 for one
    of which some are (`RowTrackingCommitUtils`).

    Args:
        added: Entries, with statistics of the table's columns alone.
        schema: The table's.
        footers: Theirs.
    """
    numbers = [footer.columns.get((SEQUENCE,)) for footer in footers]
    known = [s if s is not None and isinstance(s.min, int) and isinstance(s.max, int) else None for s in numbers]
    low = [0 if s is None else s.min for s in known]
    high = [0 if s is None or s.null_count != 0 else s.max for s in known]
    told = pc.fill_null(added["value_stats_cols"].combine_chunks(), pa.scalar(list(schema.names), _TEXTS))
    columns = {
        "min_sequence_number": pa.array(low, pa.int64()),
        "max_sequence_number": pa.array(high, pa.int64()),
        "value_stats_cols": told,
        "write_cols": pa.array([[*schema.names, ROW_ID, SEQUENCE]] * added.num_rows, _TEXTS),
    }
    for name, values in columns.items():
        place = added.schema.get_field_index(name)
        added = added.set_column(place, added.schema.field(place), values.cast(added.schema.field(place).type))
    return added
