"""Writing with Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta_access import engine_of, session_opener
from alluvium.api.open import open_snapshot
from alluvium.api.options import WRITE, WRITE_LATER, Options, parse_options, parse_version
from alluvium.api.paimon_writer import write_paimon
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.delta.config import TableConfig
from alluvium.delta.create import new_config, resolve_partition_columns
from alluvium.delta.merge_schema import merged_config, overwritten_config
from alluvium.delta.snapshot import locating
from alluvium.delta.target import DeltaTarget
from alluvium.errors import InvalidRequest, NotFound, suggest
from alluvium.expr.parse import parse_predicate
from alluvium.plan.changes import Committed, Operation, Replace
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue, Struct
from alluvium.spark.columns import Assignment
from alluvium.spark.session import ensure_native, is_connect, time_zone
from alluvium.spark.types import from_spark
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

#: The reference's setting of the session for optimized writes.
_OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite.enabled"


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
            `txnAppId` and `txnVersion`, `dataChange`, `optimizeWrite`, `compression`, `maxRecordsPerFile`; `delta.*`
            properties of a table to create; options of Hadoop.
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
    zone = time_zone(spark)
    target = _target(df, store, open_elsewhere, names, parsed, retry, zone, save_mode)
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
    txn = _parse_txn(parsed)
    if txn is not None and target.snapshot is not None:
        seen = target.snapshot.state.txns.get(txn[0])
        if seen is not None and seen.version >= txn[1]:
            # "If this value is greater than or equal to the batch being written, then this data has already been
            # added to the table and processing can skip to the next batch."
            return Committed.nothing(target.snapshot.version)
    overwrites = _parse_replace(parsed, save_mode, target, zone)
    operation = (
        _operation(spark, save_mode, names, parsed, overwrites) if operation_of is None else operation_of(target.config)
    )
    request = WriteRequest(
        overwrites,
        operation,
        txn,
        _engine_options(parsed),
        assignment,
        data_change=_parse_data_change(parsed, save_mode, target),
        rebalance=_parse_rebalance(spark, parsed),
    )
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
    zone: str,
    save_mode: str,
) -> DeltaTarget:
    overwrites = parsed.flag("overwriteSchema") and save_mode == "Overwrite"
    merges = parsed.flag("mergeSchema") and save_mode in ("Append", "Overwrite")
    try:
        snapshot = open_snapshot(store, time_zone=zone, open_elsewhere=open_any)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        return DeltaTarget(store, new_config(_schema_of(df), names, parsed.properties), None, retry)
    config = snapshot.config
    _warn_of_properties(parsed, config)
    with locating(store, snapshot.version):
        if overwrites:
            _ensure_whole(parsed)
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


def _ensure_whole(parsed: Options) -> None:
    """What is left of the table would not fit a schema that was overwritten."""
    partial_overwrite = "replaceWhere" if parsed.get("replaceWhere") is not None else None
    if _parse_overwrite_mode(parsed.get("partitionOverwriteMode")):
        partial_overwrite = "partitionOverwriteMode"
    if partial_overwrite is not None:
        raise InvalidRequest(
            f"overwriteSchema overwrites the whole table, {partial_overwrite} only a part of it",
            code="contradicting-options",
            hint="mergeSchema adds new columns while a part is replaced",
        )


def _warn_of_properties(parsed: Options, config: TableConfig) -> None:
    """As in the reference, they are for tables to create; but not without a word."""
    ignored = [name for name, value in parsed.properties.items() if config.metadata.configuration.get(name) != value]
    if ignored:
        warnings.warn(
            f"the table exists, so its properties stay as they are: {', '.join(ignored)} ignored", stacklevel=4
        )


def _parse_replace(parsed: Options, save_mode: str, target: DeltaTarget, zone: str) -> Replace | None:
    where = parsed.get("replaceWhere")
    dynamic = _parse_overwrite_mode(parsed.get("partitionOverwriteMode"))
    if save_mode != "Overwrite":
        if where is not None:
            raise InvalidRequest(
                "replaceWhere needs mode overwrite", code="replace-where-mode", hint='say mode="overwrite"'
            )
        return None
    if where is not None and dynamic:
        raise InvalidRequest(
            "replaceWhere and dynamic partition overwrite exclude each other",
            code="contradicting-options",
            hint="replaceWhere names what is replaced; leave partitionOverwriteMode out",
        )
    if where is None:
        return Replace(dynamic=dynamic and bool(target.config.partition_columns))
    return Replace(parse_predicate(where, target.schema, zone), where)


def _parse_overwrite_mode(text: str | None) -> bool:
    if text is None or text.casefold() == "static":
        return False
    if text.casefold() != "dynamic":
        raise InvalidRequest(f"partitionOverwriteMode must be static or dynamic, not {text!r}", code="invalid-option")
    return True


def _parse_data_change(parsed: Options, save_mode: str, target: DeltaTarget) -> bool:
    """False where the rows are said to be those that they replace.

    Raises:
        InvalidRequest: There is nothing that they could replace (`data-changed`), or the schema changes with them
            (`contradicting-options`).
    """
    if parsed.flag("dataChange", "true"):
        return True
    if target.snapshot is None or save_mode != "Overwrite":
        raise InvalidRequest(
            "the option dataChange=false is for an overwrite that only rearranges rows, not for new rows",
            code="data-changed",
            hint='say mode="overwrite", or leave dataChange out',
        )
    if target.config is not target.snapshot.config:
        raise InvalidRequest(
            "an overwrite with dataChange=false cannot change the schema or the partitioning",
            code="contradicting-options",
            hint="leave mergeSchema and overwriteSchema out",
        )
    return False


def _parse_rebalance(spark: SparkSession, parsed: Options) -> bool | None:
    """What the option, else the session, says of optimized writes; None: nothing, so that the table decides."""
    if parsed.get("optimizeWrite") is not None:
        return parsed.flag("optimizeWrite")
    said = spark.conf.get(_OPTIMIZE_WRITE, None)
    return None if said is None else said.strip().casefold() == "true"


def _parse_txn(parsed: Options) -> tuple[str, int] | None:
    app_id, version = parsed.get("txnAppId"), parsed.get("txnVersion")
    if (app_id is None) != (version is None):
        raise InvalidRequest("txnAppId and txnVersion go together", code="contradicting-options")
    return None if app_id is None else (app_id, parse_version(version, "txnVersion"))


def _engine_options(parsed: Options) -> tuple[tuple[str, str], ...]:
    own = {name: parsed.known[name] for name in ("compression", "maxRecordsPerFile") if name in parsed.known}
    return tuple({**parsed.engine, **own}.items())


def _operation(
    spark: SparkSession, save_mode: str, names: Sequence[str], parsed: Options, replace: Replace | None
) -> Operation:
    parameters: dict[str, JsonValue] = {"mode": save_mode, "partitionBy": msgspec.json.encode(list(names)).decode()}
    if replace is not None and replace.sql is not None:
        parameters["predicate"] = replace.sql
    if replace is not None and replace.dynamic:
        parameters["isDynamicPartitionOverwrite"] = True
    if parsed.flag("overwriteSchema") and save_mode == "Overwrite":
        parameters["canOverwriteSchema"] = True
    if parsed.flag("mergeSchema"):
        parameters["canMergeSchema"] = True
    return Operation(
        name="WRITE",
        parameters=parameters,
        engine=engine_of(spark),
        user_metadata=parsed.get("userMetadata"),
    )
