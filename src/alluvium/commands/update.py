"""UPDATE: new values in rows for which a condition is true."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.delete import TABLE
from alluvium.commands.layout import changed_target
from alluvium.commands.own_reads import ensure_current, unpinned
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.new_values import (
    default_values,
    generated,
    with_generated,
    without_made,
)
from alluvium.commands.rows.repeat import until_committed
from alluvium.commands.rows.row_changes import BEFORE, FirstPass, Purpose, RowChanges, is_recorded, kept_pass
from alluvium.commands.rows.row_condition import RowCondition, row_condition
from alluvium.commands.rows.session_rules import change_policy, may_mask
from alluvium.commands.rows.verb import Verb, update_metrics
from alluvium.delta.features.columns.identity_columns import ensure_not_set
from alluvium.delta.rows.candidates import choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression, names_only
from alluvium.plan.changes import ChangeKind, Committed, Operation, Preview, ReadScope
from alluvium.plan.ports import RowPlaces
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.jvm.frames import column_of, filter_rows, select_texts, with_columns
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.scan.numbering import skips_within_files
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.statements.statement import reads_so_far
from alluvium.spark.values.assign import Assignments, assigned_columns, assignments
from alluvium.spark.values.storing import StorePolicy
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """What to update.

    Attributes:
        condition: Which rows; None: all.
        values: Column, or dotted field, to its value.
        name: Of the table in expressions.
        by_statement: Whether it is one of SQL, whose casts follow the session's policy; the others are always ANSI's,
            in the reference as here.
    """

    condition: Column | str | None
    values: Mapping[str, Column | str]
    name: Qualifier = (TABLE,)
    by_statement: bool = False

    def assigned(self, target: DeltaTarget, rows: DataFrame) -> Assignments:
        """The new values, over rows of the table under its name."""
        policy = change_policy(rows.sparkSession) if self.by_statement else StorePolicy.ANSI
        defaults = default_values(target, rows)
        values = without_made(self.values, target, self.name, is_insert=False)
        return assignments(
            values, target.schema, rows, self.name, "UPDATE", policy, defaults, fills=False, is_update=True
        )


def update_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    request: UpdateRequest,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    txn: Txn | None = None,
) -> Committed | Preview:
    """Updates the rows for which the condition is true; without one, all.

    Raises:
        InvalidRequest: The condition or a value does not resolve (`invalid-expression`), columns are unknown or set
            twice, new rows do not fit the table, or it is append-only.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated; or a subquery shows
            an older version of the table itself.
    """
    attempt = partial(_attempt, spark, request, engine, dry_run, time.monotonic(), txn)
    return until_committed(spark, snapshot, retry, attempt, txn=txn)


def _attempt(
    spark: SparkSession,
    request: UpdateRequest,
    engine: str,
    dry_run: bool,
    started: float,
    txn: Txn | None,
    snapshot: Snapshot,
    retry: RetryPolicy,
) -> Committed | Preview:
    with locating(snapshot.store, snapshot.version):
        target = changed_target(spark, snapshot, retry)
        rows = read_native(spark, DeltaSource(snapshot))
        with row_condition(rows, request.condition, "the condition of UPDATE", request.name) as judged:
            ensure_not_set(target.schema, assigned_columns(request.values, target.schema, request.name))
            where = judged.where(snapshot.config.schema)
            shown = msgspec.json.encode([text for text in (judged.shown,) if text is not None]).decode()
            operation = Operation("UPDATE", {"predicate": shown}, {}, engine)
            partitions = {(name,) for name in snapshot.config.partition_columns}
            is_whole = where is None or names_only(where, partitions)
            verb = Verb(operation, partial(update_metrics, is_whole), started, txn=txn)
            return _update(spark, target, request, judged, snapshot, where, verb, dry_run)


def _update(
    spark: SparkSession,
    target: DeltaTarget,
    request: UpdateRequest,
    judged: RowCondition,
    snapshot: Snapshot,
    where: Expression | None,
    verb: Verb,
    dry_run: bool,
) -> Committed | Preview:
    candidates = choose_candidates(snapshot, where)
    # Where every row changes there is nothing to keep behind masks.
    masks = where is not None and may_mask(spark, "UPDATE")
    mode = row_change_mode(target.config, candidates, masks=masks)
    skips = skips_within_files(where, snapshot.config.partition_columns)
    update = _Update(spark, target, request, judged, skips)
    # Resolved before anything is run, for what they read.
    request.assigned(target, judged.first)
    own = unpinned(reads_so_far())
    ensure_current(own, snapshot, ReadScope.table(), admits_blind=False)
    changes = RowChanges(update.first_pass, candidates, None if own else where, only=ChangeKind.UPDATE)
    return apply_changes(spark, target, changes, verb, mode, dry_run=dry_run)


#: New values, until they stand in the place of the old ones.
_AFTER = "__alluvium_after"


@dataclass(frozen=True, slots=True)
class _Update:
    spark: SparkSession
    target: DeltaTarget
    request: UpdateRequest
    judged: RowCondition
    skips: bool

    def first_pass(self, candidates: RowPlaces, purpose: Purpose) -> FirstPass:
        """Finds the rows that change, and computes them where they are to be written."""
        rows = self._first_rows(candidates)
        if purpose is Purpose.PLACES:
            return FirstPass(rows, self._rows)
        changed = kept_pass(rows, candidates)
        return FirstPass(changed, self._rows, (changed,))

    def _first_rows(self, candidates: RowPlaces) -> DataFrame:
        """The candidates' rows that change, with their new values."""
        read = read_native(self.spark, candidates, is_even=True, reads_whole=not self.skips)
        frame, found = self.judged.over(read)
        return self._updated(filter_rows(frame, found), candidates, None)

    def _rows(self, candidates: RowPlaces) -> DataFrame:
        """The candidates' rows, those that change with their new values, and the others."""
        frame, found = self.judged.over(read_native(self.spark, candidates, is_even=True))
        # Null counts as false, so that one question decides about all columns.
        return self._updated(frame, candidates, sf.coalesce(found, sf.lit(False)))

    def _updated(self, frame: DataFrame, candidates: RowPlaces, hit: Column | None) -> DataFrame:
        """New values in the rows for which `hit` is true; None: in all of them."""
        schema, values = self.target.schema, self.request.assigned(self.target, frame)
        spark, texts = self.spark, {f.name: quote(f.name) for f in schema.fields}
        made: list[tuple[str, Column]] = []
        for f in schema.fields:
            if f.name in values.columns:
                before = column_of(spark, f.name)
                value = values.after(f.name, f.type, before)
                made.append((f"{_AFTER}{len(made)}", value if hit is None else sf.when(hit, value).otherwise(before)))
                texts[f.name] = f"{made[-1][0]} as {quote(f.name)}"
        kind = str(int(ChangeKind.UPDATE))
        if hit is not None:
            made.append((_AFTER, sf.when(hit, int(ChangeKind.UPDATE)).otherwise(int(ChangeKind.COPY))))
            kind = _AFTER
        recorded = [f"struct({', '.join(map(quote, schema.names))}) as {BEFORE}"] if is_recorded(self.target) else []
        places = [quote(name) for name in candidates.columns.names]
        shown = [*texts.values(), *places, f"{kind} as {KIND}", f"false as {MATCHED}", *recorded]
        rows = select_texts(with_columns(frame, made), shown)
        changed = f"{KIND} = {int(ChangeKind.UPDATE)}"
        anew = {d.column: (d, changed) for d in generated(self.target) if d.column not in values.columns}
        return with_generated(rows, schema, anew)
