"""Rows with ids that last: `row-tracking.enabled`.

Specification: "`_ROW_ID` = `_FIRST_ROW_ID` + position, `_SEQUENCE_NUMBER` = file's max sequence (= snapshot id), both
overridden by columns of the same name stored in compacted files (null there: fall back)". Rows that change, or only
come into another file, keep their ids in such columns; the number of those that change is null.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.paimon.terms.options import DATA_EVOLUTION, ROW_TRACKING
from alluvium.paimon.terms.spec import ROW_ID


def is_tracked(options: Mapping[str, str]) -> bool:
    """Whether the table's rows have ids."""
    return ROW_TRACKING.get(options) or DATA_EVOLUTION.get(options)


def with_row_ids(added: pa.Table, snapshot_id: int, next_row_id: int, compacts: bool = False) -> tuple[pa.Table, int]:
    """New entries with the ids of their rows, and the id that the next row will have.

    Args:
        added: Entries. Files that store the ids of their rows (`with_stored_ids`), or that hold columns of rows that
            have theirs already, get none.
        snapshot_id: The snapshot that adds them.
        next_row_id: The id that their first row gets.
        compacts: Whether files that have ids already hold the rows of others, and keep what snapshots these were of.
    """
    stores = _stores_ids(added)
    has_first = ~np.asarray(added["first_row_id"].is_null())
    has_ids = stores | has_first
    counts = np.where(has_ids, 0, np.asarray(added["row_count"].to_numpy(), np.int64))
    ends = next_row_id + np.cumsum(counts)
    low, high = (np.asarray(added[f"{end}_sequence_number"].to_numpy(), np.int64) for end in ("min", "max"))
    is_new = np.where(stores, low == 0, ~(has_first & compacts))
    columns = {
        "first_row_id": pc.if_else(pa.array(has_ids), added["first_row_id"].combine_chunks(), pa.array(ends - counts)),
        "min_sequence_number": pa.array(np.where(is_new, snapshot_id, low)),
        "max_sequence_number": pa.array(np.where(is_new | (high == 0), snapshot_id, high)),
    }
    for name, values in columns.items():
        place = added.schema.get_field_index(name)
        added = added.set_column(place, added.schema.field(place), values)
    return added, int(ends[-1]) if len(ends) else next_row_id


def _stores_ids(added: pa.Table) -> npt.NDArray[np.bool_]:
    """Of each entry whether its file stores ids."""
    # One step a file that somebody has just written.
    return np.array([columns is not None and ROW_ID in columns for columns in added["write_cols"].to_pylist()], bool)
