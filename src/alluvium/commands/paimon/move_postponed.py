"""Rows that wait for it come into buckets: read once, divided, merged and written as a writer's are."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.write import write_here
from alluvium.commands.written import numbered_files
from alluvium.commit.clear import clear
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.upkeep.keyed.plan import Asked
from alluvium.paimon.upkeep.postponed import TOTAL, Moving, plan_moving
from alluvium.paimon.view.file_rows import FILE, ROW
from alluvium.paimon.view.merge import KIND
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.told import apart
from alluvium.plan.changes import Committed, NewFiles
from alluvium.plan.retry import RetryPolicy
from alluvium.plan.write import BUCKET_COLUMN, WritePlan
from alluvium.spark.buckets import bucket_of
from alluvium.spark.naming.names import quote
from alluvium.spark.run_ends import with_ends
from alluvium.storage.store import OpenStore

#: More rows than a file has.
_FILE_STEP = 1 << 40


def move_postponed(
    spark: SparkSession, snapshot: Snapshot, asked: Asked, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    """Divides the rows that wait in the newest state, of partitions that a compaction is asked of.

    Raises:
        InvalidRequest: As of `plan_moving`.
        UnsupportedFeature: As of `plan_moving`.
        CommitConflict: Somebody else moved them, or overwrote them.
    """
    moving = plan_moving(snapshot, asked)
    if not moving.before.num_rows:
        return Committed.nothing(snapshot.version or 0)
    target, plan = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry), moving.plan_write()
    assert plan.keyed is not None, "rows of keys are divided"
    try:
        counted = write_here(_rows(spark, moving, plan, open_store), snapshot.store, plan, open_store)
        written, footers, _ = numbered_files(snapshot.store, plan, (), counted)
        footers = with_ends(spark, plan, plan.keyed, written["path"].to_pylist(), footers)
        rows, changes = apart(NewFiles(written, footers))
        told = (changes, moving.told(changes.table, changes.footers)) if plan.keyed.logs else None
        return target.compact(rows, moving.added(rows.table, rows.footers), moving.before, told=told)
    finally:
        # The commit has moved what it took.
        clear(snapshot.store, plan.directory)


def _rows(spark: SparkSession, moving: Moving, plan: WritePlan, open_store: OpenStore) -> DataFrame:
    """The rows as the plan has them, with numbers in their order, and their buckets."""
    assert plan.keyed is not None, "rows of keys are divided"
    rows = read_any(spark, moving.rows, open_store, is_even=True, reads_whole=True)
    made: dict[str, Column] = {
        KIND: sf.col(KIND),
        plan.keyed.number: sf.col(FILE) * sf.lit(_FILE_STEP) + sf.col(ROW),
        BUCKET_COLUMN: bucket_of(spark, moving.bucketing, sf.col(TOTAL)),
    }
    own = (sf.col(quote(name)) for name in plan.schema.names if name not in made)
    return rows.select(*own, *(column.alias(name) for name, column in made.items()))
