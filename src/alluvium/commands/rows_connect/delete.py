"""DELETE over Spark Connect."""

from __future__ import annotations

import time
from functools import partial

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.delete import TABLE, apply_deletion
from alluvium.commands.layout import changed_target
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.repeat import until_committed
from alluvium.commands.rows.replace_rows import judged_rows
from alluvium.commands.rows.row_changes import FirstPass, Purpose
from alluvium.commands.rows.verb import Verb, delete_metrics
from alluvium.commands.rows_connect.expressions import ServerCondition, no_rows, server_condition
from alluvium.delta.view.snapshot import Snapshot
from alluvium.expr.tree import Expression, within
from alluvium.plan.changes import Committed, Operation, Preview
from alluvium.plan.ports import RowPlaces
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.statements.resolve import Qualifier
from alluvium.storage.locating import locating


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
    """Deletes the rows for which the condition is true; see `commands.delete.delete_rows`.

    Raises:
        InvalidRequest: The condition does not resolve, or has a subquery (`invalid-expression`), or the table is
            append-only.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated.
    """
    attempt = partial(_attempt, spark, condition, engine, name[-1], dry_run, time.monotonic(), txn)
    return until_committed(spark, snapshot, retry, attempt, txn=txn)


def _attempt(
    spark: SparkSession,
    condition: Column | str | None,
    engine: str,
    name: str,
    dry_run: bool,
    started: float,
    txn: Txn | None,
    snapshot: Snapshot,
    retry: RetryPolicy,
) -> Committed | Preview:
    with locating(snapshot.store, snapshot.version):
        target = changed_target(spark, snapshot, retry)
        judged = table_condition(spark, snapshot, condition, name, "the condition of DELETE")
        shown = [judged.shown if judged is not None else "true"]
        operation = Operation("DELETE", {"predicate": msgspec.json.encode(shown).decode()}, {}, engine)
        where = None if judged is None else over_columns(judged, name)
        verb = Verb(operation, delete_metrics, started, txn=txn)

        def rows(candidates: RowPlaces) -> DataFrame:
            goes = sf.lit(True) if judged is None else judged.column
            return judged_rows(read_own_lane(spark, candidates).alias(name), candidates, target, goes)

        def first_pass(candidates: RowPlaces, purpose: Purpose) -> FirstPass:
            return FirstPass(rows(candidates), rows)

        return apply_deletion(spark, target, where, where, first_pass, verb, dry_run)


def table_condition(
    spark: SparkSession, snapshot: Snapshot, given: Column | str | None, name: str, what: str
) -> ServerCondition | None:
    """A condition over a table's rows alone; None: all of them.

    Raises:
        InvalidRequest: As of `server_condition`.
    """
    if given is None:
        return None
    schema = snapshot.config.schema
    return server_condition(no_rows(spark, schema, name), {name: schema}, given, what)


def over_columns(judged: ServerCondition, name: str) -> Expression:
    """What such a condition says of the table's columns."""
    return within(judged.known, name)
