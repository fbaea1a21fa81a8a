"""Compaction of tables: of keys as sorted runs want it, of others by small files; again where somebody else did."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from alluvium.commands.paimon.compact_append import append_compacted
from alluvium.commands.paimon.compact_evolved import evolved_compacted
from alluvium.commands.paimon.compact_keyed import keyed_compacted
from alluvium.commands.paimon.expired_state import expiry_as_conflict
from alluvium.commands.paimon.move_postponed import move_postponed
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.compaction_options import is_full_due
from alluvium.paimon.upkeep.keyed.plan import Asked, places_of
from alluvium.paimon.write.postponed import is_postponed
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.session import time_zone
from alluvium.storage.store import OpenStore

log = logging.getLogger("alluvium")


def compact_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    asked: Asked,
    open_store: OpenStore,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed:
    """Compacts buckets of keys, or small files of append tables; again where somebody else did.

    Args:
        spark: The session.
        snapshot: The newest state.
        asked: Which compaction is meant.
        open_store: The table's objects for Python workers.
        retry: How often.

    Raises:
        UnsupportedFeature: As of `plan_compaction` and `keyed_compacted`.
        CommitConflict: Another compaction won every time.
    """
    moved = Committed.nothing(snapshot.version or 0)
    for repeated in range(retry.max_repeats + 1):
        try:
            with expiry_as_conflict(snapshot):
                if _waits(snapshot) and not moved.attempts:
                    moved = move_postponed(spark, snapshot, asked, open_store, retry)
                    if moved.attempts:
                        # What a writer would do, as in Java; whoever wants more asks again.
                        snapshot, asked = _newest(snapshot), replace(asked, is_full=False)
                done = _compacted(spark, snapshot, asked, open_store, retry)
                return done if done.attempts else moved
        except CommitConflict as error:
            if repeated == retry.max_repeats or error.code == "attempts-exhausted":
                raise
            log.warning("compacted anew: %s", error.message)
            snapshot = _newest(snapshot)
    raise AssertionError("the last repetition returns or raises")


def _waits(snapshot: Snapshot) -> bool:
    """Whether rows wait for a bucket: also of a table that has buckets by now, and went back to a state before."""
    if not snapshot.schema.primary_keys:
        return False
    waiting = pc.equal(snapshot.entries["bucket"], o.POSTPONE_BUCKET)
    return is_postponed(snapshot.schema) or bool(pc.any(waiting, min_count=0).as_py())


def _compacted(
    spark: SparkSession, snapshot: Snapshot, asked: Asked, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    if snapshot.schema.primary_keys:
        return keyed_compacted(spark, snapshot, asked, open_store, retry)
    if asked.idle_since_ms is not None:
        raise UnsupportedFeature(
            "tables without a primary key are compacted by conditions, not by when they were written to",
            code="unsupported-compaction",
            features=("partition_idle_time",),
            hint="name the partitions by where",
        )
    evolves = o.DATA_EVOLUTION.get(snapshot.schema.options)
    compacted = evolved_compacted if evolves else append_compacted
    return compacted(spark, snapshot, asked.where, open_store, retry)


def _newest(snapshot: Snapshot) -> Snapshot:
    return load_snapshot(snapshot.store, At(), snapshot.branch, snapshot.asked, snapshot.time_zone)


def compact_written(
    spark: SparkSession,
    target: PaimonTarget,
    done: Committed,
    open_store: OpenStore,
    *,
    replaced: bool = False,
    number: int | None = None,
) -> None:
    """Compacts the buckets that were just written to as far as their runs call for it, as Java's writers do; in full
    where that is due.

    The rows are the table's already: a compaction that fails, be it in Spark, leaves them to the next one. Whoever was
    told that the commit failed would repeat it.

    Args:
        spark: The session.
        target: What was written to.
        done: What came of it.
        open_store: The table's objects for Python workers.
        replaced: Whether the rows came in the place of others: overwrites tell nothing, and neither does this, so that
            those who follow the table are not told once more of rows that have only moved.
        number: Which batch of a stream the rows are; None: of none.
    """
    branch = MAIN_BRANCH if target.snapshot is None else target.snapshot.branch
    try:
        if not target.table.primary_keys or o.WRITE_ONLY.get(target.table.options) or is_postponed(target.table):
            return
        newest = load_snapshot(target.store, At(), branch, time_zone=time_zone(spark))
        places = places_of(newest, done.files["path"])
        asked, retry = Asked(is_full=is_full_due(target.table.options, number), places=places), target.retry
        # What others brought since is told.
        if replaced and newest.version == done.version:
            by_full = o.CHANGELOG_PRODUCER.get(target.table.options) == "full-compaction"
            asked = replace(asked, is_full=asked.is_full or by_full, is_told=False)
            retry = replace(retry, max_repeats=0)
        compact_rows(spark, newest, asked, open_store, retry)
    except Exception as error:  # noqa: BLE001 - whatever it is, the rows stand
        log.warning("rows were committed, and left to the next compaction, for this one failed: %s", error)
