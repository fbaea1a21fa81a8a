"""UPDATE over Spark Connect."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.layout import changed_target
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.new_values import default_values, generated, with_generated, without_made
from alluvium.commands.rows.repeat import until_committed
from alluvium.commands.rows.row_changes import BEFORE, FirstPass, Purpose, RowChanges, is_recorded
from alluvium.commands.rows.session_rules import may_mask
from alluvium.commands.rows.verb import Verb, update_metrics
from alluvium.commands.rows_connect.delete import over_columns, table_condition
from alluvium.commands.rows_connect.expressions import no_rows, steady
from alluvium.commands.rows_connect.values import Asked, Stored, stored
from alluvium.commands.update import UpdateRequest
from alluvium.delta.features.columns.identity_columns import ensure_not_set
from alluvium.delta.rows.candidates import choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import names_only
from alluvium.plan.changes import ChangeKind, Committed, Operation, Preview
from alluvium.plan.ports import RowPlaces
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.kept import keep_rows
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.values.assign import (
    Assignments,
    Path,
    assigned_columns,
    default_of,
    fitted_text,
    is_case_sensitive,
    is_default,
    targets,
)
from alluvium.spark.values.storing import StorePolicy
from alluvium.storage.locating import locating

_HIT, _VALUE = "__alluvium_hit", "__alluvium_value"


def update_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    request: UpdateRequest,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    txn: Txn | None = None,
) -> Committed | Preview:
    """Updates the rows for which the condition is true; see `commands.update.update_rows`.

    Raises:
        InvalidRequest: The condition or a value does not resolve, or has a subquery (`invalid-expression`), columns are
            unknown or set twice, new rows do not fit the table, or it is append-only.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated.
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
        name = request.name[-1]
        judged = table_condition(spark, snapshot, request.condition, name, "the condition of UPDATE")
        ensure_not_set(target.schema, assigned_columns(request.values, target.schema, request.name))
        where = None if judged is None else over_columns(judged, name)
        shown = [] if judged is None else [judged.shown]
        operation = Operation("UPDATE", {"predicate": msgspec.json.encode(shown).decode()}, {}, engine)
        is_whole = where is None or names_only(where, {(column,) for column in snapshot.config.partition_columns})
        update = _Update(
            spark, target, name, None if judged is None else judged.column, _values(spark, target, request)
        )
        candidates = choose_candidates(snapshot, where)
        # Where every row changes there is nothing to keep behind masks.
        mode = row_change_mode(target.config, candidates, masks=where is not None and may_mask(spark, "UPDATE"))
        verb = Verb(operation, partial(update_metrics, is_whole), started, txn=txn)
        changes = RowChanges(update.first_pass, candidates, where)
        return apply_changes(spark, target, changes, verb, mode, dry_run=dry_run)


def _values(spark: SparkSession, target: DeltaTarget, request: UpdateRequest) -> Mapping[Path, Stored]:
    """The new values, checked over rows of the table under its name."""
    schema, name = target.schema, request.name
    rows = no_rows(spark, schema, name[-1])
    given = without_made(request.values, target, name, is_insert=False)
    asked = asked_values(rows, given, target, name, "UPDATE", frozenset(f.lower() for f in schema.names))
    return stored(rows, asked, StorePolicy.ANSI, _VALUE, fills=False)


def asked_values(
    rows: DataFrame,
    given: Mapping[str, Column | str],
    target: DeltaTarget,
    name: Qualifier,
    what: str,
    names: Container[str],
) -> dict[Path, Asked]:
    """The values of a SET list, at the moment of the statement.

    Args:
        rows: Whose columns they may name.
        given: Column, or dotted field, to its value.
        target: The table.
        name: Of the table.
        what: For errors: `"UPDATE"`.
        names: What a bare word may mean, in small letters.

    Raises:
        InvalidRequest: `"unknown-column"`; `"assigned-twice"`; `"invalid-expression"`.
    """
    schema, found = target.schema, dict[Path, Asked]()
    for each in targets(given, schema, name, what, is_exact=bool(given) and is_case_sensitive(rows.sparkSession)):
        value, shown = each.value, f"the value of {each.said!r} in {what}"
        if is_default(value, schema):
            value = default_of(each.path, default_values(target, rows))
        found[each.path] = Asked(steady(value, names, shown)[0], each.type, shown)
    return found


@dataclass(frozen=True, slots=True)
class _Update:
    spark: SparkSession
    target: DeltaTarget
    name: str
    condition: Column | None
    values: Mapping[Path, Stored]

    def first_pass(self, candidates: RowPlaces, purpose: Purpose) -> FirstPass:
        """Finds the rows that change, and computes them where they are to be written."""
        rows = self._read(candidates)
        rows = rows if self.condition is None else rows.where(self.condition)
        found = self._updated(rows, candidates, None)
        if purpose is Purpose.PLACES:
            return FirstPass(found, self._rows)
        # Each value is computed once: rows are counted, written, and may be recorded.
        changed = keep_rows(found)
        return FirstPass(changed, self._rows, (changed,))

    def _rows(self, candidates: RowPlaces) -> DataFrame:
        """The candidates' rows, those that change with their new values, and the others."""
        hit = sf.lit(True) if self.condition is None else sf.coalesce(self.condition, sf.lit(False))
        rows = self._read(candidates).select("*", hit.alias(_HIT))
        return self._updated(rows, candidates, sf.col(_HIT))

    def _read(self, candidates: RowPlaces) -> DataFrame:
        return read_own_lane(self.spark, candidates).alias(self.name)

    def _updated(self, rows: DataFrame, candidates: RowPlaces, hit: Column | None) -> DataFrame:
        """New values in the rows for which `hit` is true; None: in all of them."""
        schema = self.target.schema
        raw = [v.raw if hit is None else sf.when(hit, v.raw) for v in self.values.values()]
        made = rows.select("*", *(r.alias(v.name) for r, v in zip(raw, self.values.values(), strict=True)))
        values = Assignments({path: fitted_text(v.value, path, schema) for path, v in self.values.items()})
        columns = []
        for f in schema.fields:
            before = sf.col(quote(f.name))
            if f.name in values.columns:
                after = values.after(f.name, f.type, before)
                before = after if hit is None else sf.when(hit, after).otherwise(before)
            columns.append(before.alias(f.name))
        kind = sf.lit(int(ChangeKind.UPDATE))
        if hit is not None:
            kind = sf.when(hit, kind).otherwise(int(ChangeKind.COPY))
        places = [sf.col(quote(n)) for n in candidates.columns.names]
        had = sf.struct(*(sf.col(quote(n)) for n in schema.names)).alias(BEFORE)
        recorded = [had] if is_recorded(self.target) else []
        shown = made.select(*columns, *places, kind.alias(KIND), sf.lit(False).alias(MATCHED), *recorded)
        changed = f"{KIND} = {int(ChangeKind.UPDATE)}"
        anew = {d.column: (d, changed) for d in generated(self.target) if d.column not in values.columns}
        return with_generated(shown, schema, anew)
