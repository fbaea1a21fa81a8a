"""Compaction of tables with data evolution: each new file by a task of its own, its rows in the order of their ids."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.rows.patch_rows import tasks_of
from alluvium.commands.write import new_files
from alluvium.commit.clear import clear
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.upkeep.append_compact import ensure_append_compactable
from alluvium.paimon.upkeep.evolved_compact import gather_ranges, gathered_entries
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import quote
from alluvium.spark.placing import place_rows, task_keys
from alluvium.spark.values.derive import CompleteRows
from alluvium.storage.store import OpenStore


def evolved_compacted(
    spark: SparkSession, snapshot: Snapshot, where: Expression | None, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    """Compacts once.

    Raises:
        UnsupportedFeature: As of `ensure_append_compactable` and `gather_ranges`.
        CommitConflict: Somebody else wrote columns of the rows, or compacted the files.
    """
    ensure_append_compactable(snapshot)
    gathered = gather_ranges(snapshot, where)
    if gathered is None:
        return Committed.nothing(snapshot.version or 0)
    target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry)
    # What is there was checked when it came.
    plan = replace(target.plan_write(None, ()).only(target.schema.names), checks=(), derived=())
    keys, count = task_keys(gathered.files.num_rows), gathered.files.num_rows
    candidates = gathered.renumbered(keys)
    rows = read_any(spark, candidates, open_store, is_even=True, reads_whole=True)
    ordered = place_rows(rows, sf.col(quote(candidates.columns.file)), count).sortWithinPartitions(quote(ROW_ID))
    own = select_texts(ordered, list(map(quote, plan.schema.names)))
    try:
        new = new_files(CompleteRows(own, plan, ()), snapshot.store, plan, (), open_store)
        added = gathered_entries(snapshot, gathered.files, new, tasks_of(new))
        return target.compact(new, added, candidates.entries)
    finally:
        # The commit has moved what it took.
        clear(snapshot.store, plan.directory)
