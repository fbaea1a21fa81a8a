"""Commits that say of themselves that they only rearrange rows (`dataChange` is false).

Specification: "Add File and Remove File": "When `false` the logical file must already be present in the table or the
records in the added file must be contained in one or more remove actions in the same version". Nobody looks at the
rows again; but as many rows must come as go.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import live_row_counts
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct


def ensure_rearranged(added: pa.Table, removed: pa.Table) -> None:
    """Refuses to call a change of data a rearrangement, as far as the numbers of rows tell.

    Args:
        added: The new files (`FILES`).
        removed: The live files that they replace (`FILES`).

    Raises:
        InvalidRequest: There are more or fewer rows than before (`data-changed`).
    """
    before, after = _rows(removed), _rows(added)
    if before is not None and after is not None and before != after:
        raise InvalidRequest(
            f"the option dataChange=false is for rows that are only rearranged: {before} rows were to be replaced, "
            f"and {after} rows are to come",
            code="data-changed",
            hint="write without dataChange=false, or write the rows that are replaced",
        )


def _rows(files: pa.Table) -> int | None:
    """How many rows are live in the files; None where one of them does not tell."""
    counts = live_row_counts(files, AddStatistics(files, Struct(()), ()).num_rows())
    return None if counts.null_count else int(pc.sum(counts).as_py() or 0)
