"""DELETE: rows for which a condition is true go; files all of whose rows go are not even read."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.layout import changed_target
from alluvium.commands.own_reads import ensure_current, unpinned
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.remove_whole import remove_whole
from alluvium.commands.rows.repeat import until_committed
from alluvium.commands.rows.row_changes import FirstPass, Purpose, RowChanges
from alluvium.commands.rows.row_condition import RowCondition, row_condition
from alluvium.commands.rows.session_rules import may_mask
from alluvium.commands.rows.verb import Verb, delete_metrics
from alluvium.delta.rows.candidates import Candidates, candidates_of, choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.view.scan import decided_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import (
    ChangeKind,
    Committed,
    Operation,
    Preview,
    ReadScope,
)
from alluvium.plan.ports import RowPlaces
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.scan.numbering import skips_within_files
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.statements.statement import reads_so_far
from alluvium.storage.locating import locating

#: How a table is called in expressions where its owner gave no name.
TABLE = "__alluvium_table"


def delete_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: Column | str | None,
    engine: str,
    name: Qualifier = (TABLE,),
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    txn: Txn | None = None,
) -> Committed | Preview:
    """Deletes the rows for which the condition is true; without one, all.

    Raises:
        InvalidRequest: The condition does not resolve (`invalid-expression`), or the table is append-only.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated; or a subquery shows
            an older version of the table itself.
    """
    attempt = partial(_attempt, spark, condition, engine, name, dry_run, time.monotonic(), txn)
    return until_committed(spark, snapshot, retry, attempt, txn=txn)


def _attempt(
    spark: SparkSession,
    condition: Column | str | None,
    engine: str,
    name: Qualifier,
    dry_run: bool,
    started: float,
    txn: Txn | None,
    snapshot: Snapshot,
    retry: RetryPolicy,
) -> Committed | Preview:
    with locating(snapshot.store, snapshot.version):
        target = changed_target(spark, snapshot, retry)
        rows = read_native(spark, DeltaSource(snapshot))
        with row_condition(rows, condition, "the condition of DELETE", name) as judged:
            shown = [judged.shown or "true"]
            operation = Operation("DELETE", {"predicate": msgspec.json.encode(shown).decode()}, {}, engine)
            return _delete(spark, target, judged, snapshot, Verb(operation, delete_metrics, started, txn=txn), dry_run)


def _delete(
    spark: SparkSession, target: DeltaTarget, judged: RowCondition, snapshot: Snapshot, verb: Verb, dry_run: bool
) -> Committed | Preview:
    where = judged.where(snapshot.config.schema)
    own = unpinned(reads_so_far())
    ensure_current(own, snapshot, ReadScope.table(), admits_blind=False)
    # A subquery over the table itself depends on rows that the condition does not speak of.
    scope = None if own else where
    skips = skips_within_files(where, snapshot.config.partition_columns)
    first_pass, only = partial(_first_pass, spark, judged, skips), ChangeKind.DELETE
    return apply_deletion(spark, target, where, scope, first_pass, verb, dry_run, only=only)


def apply_deletion(
    spark: SparkSession,
    target: DeltaTarget,
    where: Expression | None,
    scope: Expression | None,
    first_pass: Callable[[RowPlaces, Purpose], FirstPass],
    verb: Verb,
    dry_run: bool,
    *,
    only: ChangeKind | None = None,
) -> Committed | Preview:
    """Chooses the files, and applies a deletion; files all of whose rows go are not read.

    Args:
        spark: The session.
        target: The table, at the version that is read.
        where: What the condition says of its columns; None: all rows go.
        scope: What rows that go have in common, for conflicts; None: any row may.
        first_pass: Finds them in files.
        verb: Who asks.
        dry_run: Whether only to tell what would change.
        only: As of `locate`.
    """
    snapshot = target.snapshot
    assert snapshot is not None, "rows are deleted from a version"
    decided = decided_files(snapshot, where)
    if decided is not None and _is_counted(snapshot, decided):
        return remove_whole(target, candidates_of(snapshot, decided), scope, verb, dry_run)
    candidates = choose_candidates(snapshot, where)
    if not candidates.files.num_rows:
        return remove_whole(target, candidates, scope, verb, dry_run)
    mode = row_change_mode(target.config, candidates, masks=may_mask(spark, "DELETE"))
    changes = RowChanges(first_pass, candidates, scope, only=only)
    return apply_changes(spark, target, changes, verb, mode, dry_run=dry_run)


def _is_counted(snapshot: Snapshot, files: pa.Table) -> bool:
    """Whether it is known how many rows go with files that nobody reads: the history tells."""
    return not files.num_rows or live_counts(snapshot, files).null_count == 0


def _first_pass(
    spark: SparkSession, judged: RowCondition, skips: bool, candidates: Candidates, purpose: Purpose
) -> FirstPass:
    # There are no new rows, whatever the purpose.
    rows, goes = judged.over(read_native(spark, candidates, is_even=True, reads_whole=not skips))
    places = [quote(name) for name in candidates.columns.names]
    gone = rows.where(goes).selectExpr(*places, f"{int(ChangeKind.DELETE)} as {KIND}", f"false as {MATCHED}")
    return FirstPass(gone, partial(_rows, spark, judged))


def _rows(spark: SparkSession, judged: RowCondition, candidates: Candidates) -> DataFrame:
    """The candidates' rows, and whether they go."""
    rows, goes = judged.over(read_native(spark, candidates, is_even=True))
    kind = sf.when(goes, int(ChangeKind.DELETE)).otherwise(int(ChangeKind.COPY))
    return rows.select("*", kind.alias(KIND), sf.lit(False).alias(MATCHED))
