"""Compaction of append tables: the rows of small files in larger ones, without those that vectors say are gone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from alluvium.commands.any_rows import read_any
from alluvium.commands.rows.row_identity import copied_ids
from alluvium.commands.write import new_files
from alluvium.commit.clear import clear
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.candidates import Candidates
from alluvium.paimon.rows.row_ids import stored_ids, with_stored_ids
from alluvium.paimon.rows.vectors import edit_files
from alluvium.paimon.upkeep.append_compact import choose_small_files, ensure_append_compactable
from alluvium.paimon.upkeep.keyed.compaction import compacted_entries
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import added_entries, plan_write
from alluvium.plan.changes import TOUCHED_FILES, Committed, RowColumns
from alluvium.plan.retry import RetryPolicy
from alluvium.plan.write import WritePlan
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import quote
from alluvium.spark.values.derive import CompleteRows
from alluvium.storage.store import OpenStore


def append_compacted(
    spark: SparkSession, snapshot: Snapshot, where: Expression | None, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    """Compacts once.

    Raises:
        UnsupportedFeature: As of `ensure_append_compactable`.
        CommitConflict: Somebody else changed or compacted the files.
    """
    ensure_append_compactable(snapshot)
    entries = choose_small_files(snapshot, where)
    if not entries.num_rows:
        return Committed.nothing(snapshot.version or 0)
    candidates = moved_rows(snapshot, entries)
    # What is there was checked when it came; files of a partition become few of the right size.
    plan = replace(plan_write(snapshot.schema, snapshot.store.url), checks=(), derived=(), rebalance=True)
    rows = read_any(spark, candidates, open_store, is_even=True, reads_whole=True)
    return written_compacted(rows, snapshot, plan, candidates, open_store, retry)


def moved_rows(snapshot: Snapshot, entries: pa.Table) -> Candidates:
    """Files whose rows come into others, with their ids where they have any."""
    numbers = pa.array(np.arange(entries.num_rows), pa.int64())
    if stored_ids(snapshot.schema) is None:
        return Candidates(snapshot, entries, numbers, is_placed=False)
    return Candidates(snapshot, entries, numbers, RowColumns.with_ids())


def written_compacted(
    rows: DataFrame,
    snapshot: Snapshot,
    plan: WritePlan,
    candidates: Candidates,
    open_store: OpenStore,
    retry: RetryPolicy,
    is_overwrite: bool = False,
) -> Committed:
    """Writes the rows of files as others, and commits these in their place.

    Args:
        rows: They, as the candidates have them.
        snapshot: Whose files.
        plan: How the table's columns are written.
        candidates: The files.
        open_store: The table's objects for Python workers.
        retry: How often a lost commit is tried again.
        is_overwrite: Whether the commit says that it overwrites the files, not that it compacts them.
    """
    entries, schema = candidates.entries, snapshot.schema
    own = [*map(quote, plan.schema.names), *copied_ids(candidates)]
    rows, plan = select_texts(rows, own), plan.with_ids(candidates.stored_ids)
    try:
        new = new_files(CompleteRows(rows, plan, ()), snapshot.store, plan, open_store=open_store)
        target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry)
        touched = pa.table([candidates.paths, pa.nulls(entries.num_rows, pa.binary())], schema=TOUCHED_FILES)
        edited = edit_files(snapshot, entries, touched)
        added = added_entries(schema, new.table, new.footers)
        if candidates.stored_ids is not None:
            added = with_stored_ids(added, schema, new.footers)
        if not is_overwrite:
            added = compacted_entries(added)
        return target.compact(new, added, entries, edits=edited.vectors, is_overwrite=is_overwrite)
    finally:
        # The commit has moved what it took.
        clear(snapshot.store, plan.directory)
