"""Rows with ids that last: `row-tracking.enabled`.

Specification: "`_ROW_ID` = `_FIRST_ROW_ID` + position, `_SEQUENCE_NUMBER` = file's max sequence (= snapshot id)".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from alluvium.paimon.terms.options import DATA_EVOLUTION, ROW_TRACKING


def is_tracked(options: Mapping[str, str]) -> bool:
    """Whether the table's rows have ids."""
    return ROW_TRACKING.get(options) or DATA_EVOLUTION.get(options)


def with_row_ids(added: pa.Table, snapshot_id: int, next_row_id: int) -> tuple[pa.Table, int]:
    """New entries with the ids of their rows, and the id that the next row will have.

    Args:
        added: Entries.
        snapshot_id: The snapshot that adds them.
        next_row_id: The id that their first row gets.
    """
    counts = np.asarray(added["row_count"].to_numpy(), np.int64)
    ends = next_row_id + np.cumsum(counts)
    columns = {
        "first_row_id": ends - counts,
        "min_sequence_number": np.full(len(counts), snapshot_id),
        "max_sequence_number": np.full(len(counts), snapshot_id),
    }
    for name, values in columns.items():
        place = added.schema.get_field_index(name)
        added = added.set_column(place, added.schema.field(place), pa.array(values, pa.int64()))
    return added, int(ends[-1]) if len(ends) else next_row_id
