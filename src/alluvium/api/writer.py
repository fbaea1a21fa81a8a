"""Writing with Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.write_options import (
    default_properties,
    engine_options,
    ensure_whole,
    parse_data_change,
    parse_description,
    parse_rebalance,
    parse_replace,
    parse_txn,
    with_session,
    write_operation,
)
from alluvium.api.engine import session_opener
from alluvium.api.options import WRITE, WRITE_LATER, Options, parse_options
from alluvium.api.paimon.paimon_writer import write_paimon
from alluvium.commands.own_reads import read_scope
from alluvium.commands.repeat import is_recorded
from alluvium.commands.rows.replace_rows import replace_rows
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.delta.description.create import new_config, resolve_partition_columns
from alluvium.delta.description.merge_schema import merged_config, overwritten_config
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, NotFound, suggest
from alluvium.plan.changes import Committed, Operation
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.sessions.session import ensure_native, is_connect, time_zone
from alluvium.spark.values.columns import Assignment
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

#: Save modes, and how the history names them.
_MODES = {
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "default": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "ignore": "Ignore",
}


def write(
    df: DataFrame,
    url: str,
    mode: str = "error",
    format: str = "delta",
    partition_by: Sequence[str] | str = (),
    retry: RetryPolicy = DEFAULT_RETRY,
    storage_options: Mapping[str, str] | None = None,
    **options: object,
) -> Committed:
    """Writes the rows of a DataFrame, of a classic session or of Connect, by Spark's own writer and commits them.

    Args:
        df: The rows. Columns are matched by name without regard to case; nullable ones may be missing.
        url: A local path or URL.
        mode: `"error"` (there must be no table), `"append"`, `"overwrite"` or `"ignore"`.
        format: `"delta"` or `"paimon"`.
        partition_by: Partition columns of a table to create; for an existing one they must be its own.
        retry: How often a commit that lost a race is tried again, where the rules allow it.
        storage_options: Credentials for writing the log; data files are written by Spark's file systems.
        **options: `replaceWhere`, `partitionOverwriteMode`, `mergeSchema`, `overwriteSchema`, `userMetadata`,
            `txnAppId` and `txnVersion`, `dataChange`, `optimizeWrite`, `compression`, `maxRecordsPerFile`;
            `description` and `delta.*` properties of a table to create; options of Hadoop.
            For Paimon tables besides options by Paimon's names (`bucket`, `file.compression`, ...), which a
            table to create keeps, and `branch`.

    Returns:
        The version, the files added, metrics, and how many attempts the commit took.

    Raises:
        InvalidRequest: The rows or arguments do not fit; the table is as it was.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer won.
        CommitUnknown: The store did not say whether the commit stands.

    Example:
        >>> alluvium.write(df, "/data/flights", partition_by=["month"])
    """
    spark = df.sparkSession
    if not is_connect(spark):
        ensure_native(spark)
    save_mode = parse_mode(mode)
    is_paimon = _parse_format(format) == "paimon"
    names = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    open_any = session_opener(spark, storage_options)
    if is_paimon:
        return write_paimon(df, open_any(url), save_mode, names, options, retry, storage_options)
    parsed = parse_options(options, WRITE, WRITE_LATER)
    return write_parsed(df, open_any(url), save_mode, names, parsed, retry, open_elsewhere=open_any)


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
) -> Committed:
    """`write` after its arguments have been understood.

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
    """
    spark = df.sparkSession
    given, parsed = parsed, with_session(spark, parsed)
    target = _target(df, store, open_elsewhere, names, parsed, retry, save_mode)
    if target.snapshot is not None:
        if save_mode == "ErrorIfExists":
            raise InvalidRequest(
                "there is a table already",
                code="table-exists",
                url=store.url,
                version=target.snapshot.version,
                hint='say mode="append" or mode="overwrite"',
            )
        if save_mode == "Ignore":
            return Committed.nothing(target.snapshot.version)
    txn = parse_txn(parsed)
    if target.snapshot is not None and is_recorded(target.snapshot, txn):
        return Committed.nothing(target.snapshot.version)
    overwrites = parse_replace(spark, given, parsed, save_mode, target)
    if operation_of is None:
        operation = write_operation(spark, save_mode, names, parsed)
    else:
        operation = operation_of(target.config)
    request = WriteRequest(
        overwrites,
        operation,
        read_scope(df, target.snapshot, overwrites),
        txn,
        engine_options(parsed),
        assignment,
        data_change=parse_data_change(parsed, save_mode, target),
        rebalance=parse_rebalance(parsed),
    )
    if target.snapshot is not None and target.replaces_rows(overwrites):
        return replace_rows(df, target, request)
    return write_rows(df, target, request)


def parse_mode(mode: str) -> str:
    """A save mode as the history names it.

    Raises:
        InvalidRequest: There is no such mode.
    """
    if str(mode).casefold() not in _MODES:
        raise InvalidRequest(f"unknown mode {mode!r}", code="unknown-mode", hint=suggest(str(mode), _MODES))
    return _MODES[mode.casefold()]


def _parse_format(name: str) -> str:
    folded = name.casefold()
    if folded not in ("delta", "paimon"):
        raise InvalidRequest(f"unknown format {name!r}", code="unknown-format", hint=suggest(name, ["delta", "paimon"]))
    return folded


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
        properties = {**default_properties(df.sparkSession), **parsed.properties, **parse_description(parsed)}
        return DeltaTarget(store, new_config(_schema_of(df), names, properties), None, retry)
    config = snapshot.config
    _warn_of_properties(parsed, config)
    with locating(store, snapshot.version):
        if overwrites:
            ensure_whole(parsed, config.partition_columns)
            return DeltaTarget(store, overwritten_config(config, _schema_of(df), names), snapshot, retry)
        if names and resolve_partition_columns(config.schema, names) != config.partition_columns:
            raise InvalidRequest(
                f"the table is partitioned by {', '.join(config.partition_columns) or 'nothing'}, "
                f"not by {', '.join(names)}",
                code="partition-mismatch",
                hint="leave partitionBy out, or overwrite the table with overwriteSchema",
            )
        return DeltaTarget(store, merged_config(config, _schema_of(df)) if merges else config, snapshot, retry)


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
