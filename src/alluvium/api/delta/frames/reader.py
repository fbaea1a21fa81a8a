"""Versions and change feeds of Delta tables as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.calls import Reading, narrowed, read_condition, read_source, tell_partitions
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.doors import DELTA, ensure_follows
from alluvium.api.options import Options, asks_for_changes, change_bounds, parse_flag
from alluvium.api.server_scan import WorkerRequest, read_by_workers, resolve_columns
from alluvium.commands.large_log import LargeSource, checkpoint_limit
from alluvium.delta.changes.bounds import Bound
from alluvium.delta.changes.schema import SchemaMode
from alluvium.delta.changes.source import load_changes
from alluvium.delta.features.rows.row_tracking import (
    ensure_enabled,
    with_metadata_columns,
)
from alluvium.delta.log.state import MAX_CHECKPOINT_BYTES
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import show_not_null
from alluvium.spark.sessions.session import LaneChoice
from alluvium.spark.sessions.settings import read_flag

_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
#: `legacy` lets time travel choose the schema, which a change feed refuses: what is left of it is the latest.
_SCHEMA_MODES: Mapping[str, SchemaMode] = {"endversion": "endVersion", "latest": "latest", "legacy": "latest"}


def load_asked(reading: Reading) -> Snapshot:
    """The version that is asked for; its log may be left for Spark to read."""
    asked, limit = reading.asked, _log_limit(reading.spark, reading.options, reading.choice)
    return open_snapshot(reading.store, asked.version, asked.timestamp_ms, reading.time_zone, reading.open_any, limit)


def read_rows(reading: Reading, snapshot: Snapshot, choice: LaneChoice) -> DataFrame:
    """The rows of a version, or the changes that the options ask for.

    Raises:
        InvalidRequest: An unknown column, no predicate, `"row-tracking-disabled"`.
        UnsupportedFeature: Row ids that the lane cannot give.
    """
    spark, options, zone, is_pinned = reading.spark, reading.options, snapshot.time_zone, reading.asked.is_of_a_time
    where, columns = reading.where, reading.columns
    ensure_follows(reading.asked, _why_pinned(reading, snapshot, choice), snapshot.store.url)
    if asks_for_changes(options):
        return narrowed(read_changes(spark, snapshot, *change_bounds(options, zone), choice), where, columns)
    with_ids = parse_flag(options.get("rowIds"), "rowIds")
    schema = _ensure_row_ids(snapshot, choice) if with_ids else snapshot.config.schema
    predicate = read_condition(spark, where, schema, zone, choice)
    names = None if columns is None else resolve_columns(columns, schema.names)
    if choice.lane == "python":
        source = DeltaSource(snapshot, (), is_pinned)
        request = WorkerRequest(DELTA, source, snapshot.store.url, zone, reading.storage_options, choice.why, is_pinned)
        return read_by_workers(spark, request, names, where, predicate)
    if snapshot.state.deferred:
        return narrowed(read_source(spark, LargeSource(spark, snapshot, is_pinned), choice), where, names)
    extra = tuple(name for name in schema.names if snapshot.config.schema.find(name) is None)
    follows = reading.asked.follows and _why_pinned(reading, snapshot, choice) is None
    source = DeltaSource(snapshot, extra, is_pinned, follows=follows)
    frame = narrowed(read_source(spark, source, choice, is_pinned, follows), where, names)
    frame = tell_partitions(frame, snapshot.config.partition_columns)
    return show_not_null(frame, snapshot.config.schema) if choice.lane == "native" else frame


def _why_pinned(reading: Reading, snapshot: Snapshot, choice: LaneChoice) -> str | None:
    """Why a frame shows one version however often it is evaluated; None: it need not."""
    if asks_for_changes(reading.options):
        return "a change feed is one of a range"
    if reading.asked.is_of_a_time:
        return "a version is asked for"
    if choice.lane != "native":
        return choice.why
    return "its log is so large that Spark reads it" if snapshot.state.deferred else None


def _ensure_row_ids(snapshot: Snapshot, choice: LaneChoice) -> Struct:
    """The columns of a result that has row ids.

    Raises:
        InvalidRequest: `"row-tracking-disabled"`.
        UnsupportedFeature: The lane cannot give them.
    """
    if choice.lane == "python" or snapshot.state.deferred:
        why = "its log is read by Spark" if choice.lane == "native" else choice.why
        raise UnsupportedFeature(
            f"row ids cannot be read this way: {why}",
            code="unsupported-option",
            features=("rowIds",),
            hint="read them without Spark: alluvium.open(url).to_arrow(columns=['*', '_row_id'])",
        )
    ensure_enabled(snapshot.config)
    return with_metadata_columns(snapshot.config)


def _log_limit(spark: SparkSession, parsed: Options, choice: LaneChoice) -> int:
    """The size from which on a log is left for Spark to read, which only a JVM does, and only of rows."""
    return MAX_CHECKPOINT_BYTES if asks_for_changes(parsed) or choice.lane != "native" else checkpoint_limit(spark)


def read_changes(
    spark: SparkSession, snapshot: Snapshot, start: Bound, end: Bound | None, choice: LaneChoice
) -> DataFrame:
    """The change feed of a range. Settings of the session that delta-spark has for change feeds hold here, too.

    Raises:
        InvalidRequest: `"lane-impossible"`, a setting that nobody knows, or the range has no feed.
    """
    if choice.lane == "python":
        raise InvalidRequest(
            "Python workers cannot read a change feed", code="lane-impossible", hint="alluvium.open(url).changes(...)"
        )
    asked = str(spark.conf.get(_SCHEMA_MODE, "endVersion")).lower()
    if asked not in _SCHEMA_MODES:
        raise InvalidRequest(
            f"{_SCHEMA_MODE} is {asked!r}", code="invalid-option", hint="set it to endVersion, latest or legacy"
        )
    lenient = read_flag(spark, _OUT_OF_RANGE, False)
    source = load_changes(snapshot, start, end, schema_mode=_SCHEMA_MODES[asked], allow_out_of_range=lenient)
    return read_source(spark, source, choice)
