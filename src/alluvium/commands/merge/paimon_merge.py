"""MERGE into Paimon tables: of keys by upserts and deletions, of others by files anew or by deletion vectors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from alluvium.commands.merge.merge_clauses import ensure_clauses
from alluvium.commands.merge.merge_explain import MergeExplanation, explain_merge
from alluvium.commands.merge.merge_rows import MergeRows
from alluvium.commands.merge.merge_source import MergeSource, keep_source
from alluvium.commands.merge.merging import Merge, MergeRequest
from alluvium.commands.paimon.compact import compact_written
from alluvium.commands.paimon.own_reads import ensure_current
from alluvium.commands.paimon.repeated import repeated
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.candidates import PaimonVersion, ensure_append_rows_change, ensure_columns_change
from alluvium.paimon.terms.options import DATA_EVOLUTION
from alluvium.paimon.view.selection import with_new_rows
from alluvium.paimon.write.keyed import RowKinds, ensure_rows_change
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import ensure_writable
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.merging import Action, When
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.statements.statement import one_statement
from alluvium.storage.locating import locating
from alluvium.storage.store import OpenStore


def merge_into_paimon(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    open_store: OpenStore,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Merges a source into a table.

    Raises:
        InvalidRequest: Expressions do not resolve (`"invalid-expression"`), a row of the table has several matches
            (`"multiple-matches"`), clauses are missing or never reached, a key would change (`"key-changed"`), or new
            rows do not fit the table.
        UnsupportedFeature: The table does not take what a clause does (`"unsupported-row-change"`).
        CommitConflict: Another writer touched what was read, and the verb could not be repeated.
    """
    started = time.monotonic()

    def attempt(base: Snapshot) -> Committed | Preview:
        with _merging(spark, base, request, source, open_store, retry, started) as merge:
            done = merge.run(PaimonVersion(with_new_rows(base)), "", dry_run, None)
            if isinstance(done, Committed) and done.attempts:
                assert isinstance(merge.target, PaimonTarget)
                compact_written(spark, merge.target, done, open_store)
            return done

    with _kept(snapshot, request) as source:
        # Rows that were read from an older state would be merged into a newer one.
        ensure_current(source.reads, snapshot)
        obstacle = "its source was read from the table itself" if source.reads else None
        return repeated(spark, snapshot, retry, attempt, obstacle)


def explain_paimon_merge(
    spark: SparkSession, snapshot: Snapshot, request: MergeRequest, open_store: OpenStore
) -> MergeExplanation:
    """How the source would be merged; it is counted, the table is not read.

    Raises:
        InvalidRequest: Expressions do not resolve (`"invalid-expression"`), or clauses are missing or never reached.
        UnsupportedFeature: As of `merge_into_paimon`.
    """
    with (
        one_statement(spark, OwnTable(snapshot.store.url)),
        _kept(snapshot, request) as source,
        _merging(spark, snapshot, request, source, open_store, DEFAULT_RETRY, time.monotonic()) as merge,
    ):
        planned = merge.plan(PaimonVersion(with_new_rows(snapshot)))
        shown = (planned.candidates, planned.mode, planned.figures, request.clauses)
        return explain_merge(*shown, broadcasts=planned.rows.broadcasts)


def _ensure_mergeable(snapshot: Snapshot, request: MergeRequest) -> None:
    """What no row need be read for."""
    if request.evolves:
        raise InvalidRequest(
            "a merge into a Paimon table does not change its columns",
            code="contradicting-options",
            url=snapshot.store.url,
            hint="PaimonTable.forPath(url).alter([SchemaChange.add_column(...)]) first",
        )
    ensure_writable(snapshot.schema)
    actions = {clause.action for clause in request.clauses}
    if DATA_EVOLUTION.get(snapshot.schema.options):
        alone = any(clause.when is When.NOT_MATCHED_BY_SOURCE for clause in request.clauses)
        ensure_columns_change(snapshot, is_patch=Action.DELETE not in actions and not alone)
        return
    if not snapshot.schema.primary_keys:
        ensure_append_rows_change(snapshot)
        return
    ensure_rows_change(snapshot.schema, deletes=Action.DELETE in actions, updates=Action.UPDATE in actions)


@contextmanager
def _kept(snapshot: Snapshot, request: MergeRequest) -> Iterator[MergeSource]:
    """The source, computed once however often the merge is carried out."""
    ensure_clauses(request.clauses)
    with locating(snapshot.store, snapshot.version):
        _ensure_mergeable(snapshot, request)
        source = keep_source(request.source, OwnTable(snapshot.store.url), snapshot.schema.names)
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
    open_store: OpenStore,
    retry: RetryPolicy,
    started: float,
) -> Iterator[Merge]:
    with locating(snapshot.store, snapshot.version):
        _ensure_mergeable(snapshot, request)
        request = replace(request, source=source.rows)
        takes_back = any(clause.action is Action.DELETE for clause in request.clauses)
        kinds = RowKinds(takes_back) if snapshot.schema.primary_keys else None
        target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry, kind=kinds)
        rows = MergeRows(spark, target, source, request.condition, request.clauses, request.name, open_store=open_store)
        current = partial(ensure_current, snapshot=snapshot)
        yield Merge(spark, target, request, rows, started, current, open_store)
