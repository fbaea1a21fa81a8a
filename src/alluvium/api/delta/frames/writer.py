"""Rows of DataFrames into Delta tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.frames.session_options import (
    default_properties,
    forget_version,
    parse_matched,
    parse_replace,
    with_session,
)
from alluvium.api.delta.optimize.auto import after_rows
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.written.options import (
    engine_options,
    parse_data_change,
    parse_rebalance,
    parse_sort_by,
    parse_txn,
    write_operation,
)
from alluvium.api.delta.written.target import NewRows, ensure_welcome, write_target
from alluvium.api.engine import engine_of
from alluvium.api.options import Options
from alluvium.commands.layout import session_layout
from alluvium.commands.own_reads import read_scope
from alluvium.commands.replace_matching import replace_matching
from alluvium.commands.rows.replace_rows import replace_rows
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import NotFound, UnsupportedFeature
from alluvium.plan.changes import Committed, Operation
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import is_connect, time_zone
from alluvium.spark.statements.statement import one_statement
from alluvium.spark.values.columns import Assignment
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def write_parsed(
    df: DataFrame,
    store: Store,
    save_mode: str,
    names: Sequence[str],
    parsed: Options,
    retry: RetryPolicy = DEFAULT_RETRY,
    assignment: Assignment = Assignment.EXACT,
    operation_of: Callable[[TableConfig], Operation] | None = None,
    open_elsewhere: Callable[[str], Store] = open_store,
    asked: DataFrame | None = None,
) -> Committed:
    """`write` into a Delta table, after its arguments have been understood.

    Args:
        df: The rows.
        store: The table's objects.
        save_mode: As `parse_mode` gives it.
        names: Partition columns.
        parsed: Options.
        retry: How often a lost commit is tried again.
        assignment: Which types of the rows may go into which types of the table.
        operation_of: What the history says, if not that it was a WRITE.
        open_elsewhere: From a URL to its store, for files that lie outside the table.
        asked: The query that the rows come from, where their own plan does not tell what they have read.
    """
    spark = df.sparkSession
    given, parsed = parsed, with_session(spark, parsed)
    rows = NewRows(partial(_schema_of, df), names, parsed, save_mode)
    opened = write_target(store, rows, retry, partial(default_properties, spark), time_zone(spark), open_elsewhere)
    target = replace(opened, layout=session_layout(spark))
    if target.snapshot is not None:
        ensure_welcome(save_mode, target.snapshot)
        if save_mode == "Ignore":
            return Committed.nothing(target.snapshot.version)
    txn = parse_txn(parsed)
    if target.snapshot is not None and target.snapshot.has_come_to(txn):
        forget_version(spark, txn, given)
        return Committed.nothing(target.snapshot.version)
    matching = parse_matched(given, parsed, save_mode)
    if matching is not None:
        _ensure_matchable(spark, target)
    with one_statement(spark, OwnTable(store.url)) as statement:
        if target.snapshot is not None:
            statement.stand_on(target.snapshot.version, is_planned=asked is not None)
        overwrites = None if matching else parse_replace(spark, given, parsed, save_mode, target)
        own = None if operation_of is None else operation_of(target.config)
        operation = own or write_operation(engine_of(spark), save_mode, names, parsed)
        request = WriteRequest(
            overwrites,
            operation,
            read_scope(df if asked is None else asked, target.snapshot, overwrites),
            txn,
            engine_options(parsed),
            parse_data_change(parsed, save_mode, target),
            parse_sort_by(parsed, target.config.schema),
            assignment,
            parse_rebalance(parsed),
        )
        seen = statement.rows_at_moment(df)
        if matching is not None:
            done = replace_matching(seen, target, request, matching)
        elif target.snapshot is not None and target.replaces_rows(overwrites):
            done = replace_rows(seen, target, request)
        else:
            done = write_rows(seen, target, request)
    forget_version(spark, txn, given)
    newest = partial(open_snapshot, store, time_zone=time_zone(spark), open_elsewhere=open_elsewhere)
    return after_rows(spark, store.url, target.config.metadata.configuration, done, newest)


def _ensure_matchable(spark: SparkSession, target: DeltaTarget) -> None:
    if target.snapshot is None:
        raise NotFound(
            "there is no table whose rows could be replaced",
            code="not-a-table",
            url=target.store.url,
            hint="leave replaceUsing and replaceOn out for the first write",
        )
    if is_connect(spark):
        raise UnsupportedFeature(
            "replaceUsing and replaceOn need the JVM of a classic Spark session",
            code="unsupported-option",
            features=("replaceUsing",),
            hint="name the rows that go by replaceWhere, or use MERGE in a classic session",
        )


def _schema_of(df: DataFrame) -> Struct:
    schema = from_spark(df.schema)
    assert isinstance(schema, Struct)
    return schema
