"""MERGE: a source's rows joined to the table's, and what each pair, or each row without a partner, comes to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.commands.layout import session_layout
from alluvium.commands.merge.merge_clauses import ensure_clauses, taken_columns, taken_names
from alluvium.commands.merge.merge_explain import MergeExplanation, explain_merge
from alluvium.commands.merge.merge_rows import MergeRows
from alluvium.commands.merge.merge_source import MergeSource, keep_source
from alluvium.commands.merge.merging import Merge, MergeRequest
from alluvium.commands.own_reads import ensure_current, own_table
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.repeat import until_committed
from alluvium.commands.rows.row_changes import DeltaVersion
from alluvium.commands.rows.session_rules import may_mask
from alluvium.delta.description.merge_schema import merged_config
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Committed, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.statements.statement import one_statement
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class Lane:
    """How a session of some kind merges.

    Attributes:
        keep: Has the source computed once, which goes into a version of a table.
        rows: What rows come to.
        merge: One attempt.
    """

    keep: Callable[[DataFrame, Snapshot], MergeSource]
    rows: type[MergeRows]
    merge: type[Merge]


def _keep(source: DataFrame, snapshot: Snapshot) -> MergeSource:
    return keep_source(source, own_table(snapshot), snapshot.config.schema.names)


CLASSIC = Lane(_keep, MergeRows, Merge)


def merge_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    txn: Txn | None = None,
    lane: Lane = CLASSIC,
) -> Committed | Preview:
    """Merges a source into a table.

    Raises:
        InvalidRequest: Expressions do not resolve (`invalid-expression`), a row of the table has several matches
            (`multiple-matches`), clauses are missing or never reached, or new rows do not fit the table.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated; or the source shows
            an older version of the table itself.
    """
    started = time.monotonic()

    def attempt(base: Snapshot, policy: RetryPolicy) -> Committed | Preview:
        with _merging(spark, base, request, source, policy, started, lane) as merge:
            return merge.run(DeltaVersion(merge.target, base, may_mask(spark, "MERGE")), engine, dry_run, txn)

    with _kept(spark, snapshot, request, lane) as source:
        # Rows that were read from an older version would be merged into a newer one.
        if not snapshot.has_come_to(txn):
            ensure_current(source.reads, snapshot, source.scope, admits_blind=False)
        obstacle = "its source was read from the table itself" if source.reads else None
        return until_committed(spark, snapshot, retry, attempt, obstacle, txn)


def explain_rows(
    spark: SparkSession, snapshot: Snapshot, request: MergeRequest, lane: Lane = CLASSIC
) -> MergeExplanation:
    """How the source would be merged; it is counted, the table is not read.

    Raises:
        InvalidRequest: Expressions do not resolve (`invalid-expression`), or clauses are missing or never reached.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    started = time.monotonic()
    with (
        _kept(spark, snapshot, request, lane) as source,
        _merging(spark, snapshot, request, source, DEFAULT_RETRY, started, lane) as merge,
    ):
        planned = merge.plan(DeltaVersion(merge.target, snapshot, may_mask(spark, "MERGE")))
        broadcasts = planned.rows.broadcasts
        return explain_merge(planned.candidates, planned.mode, planned.figures, request.clauses, broadcasts=broadcasts)


@contextmanager
def _kept(spark: SparkSession, snapshot: Snapshot, request: MergeRequest, lane: Lane) -> Iterator[MergeSource]:
    """The source, computed once however often the merge is carried out, as the table is in the version."""
    ensure_clauses(request.clauses)
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        with one_statement(spark, own_table(snapshot)) as statement:
            statement.stand_on(snapshot.version)
            source = lane.keep(request.source, snapshot)
        try:
            yield source
        finally:
            source.release()


@contextmanager
def _merging(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    source: MergeSource,
    retry: RetryPolicy,
    started: float,
    lane: Lane,
) -> Iterator[Merge]:
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        request = replace(request, source=source.rows)
        target = replace(_target(snapshot, request, retry), layout=session_layout(spark))
        rows = lane.rows(spark, target, source, request.condition, request.clauses, request.name, request.evolves)
        # A blind append may not be ordered after rows that were compared with those of the table.
        current = partial(ensure_current, snapshot=snapshot, scope=ReadScope.table(), admits_blind=False)
        yield lane.merge(spark, target, request, rows, started, current)


def _target(snapshot: Snapshot, request: MergeRequest, retry: RetryPolicy) -> DeltaTarget:
    config = snapshot.config
    if request.evolves:
        names = taken_names(request.clauses, request.name)
        # Of no other column anything need be known: it may be of a type that no table has.
        chosen = [f for f in request.source.schema.fields if names is None or f.name.lower() in names]
        data = from_spark(StructType(chosen))
        assert isinstance(data, Struct)
        config = merged_config(config, taken_columns(request.clauses, data, request.name), casts=True)
    return DeltaTarget(snapshot.store, config, snapshot, retry)
