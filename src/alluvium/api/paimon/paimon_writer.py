"""Writing Paimon tables with Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.engine import engine_of
from alluvium.api.options import PARQUET_WRITE, parse_version
from alluvium.api.paimon.merged_schema import MERGE_OPTIONS, merge_schema, parse_merging
from alluvium.commands.paimon.compact import compact_written
from alluvium.commands.paimon.expired_state import expiry_as_conflict
from alluvium.commands.paimon.own_reads import read_scope
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.errors import CommitConflict, InvalidRequest, NotFound, UnsupportedFeature, suggest
from alluvium.paimon.commit.callers import is_committed
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.checks import ensure_valid
from alluvium.paimon.schema.logical import fields_from_logical
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.option_values import ensure_may_be_given
from alluvium.paimon.upkeep.maintain import maintain
from alluvium.paimon.write.target import KEYS_MOVED, PaimonTarget
from alluvium.paimon.write.write import ensure_writable
from alluvium.plan.changes import Committed, Operation, ReadScope, Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.statements.conditions import steady_condition
from alluvium.spark.statements.statement import one_statement
from alluvium.storage.open import StoreOpener
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

#: What a call may say, in Spark's spelling; all else are options of tables or of Hadoop.
_KNOWN = (*MERGE_OPTIONS, "replaceWhere", "partitionOverwriteMode", "txnAppId", "txnVersion", "userMetadata",
          "optimizeWrite", "branch", "path", *PARQUET_WRITE)  # fmt: skip
_LATER = ("overwriteSchema", "dataChange")
#: Conflicts before anything was committed, after which they are written anew.
_ASKED_ANEW = (KEYS_MOVED, "concurrent-numbers", "base-expired")
_TABLE_OPTION = re.compile(r"[a-z][\w.-]*")
_ENGINE = ("fs.", "spark.", "parquet.", "hadoop.", "mapreduce.", "dfs.")
#: Options of tables that are one word.
_WORDS = ("bucket", "partition", "type")


@dataclass(frozen=True, slots=True)
class PaimonOptions:
    """Options sorted: what the call says, what the table is told, and what the engine."""

    known: Mapping[str, str]
    table: Mapping[str, str]
    engine: Mapping[str, str]


def parse_paimon_options(given: Mapping[str, object]) -> PaimonOptions:
    """Sorts options by their names.

    Raises:
        InvalidRequest: An option that nobody knows.
        UnsupportedFeature: One that is for tables of the other format.
    """
    names = {name.lower(): name for name in (*_KNOWN, *_LATER)}
    sorted_: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})
    known, table, engine = sorted_
    for key, value in given.items():
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        canonical = names.get(key.lower())
        if canonical in _LATER:
            if text.lower() != ("true" if canonical == "dataChange" else "false"):
                raise UnsupportedFeature(
                    f"the option {canonical!r} is not for Paimon tables",
                    code="unsupported-option",
                    features=(canonical,),
                    hint="PaimonTable.forPath(url).alter([...]) changes the columns of a table",
                )
        elif canonical is not None:
            known[canonical] = text
        elif key.startswith(_ENGINE):
            engine[key] = text
        elif key in _WORDS or (_TABLE_OPTION.fullmatch(key) and ("." in key or "-" in key)):
            table[key] = text
        elif "." in key:
            engine[key] = text
        else:
            raise InvalidRequest(f"unknown option {key!r}", code="unknown-option", hint=suggest(key, _KNOWN))
    return PaimonOptions(known, table, engine)


def write_paimon(
    df: DataFrame,
    store: Store,
    save_mode: str,
    names: Sequence[str],
    given: Mapping[str, object],
    retry: RetryPolicy,
    storage_options: Mapping[str, str] | None = None,
    asked: DataFrame | None = None,
    created: TableSchema | None = None,
) -> Committed:
    """Writes the rows of a DataFrame into a Paimon table.

    Args:
        df: The rows.
        store: The table's objects.
        save_mode: As `parse_mode` gives it.
        names: Partition keys.
        given: Options.
        retry: How often a lost commit is tried again.
        storage_options: For Python workers, where these write the files.
        asked: The query that the rows come from, where their own plan does not tell what they have read.
        created: The table to create, where more is said of it than rows and options tell.

    Raises:
        InvalidRequest: The rows or arguments do not fit; the table is as it was.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer won.
        CommitUnknown: The store did not say whether the commit stands.
    """
    options = parse_paimon_options(given)
    for _ in range(retry.max_repeats):
        try:
            return _write(df, store, save_mode, names, options, retry, storage_options, asked, created)
        except CommitConflict as error:
            # Nothing is there of the attempt. In which buckets keys are, and which numbers are free, is asked anew.
            if error.code not in _ASKED_ANEW:
                raise
            log.warning("written anew: %s", error.message)
    return _write(df, store, save_mode, names, options, retry, storage_options, asked, created)


def _write(
    df: DataFrame,
    store: Store,
    save_mode: str,
    names: Sequence[str],
    options: PaimonOptions,
    retry: RetryPolicy,
    storage_options: Mapping[str, str] | None,
    asked: DataFrame | None,
    created: TableSchema | None,
) -> Committed:
    target = _target(df, store, names, options, retry, created)
    if target.exists:
        if save_mode == "ErrorIfExists":
            raise InvalidRequest(
                "there is a table already",
                code="table-exists",
                url=store.url,
                hint='say mode="append" or mode="overwrite"',
            )
        if save_mode == "Ignore":
            return Committed.nothing(target.version)
    ensure_writable(target.table)
    txn = _parse_txn(options)
    if _is_repeated(target, txn):
        return Committed.nothing(target.version)
    merging = parse_merging(options.known, df.sparkSession)
    branch = options.known.get("branch", MAIN_BRANCH)
    with one_statement(df.sparkSession, OwnTable(store.url)) as statement:
        # What is wrong with the call is said before the table's schema changes.
        replaced, rebalance = _parse_replace(options, save_mode, target, df.sparkSession), _parse_rebalance(options)
        if merging.is_asked and target.exists and merge_schema(df, store, branch, merging, retry):
            target = _target(df, store, names, options, retry)
            if _is_repeated(target, txn):
                return Committed.nothing(target.version)
        seen = df if asked is None else asked
        read = ReadScope.nothing() if target.snapshot is None else read_scope(seen, target.snapshot, replaced)
        target = replace(target, has_read=not read.is_nothing)
        request = WriteRequest(
            replaced,
            Operation("WRITE", {"mode": save_mode}, engine=engine_of(df.sparkSession)),
            read,
            txn,
            _engine_options(options),
            assignment=merging.assignment(df.sparkSession),
            rebalance=rebalance,
            open_store=StoreOpener(store.url, storage_options),
            reading=nullcontext if target.snapshot is None else partial(expiry_as_conflict, target.snapshot),
        )
        done = write_rows(statement.rows_at_moment(df), target, request)
        if done.attempts:
            opener = StoreOpener(store.url, storage_options)
            number = None if txn is None else txn[1]
            compact_written(df.sparkSession, target, done, opener, replaced=replaced is not None, number=number)
            maintain(store, target.table.options, branch)
        return done


def _target(
    df: DataFrame,
    store: Store,
    names: Sequence[str],
    options: PaimonOptions,
    retry: RetryPolicy,
    created: TableSchema | None = None,
) -> PaimonTarget:
    said = options.known.get("userMetadata")
    properties = {} if said is None else {"userMetadata": said}
    try:
        branch = options.known.get("branch", MAIN_BRANCH)
        snapshot = load_snapshot(store, At(), branch, time_zone=time_zone(df.sparkSession))
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        schema = created or _new_schema(df, store, names, options)
        return PaimonTarget(store, schema, None, retry, properties)
    schema = snapshot.schema
    if names and tuple(names) != schema.partition_keys:
        raise InvalidRequest(
            f"the table is partitioned by {', '.join(schema.partition_keys) or 'nothing'}, not by {', '.join(names)}",
            code="partition-mismatch",
            hint="leave partitionBy out",
        )
    ensure_may_be_given(schema.options, options.table)
    asked = replace(schema, options={**schema.options, **options.table})
    if options.table:
        # As if the table had them: `changelog-producer` means nothing without a key.
        ensure_valid(asked, schema)
    return PaimonTarget(store, asked, snapshot, retry, properties)


def _new_schema(df: DataFrame, store: Store, names: Sequence[str], options: PaimonOptions) -> TableSchema:
    """The schema of a table to create: the columns of the rows, all of them nullable, as Spark's own sources do."""
    if store.list_from("_delta_log"):
        raise InvalidRequest(
            "there is a table of another format already", code="table-exists", url=store.url, hint='format="delta"'
        )
    if "branch" in options.known:
        raise NotFound("there is no Paimon table", code="not-a-table", url=store.url, hint="leave branch out")
    schema = from_spark(df.schema)
    assert isinstance(schema, Struct)
    fields = fields_from_logical(Struct(tuple(replace(f, nullable=True) for f in schema.fields)))
    return TableSchema.create(number_fields(fields), tuple(names), (), dict(options.table))


