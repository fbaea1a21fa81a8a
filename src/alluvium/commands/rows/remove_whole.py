"""Deleted rows of files that go as a whole: nobody reads them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows.verb import Counts, Verb
from alluvium.delta.rows.candidates import Candidates
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import TOUCHED_FILES, Committed, EditFigures, EditRows, NewFiles, Preview, ReadScope
from alluvium.plan.write import WRITTEN_FILES


def remove_whole(
    target: DeltaTarget, candidates: Candidates, where: Expression | None, verb: Verb, dry_run: bool
) -> Committed | Preview:
    """Has files go all of whose rows go, and which nobody reads.

    Args:
        target: The table.
        candidates: The files.
        where: What is true of rows that go, for conflicts; None: nothing is known.
        verb: Who asks.
        dry_run: Whether only to tell which files would go.
    """
    files = candidates.files
    deleted = int(pc.sum(live_counts(candidates.snapshot, files)).as_py() or 0) if files.num_rows else 0
    counts = Counts(deleted=deleted, scan_ms=int((time.monotonic() - verb.started) * 1000))

    def describe(figures: EditFigures) -> Mapping[str, str]:
        took = int((time.monotonic() - verb.started) * 1000)
        return {k: str(v) for k, v in {**verb.metrics(counts, figures), "executionTimeMs": took}.items()}

    nothing = WRITTEN_FILES.empty_table()
    version = candidates.snapshot.version
    if dry_run:
        operation = replace(verb.operation, metrics=describe(EditFigures(files_removed=files.num_rows)))
        return Preview(version, operation, {}, (), tuple(files["path"].to_pylist()))
    if not files.num_rows and verb.txn is None:
        return Committed(version, nothing, describe(EditFigures()), 0)
    touched = pa.table([candidates.paths, pa.nulls(files.num_rows, pa.binary())], schema=TOUCHED_FILES)
    read = ReadScope.rows(where)
    return target.commit(EditRows(NewFiles.none(), touched, verb.operation, read, describe=describe, txn=verb.txn))
