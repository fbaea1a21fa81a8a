"""What `PaimonTable` does with rows, by a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, SparkSession

from alluvium.commands.paimon.analyze import analyze_rows
from alluvium.commands.paimon.compact import compact_rows
from alluvium.commands.paimon.edits import edit_rows
from alluvium.commands.paimon.expired_state import expiry_as_conflict
from alluvium.commands.paimon.ordered import Ordering, order_rows
from alluvium.commands.paimon.rescale import rescale_rows
from alluvium.commands.paimon.upserts import TABLE, Change, upsert_rows
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.upkeep.keyed.plan import Asked
from alluvium.plan.changes import Committed, Preview, Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import ensure_native, time_zone
from alluvium.spark.statements.conditions import steady_condition
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.statements.statement import one_statement
from alluvium.storage.open import StoreOpener
from alluvium.storage.store import Store


def change_rows(
    store: Store,
    storage_options: Mapping[str, str] | None,
    verb: str,
    condition: Column | str | None,
    values: Mapping[str, Column | str],
    dry_run: bool,
    retry: RetryPolicy,
    spark: SparkSession | None,
    name: Qualifier | None = None,
) -> Committed | Preview:
    """DELETE or UPDATE of the newest state of a table; arguments as of `PaimonTable`."""
    session = session_of(spark, store)
    snapshot = load_snapshot(store, At(), time_zone=time_zone(session))
    change = Change(verb, condition, values, StoreOpener(store.url, storage_options), dry_run, name or TABLE)
    run = upsert_rows if snapshot.schema.primary_keys else edit_rows
    return run(session, snapshot, change, retry)


def compact(
    store: Store,
    storage_options: Mapping[str, str] | None,
    where: str | None,
    retry: RetryPolicy,
    spark: SparkSession | None,
    ordering: Ordering | None = None,
    is_full: bool = True,
    idle_since_ms: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Committed:
    """A compaction of the newest state of a table; arguments as of `PaimonTable`."""
    session = session_of(spark, store)
    snapshot = load_snapshot(store, At(), options=options, time_zone=time_zone(session))
    condition = None
    opened = StoreOpener(store.url, storage_options)
    with one_statement(session, OwnTable(store.url)):
        if where is not None:
            _, condition = steady_condition(session, where, written_schema(snapshot.schema), "the condition of compact")
        if ordering is not None:
            with expiry_as_conflict(snapshot):
                return order_rows(session, snapshot, ordering, condition, opened, retry)
        return compact_rows(session, snapshot, Asked(is_full, condition, idle_since_ms), opened, retry)


def rescale(
    store: Store,
    storage_options: Mapping[str, str] | None,
    bucket_num: int | None,
    where: str | None,
    retry: RetryPolicy,
    spark: SparkSession | None,
) -> Committed:
    """Another number of buckets for partitions of the newest state; arguments as of `PaimonTable`."""
    session = session_of(spark, store)
    snapshot = load_snapshot(store, At(), time_zone=time_zone(session))
    with one_statement(session, OwnTable(store.url)):
        replaced = Replace()
        if where is not None:
            schema = written_schema(snapshot.schema)
            text, condition = steady_condition(session, where, schema, "the condition of rescale")
            replaced = Replace(condition, text)
        opened = StoreOpener(store.url, storage_options)
        with expiry_as_conflict(snapshot):
            return rescale_rows(session, snapshot, bucket_num, replaced, opened, retry)


def analyze(
    store: Store,
    columns: Sequence[str] | None,
    retry: RetryPolicy,
    spark: SparkSession | None,
    storage_options: Mapping[str, str] | None,
) -> Committed:
    """Statistics of the newest state; arguments as of `PaimonTable`."""
    session = session_of(spark, store)
    snapshot = load_snapshot(store, At(), time_zone=time_zone(session))
    with one_statement(session, OwnTable(store.url)):
        return analyze_rows(session, snapshot, columns, StoreOpener(store.url, storage_options), retry)


def session_of(spark: SparkSession | None, store: Store) -> SparkSession:
    """The session that was given, or the active one.

    Raises:
        InvalidRequest: There is none (`"no-session"`), or one of Spark Connect (`"no-jvm"`).
    """
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidRequest(
            "rows are changed by Spark, and there is no active session",
            code="no-session",
            url=store.url,
            hint="start one, or say spark=",
        )
    ensure_native(session)
    return session
