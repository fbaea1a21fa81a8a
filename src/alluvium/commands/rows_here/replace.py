"""Rows in the place of those for which a condition is true, without Spark: a deletion and an append in one commit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.commands.rows.verb import Counts, Verb
from alluvium.commands.rows_here.apply import RowsHere
from alluvium.commands.rows_here.delete import Deletion
from alluvium.commands.rows_here.judged import Judged
from alluvium.commands.written import Request, ensure_data_changes
from alluvium.delta.rows.candidates import choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import Committed, EditFigures, RowChangeMode
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class Replacement:
    """Implements `Judge`: rows for which a condition is true go, others come.

    Attributes:
        deletion: Of those that go.
        rows: Those that come; read once.
    """

    deletion: Deletion
    rows: pa.RecordBatchReader

    @property
    def where(self) -> Expression | None:
        return self.deletion.where

    @property
    def columns(self) -> Sequence[str]:
        return self.deletion.columns

    @property
    def makes_rows(self) -> bool:
        return False

    def judge(self, rows: pa.Table) -> Judged:
        return self.deletion.judge(rows)

    def inserted(self) -> Iterable[pa.Table]:
        return (pa.Table.from_batches([batch]) for batch in self.rows)


def replace_rows_here(
    rows: pa.RecordBatchReader, target: DeltaTarget, request: Request, time_zone: str = "UTC"
) -> Committed:
    """Deletes the rows for which `request.replace.where` is true, and writes rows, in one commit.

    Raises:
        InvalidRequest: The rows do not fit the table or the condition; the table is as it was.
        UnsupportedFeature: The table, or the condition, needs Spark (`"needs-spark"`).
        CommitConflict: Another writer touched what was read.
    """
    snapshot, overwrites = target.snapshot, request.replace
    assert snapshot is not None and overwrites is not None, "there are rows that can be replaced"
    ensure_data_changes(request)
    with locating(snapshot.store, snapshot.version):
        candidates = choose_candidates(snapshot, overwrites.where)
        mode = row_change_mode(target.config, candidates, masks=True)

        def metrics(counts: Counts, figures: EditFigures) -> Mapping[str, int]:
            return _metrics(counts, figures, work.left if mode is RowChangeMode.MASK_ROWS else None)

        verb = Verb(request.operation, metrics, time.monotonic(), txn=request.txn)
        judge = Replacement(Deletion(overwrites.where, time_zone), rows)
        work = RowsHere(target, candidates, judge, overwrites.where, verb, mode, time_zone, request)
        return work.apply()


def _metrics(counts: Counts, figures: EditFigures, left: int | None) -> Mapping[str, int]:
    """Under the names of the reference's history; rows are told only where new ones were written."""
    found = {
        "numFiles": figures.files_added + figures.masks_added,
        "numRemovedFiles": figures.files_removed,
        "numRemovedBytes": figures.bytes_removed if left is None else 0,
        "numAddedChangeFiles": figures.change_files,
        "numOutputBytes": figures.bytes_added,
    }
    if counts.inserted:
        kept = counts.copied if left is None else left
        found |= {
            "numCopiedRows": kept,
            "numDeletedRows": counts.deleted,
            "numOutputRows": counts.inserted + kept,
        }
    return found
