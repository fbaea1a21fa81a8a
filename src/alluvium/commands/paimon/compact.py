"""Full compaction: the files of each bucket of a table of keys as one sorted run, one row a key."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.commands.paimon.compact_append import append_compacted
from alluvium.commands.write import numbered_files, write_here
from alluvium.commit.clear import clear
from alluvium.errors import AlluviumError, CommitConflict
from alluvium.expr.tree import Expression
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.upkeep.compact import plan_full_compaction
from alluvium.paimon.write.keyed import compacts_on_write
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed, NewFiles
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.run_ends import with_ends
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.workers.worker_files import OpenStore

log = logging.getLogger("alluvium")


def compact_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    where: Expression | None,
    open_store: OpenStore,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed:
    """Compacts the buckets that are not one run yet, or small files of append tables; again where somebody else did.

    Args:
        spark: The session.
        snapshot: The newest state.
        where: Of partitions: only those for which it is true.
        open_store: The table's objects for Python workers.
        retry: How often.

    Raises:
        UnsupportedFeature: As of `plan_full_compaction`, and where Spark has no operator for the merge.
        CommitConflict: Another compaction won every time.
    """
    compact = _keyed_compacted if snapshot.schema.primary_keys else append_compacted
    for repeated in range(retry.max_repeats + 1):
        try:
            return compact(spark, snapshot, where, open_store, retry)
        except CommitConflict as error:
            if repeated == retry.max_repeats or error.code == "attempts-exhausted":
                raise
            log.warning("compacted anew: %s", error.message)
            snapshot = load_snapshot(snapshot.store, At(), snapshot.branch, time_zone=snapshot.time_zone)
    raise AssertionError("the last repetition returns or raises")


def _keyed_compacted(
    spark: SparkSession, snapshot: Snapshot, where: Expression | None, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    compaction = plan_full_compaction(snapshot, where)
    if not compaction.entries.num_rows:
        return Committed.nothing(snapshot.version or 0)
    snapshot, plan = compaction.snapshot, compaction.plan_write()
    assert plan.keyed is not None, "rows of keys are compacted"
    try:
        rows = read_native(spark, compaction, is_even=True, reads_whole=True)
        counted = write_here(rows, snapshot.store, plan, open_store)
        written, footers, _ = numbered_files(snapshot.store, plan, (), counted)
        footers = with_ends(spark, plan, plan.keyed, written["path"].to_pylist(), footers)
        target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry)
        added = compaction.added(written, footers)
        return target.compact(NewFiles(written, footers), added, compaction.entries, compaction.vectors)
    finally:
        # The commit has moved what it took.
        clear(snapshot.store, plan.directory)


def compact_written(spark: SparkSession, target: PaimonTarget, open_store: OpenStore) -> None:
    """Compacts what was just written, where readers would not see it before.

    The rows are the table's already: a compaction that fails, be it in Spark, leaves them to the next one. Whoever was
    told that the commit failed would repeat it.
    """
    branch = MAIN_BRANCH if target.snapshot is None else target.snapshot.branch
    try:
        if not compacts_on_write(target.table):
            return
        newest = load_snapshot(target.store, At(), branch, time_zone=time_zone(spark))
        compact_rows(spark, newest, None, open_store, target.retry)
    except (AlluviumError, PySparkException, Py4JJavaError) as error:
        log.warning("rows were committed that readers see after the next compaction, for this one failed: %s", error)