def _parse_replace(options: PaimonOptions, save_mode: str, target: PaimonTarget, spark: SparkSession) -> Replace | None:
    where = options.known.get("replaceWhere")
    mode = options.known.get("partitionOverwriteMode", "static").lower()
    if mode not in ("static", "dynamic"):
        raise InvalidRequest(f"partitionOverwriteMode must be static or dynamic, not {mode!r}", code="invalid-option")
    if save_mode != "Overwrite":
        if where is not None:
            raise InvalidRequest(
                "replaceWhere needs mode overwrite", code="replace-where-mode", hint='say mode="overwrite"'
            )
        return None
    if where is not None and mode == "dynamic":
        raise InvalidRequest(
            "replaceWhere and dynamic partition overwrite exclude each other",
            code="contradicting-options",
            hint="replaceWhere names what is replaced; leave partitionOverwriteMode out",
        )
    if where is None:
        return Replace(dynamic=mode == "dynamic" and bool(target.table.partition_keys))
    text, condition = steady_condition(spark, where, target.schema, "the condition of replaceWhere")
    return Replace(condition, text)


def _parse_txn(options: PaimonOptions) -> tuple[str, int] | None:
    app_id, version = options.known.get("txnAppId"), options.known.get("txnVersion")
    if (app_id is None) != (version is None):
        raise InvalidRequest("txnAppId and txnVersion go together", code="contradicting-options")
    return None if app_id is None else (app_id, parse_version(version, "txnVersion"))


def _is_repeated(target: PaimonTarget, txn: tuple[str, int] | None) -> bool:
    """Whether the caller's commit is there; the target's state must be older than the question."""
    return txn is not None and target.snapshot is not None and is_committed(target.snapshot, *txn)


def _parse_rebalance(options: PaimonOptions) -> bool | None:
    text = options.known.get("optimizeWrite")
    if text is None:
        return None
    if text.lower() not in ("true", "false"):
        raise InvalidRequest(f"the option 'optimizeWrite' must be true or false, not {text!r}", code="invalid-option")
    # Rows of buckets are brought together in any case.
    return True if text.lower() == "true" else None


def _engine_options(options: PaimonOptions) -> tuple[tuple[str, str], ...]:
    own = {name: options.known[name] for name in PARQUET_WRITE if name in options.known}
    return tuple({**options.engine, **own}.items())
