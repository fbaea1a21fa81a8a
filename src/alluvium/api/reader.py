"""Reading with Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.open import open_snapshot, storage_for
from alluvium.api.options import (
    READ,
    READ_LATER,
    as_of,
    asks_for_changes,
    change_bounds,
    parse_bound,
    parse_options,
)
from alluvium.commands.large_log import LargeSource, checkpoint_limit
from alluvium.delta.changes.bounds import Bound
from alluvium.delta.changes.schema import SchemaMode
from alluvium.delta.changes.source import load_changes
from alluvium.delta.snapshot import Snapshot
from alluvium.delta.source import DeltaSource
from alluvium.errors import InvalidRequest
from alluvium.spark.scan.native import read_native
from alluvium.spark.session import ensure_native, hadoop_access, time_zone

_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
#: `legacy` lets time travel choose the schema, which a change feed refuses: what is left of it is the latest.
_SCHEMA_MODES: Mapping[str, SchemaMode] = {"endversion": "endVersion", "latest": "latest", "legacy": "latest"}


def read(
    spark: SparkSession,
    url: str,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: object,
) -> DataFrame:
    """A table as a DataFrame on Spark's own Parquet reader.

    Any later `where`, join or SQL on it skips files by partition values and statistics. The version is pinned:
    the DataFrame gives the same rows however often it is evaluated. A log larger than the session's setting
    `spark.alluvium.log.maxCheckpointBytes` is read by Spark, see `docs/scale.md`.

    Args:
        spark: A classic session (with a JVM).
        url: A local path or URL.
        version: This version instead of the newest.
        timestamp: The newest version committed at or before this time (naive: UTC), or ISO text.
        storage_options: Credentials for reading the log; the data files are read by Spark's file systems.
        **options: Spark's spelling: `versionAsOf`, `timestampAsOf`; for the change data feed `readChangeFeed` with
            `startingVersion` or `startingTimestamp`, and `endingVersion` or `endingTimestamp` (see `changes`).

    Raises:
        NotFound: There is no table, or not that version.
        UnsupportedFeature: The table or an option needs something that is not implemented.
        InvalidRequest: An unknown option, or a session without a JVM.

    Example:
        >>> alluvium.read(spark, "/data/flights").where("month = 1").count()
    """
    ensure_native(spark)
    parsed = parse_options(options, READ, READ_LATER)
    of_changes = asks_for_changes(parsed)
    at_version, at_ms = as_of(
        version if version is not None else parsed.get("versionAsOf"),
        timestamp if timestamp is not None else parsed.get("timestampAsOf"),
    )
    if parsed.properties:
        name = next(iter(parsed.properties))
        raise InvalidRequest(f"table property {name!r} is no option for reading", code="unknown-option")
    open_any = partial(storage_for, storage_options=storage_options, hadoop=partial(hadoop_access, spark))
    if of_changes and (at_version is not None or at_ms is not None):
        raise InvalidRequest(
            "a change feed is read from a range, not as of a version",
            code="changes-as-of",
            hint="give startingVersion and endingVersion",
        )
    limit = None if of_changes else checkpoint_limit(spark)
    snapshot = open_snapshot(open_any(url), at_version, at_ms, time_zone(spark), open_any, limit)
    if of_changes:
        return _changes(spark, snapshot, *change_bounds(parsed))
    return read_native(spark, LargeSource(spark, snapshot) if snapshot.state.deferred else DeltaSource(snapshot))


def changes(
    spark: SparkSession,
    url: str,
    start: int | dt.datetime | dt.date | str,
    end: int | dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Which rows versions of a table inserted, updated and deleted: its change data feed.

    Any later `where` on it skips files by version, time, partition values and statistics.

    Args:
        spark: A classic session (with a JVM).
        url: A local path or URL.
        start: The first version, or the first one committed at or after a time (naive: UTC).
        end: The last version (cut at the latest), or the last one committed at or before a time; None: the latest.
        storage_options: Credentials for reading the log; the data files are read by Spark's file systems.

    Returns:
        The table's columns, then `_change_type` (`insert`, `update_preimage`, `update_postimage`, `delete`),
        `_commit_version` and `_commit_timestamp`. Specification: "Add CDC File".

    Raises:
        NotFound: There is no table, or the range is not in its log (`missing-version`).
        InvalidRequest: The range ends before it starts (`invalid-range`), changes were not recorded in all of it
            (`change-feed-disabled`), it has no common schema (`incompatible-schema`), or a session without a JVM.
        UnsupportedFeature: The table needs something that is not implemented.

    Example:
        >>> alluvium.changes(spark, "/data/flights", 3, 7).where("_change_type = 'delete'").count()
    """
    ensure_native(spark)
    bounds = parse_bound(start, "start"), None if end is None else parse_bound(end, "end")
    open_any = partial(storage_for, storage_options=storage_options, hadoop=partial(hadoop_access, spark))
    return _changes(spark, open_snapshot(open_any(url), None, None, time_zone(spark), open_any), *bounds)


def _changes(spark: SparkSession, snapshot: Snapshot, start: Bound, end: Bound | None) -> DataFrame:
    """Settings of the session that delta-spark has for change feeds hold here, too."""
    asked = str(spark.conf.get(_SCHEMA_MODE, "endVersion")).casefold()
    if asked not in _SCHEMA_MODES:
        raise InvalidRequest(
            f"{_SCHEMA_MODE} is {asked!r}", code="invalid-option", hint="set it to endVersion, latest or legacy"
        )
    lenient = str(spark.conf.get(_OUT_OF_RANGE, "false")).casefold() == "true"
    source = load_changes(snapshot, start, end, schema_mode=_SCHEMA_MODES[asked], allow_out_of_range=lenient)
    return read_native(spark, source)
