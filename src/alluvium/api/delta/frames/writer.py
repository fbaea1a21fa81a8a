"""Rows of DataFrames into Delta tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.optimize.auto import after_rows
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.write_options import (
    default_properties,
    engine_options,
    ensure_whole,
    forget_version,
    parse_clusters,
    parse_data_change,
    parse_description,
    parse_matched,
    parse_rebalance,
    parse_replace,
    parse_sort_by,
    parse_txn,
    sorted_as,
    with_session,
    write_operation,
)
from alluvium.api.options import Options
from alluvium.commands.layout import session_layout
from alluvium.commands.own_reads import read_scope
from alluvium.commands.repeat import is_recorded
from alluvium.commands.replace_matching import replace_matching
from alluvium.commands.rows.replace_rows import replace_rows
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.delta.description.create import clustered_by, new_config, resolve_partition_columns
from alluvium.delta.description.merge_schema import merged_config, overwritten_config
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.changes import Committed, Operation
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import is_connect, time_zone
from alluvium.spark.statements.statement import one_statement
from alluvium.spark.values.columns import Assignment
from alluvium.storage.locating import locating
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
    target = replace(_target(df, store, open_elsewhere, names, parsed, retry, save_mode), layout=session_layout(spark))
    if target.snapshot is not None:
        _ensure_welcome(save_mode, target.snapshot)
        if save_mode == "Ignore":
            return Committed.nothing(target.snapshot.version)
    txn = parse_txn(parsed)
    if target.snapshot is not None and is_recorded(target.snapshot, txn):
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
        operation = own or write_operation(spark, save_mode, names, parsed)
        request = WriteRequest(
            overwrites,
            operation,
            read_scope(df if asked is None else asked, target.snapshot, overwrites),
            txn,
            engine_options(parsed),
            assignment,
            data_change=parse_data_change(parsed, save_mode, target),
            rebalance=parse_rebalance(parsed),
            sort=parse_sort_by(parsed, target.config.schema),
        )
        rows = statement.rows_at_moment(df)
        if matching is not None:
            done = replace_matching(rows, target, request, matching)
        elif target.snapshot is not None and target.replaces_rows(overwrites):
            done = replace_rows(rows, target, request)
        else:
            done = write_rows(rows, target, request)
    forget_version(spark, txn, given)
    newest = partial(open_snapshot, store, time_zone=time_zone(spark), open_elsewhere=open_elsewhere)
    return after_rows(spark, store.url, target.config.metadata.configuration, done, newest)


def _ensure_welcome(save_mode: str, snapshot: Snapshot) -> None:
    if save_mode == "ErrorIfExists":
        raise InvalidRequest(
            "there is a table already",
            code="table-exists",
            url=snapshot.store.url,
            version=snapshot.version,
            hint='say mode="append" or mode="overwrite"',
        )


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


def _target(
    df: DataFrame,
    store: Store,
    open_any: Callable[[str], Store],
    names: Sequence[str],
    parsed: Options,
    retry: RetryPolicy,
    save_mode: str,
) -> DeltaTarget:
    overwrites = parsed.flag("overwriteSchema") and save_mode == "Overwrite"
    merges = parsed.flag("mergeSchema") and save_mode in ("Append", "Overwrite")
    try:
        snapshot = open_snapshot(store, time_zone=time_zone(df.sparkSession), open_elsewhere=open_any)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        properties = {
            **default_properties(df.sparkSession),
            **parsed.properties,
            **parse_description(parsed),
            **sorted_as(parsed),
        }
        clusters = parse_clusters(parsed)
        made = new_config(_schema_of(df), names, properties, clusters)
        return DeltaTarget(store, made, None, retry, (clustered_by(made, clusters),) if clusters else ())
    config = snapshot.config
    _warn_of_properties(parsed, config)
    ensure_clustered_alike(snapshot, parse_clusters(parsed))
    with locating(store, snapshot.version):
        if overwrites:
            ensure_whole(parsed, config.partition_columns)
            return DeltaTarget(store, overwritten_config(config, _schema_of(df), names), snapshot, retry)
        if names and resolve_partition_columns(config.schema, names) != config.partition_columns:
            raise InvalidRequest(
                f"the table is partitioned by {', '.join(config.partition_columns) or 'nothing'}, "
                f"{'and rows are not appended' if save_mode == 'Append' else 'not'} by {', '.join(names)}",
                code="partition-mismatch",
                hint="leave partitionBy out, or overwrite the table with overwriteSchema",
            )
        return DeltaTarget(store, merged_config(config, _schema_of(df)) if merges else config, snapshot, retry)


def ensure_clustered_alike(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Refuses names of other clustering columns than a table has (`clustering-mismatch`); none are fine."""
    if not names:
        return
    known = clustering_columns(snapshot.state.domains, snapshot.config)
    if [tuple(map(str.casefold, parse_column_path(name))) for name in names] == [
        tuple(map(str.casefold, path)) for path in known
    ]:
        return
    shown = ", ".join(".".join(path) for path in known)
    raise InvalidRequest(
        f"the table is clustered by {shown or 'nothing'}, not by {', '.join(names)}",
        code="clustering-mismatch",
        url=snapshot.store.url,
        version=snapshot.version,
        hint="leave clusterBy out, or say ALTER TABLE ... CLUSTER BY first",
    )


def _schema_of(df: DataFrame) -> Struct:
    schema = from_spark(df.schema)
    assert isinstance(schema, Struct)
    return schema


def _warn_of_properties(parsed: Options, config: TableConfig) -> None:
    """As in the reference, they are for tables to create; but not without a word."""
    ignored = [name for name, value in parsed.properties.items() if config.metadata.configuration.get(name) != value]
    if ignored:
        warnings.warn(
            f"the table exists, so its properties stay as they are: {', '.join(ignored)} ignored", stacklevel=4
        )
