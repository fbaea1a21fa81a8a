"""Verbs over rows of a table, carried out as the session can: by the driver's JVM, or over Spark Connect."""

from __future__ import annotations

import importlib
from typing import Any

from pyspark.sql import Column, SparkSession

from alluvium.commands.delete import delete_rows
from alluvium.commands.merge.merge import explain_rows, merge_rows
from alluvium.commands.merge.merge_explain import MergeExplanation
from alluvium.commands.merge.merging import MergeRequest
from alluvium.commands.repeating import Txn
from alluvium.commands.update import UpdateRequest, update_rows
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.changes import Author, Committed, Preview
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.statements.own_columns import OwnColumns
from alluvium.spark.statements.resolve import Qualifier


def _over_connect(module: str) -> Any:
    # Loaded by name: it needs packages that a classic session does without.
    return importlib.import_module(f"alluvium.commands.rows_connect.{module}")


def delete(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: Column | str | None,
    engine: Author,
    name: Qualifier,
    dry_run: bool,
    retry: RetryPolicy,
    txn: Txn | None,
) -> Committed | Preview:
    """DELETE; see `delete_rows`."""
    verb = _over_connect("delete").delete_rows if is_connect(spark) else delete_rows
    found: Committed | Preview = verb(spark, snapshot, condition, engine, name, dry_run, retry, txn)
    return found


def update(
    spark: SparkSession,
    snapshot: Snapshot,
    request: UpdateRequest,
    engine: Author,
    dry_run: bool,
    retry: RetryPolicy,
    txn: Txn | None,
) -> Committed | Preview:
    """UPDATE; see `update_rows`."""
    verb = _over_connect("update").update_rows if is_connect(spark) else update_rows
    found: Committed | Preview = verb(spark, snapshot, request, engine, dry_run, retry, txn)
    return found


def merge(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    engine: Author,
    dry_run: bool,
    retry: RetryPolicy,
    txn: Txn | None,
) -> Committed | Preview:
    """MERGE; see `merge_rows`."""
    verb = _over_connect("merge").merge_rows if is_connect(spark) else merge_rows
    found: Committed | Preview = verb(spark, snapshot, request, engine, dry_run, retry, txn)
    return found


def explain_merge(spark: SparkSession, snapshot: Snapshot, request: MergeRequest) -> MergeExplanation:
    """How a MERGE would be carried out; see `explain_rows`."""
    verb = _over_connect("merge").explain_rows if is_connect(spark) else explain_rows
    found: MergeExplanation = verb(spark, snapshot, request)
    return found


def own_columns(spark: SparkSession) -> OwnColumns:
    """What knows the columns of a table's frames by their names."""
    if not is_connect(spark):
        return OwnColumns()
    made: OwnColumns = _over_connect("own_columns").ServerColumns()
    return made
