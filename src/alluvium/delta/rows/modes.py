"""How a table takes changed rows: by masks over those that go, or by files anew."""

from __future__ import annotations

from alluvium.delta.features.rows import deletion_vectors
from alluvium.delta.rows.candidates import Candidates
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.terms.config import TableConfig
from alluvium.plan.changes import RowChangeMode


def row_change_mode(config: TableConfig, candidates: Candidates, *, masks: bool) -> RowChangeMode:
    """The mode for some files.

    "`delta.enableDeletionVectors`: [...] writers may write deletion vectors", and only for files that say how many rows
    they have.

    Args:
        config: Of the table.
        candidates: Files that may hold rows that change.
        masks: Whether the caller lets the verb mask rows.
    """
    is_supported = "deletionVectors" in (config.protocol.writer_features or ())
    if not (masks and deletion_vectors.is_used(config) and is_supported):
        return RowChangeMode.REWRITE_FILES
    unknown = live_counts(candidates.snapshot, candidates.files).null_count if candidates.files.num_rows else 0
    return RowChangeMode.REWRITE_FILES if unknown else RowChangeMode.MASK_ROWS
