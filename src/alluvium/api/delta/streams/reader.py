"""`readStream` of Delta tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.streams.source import DeltaStream
from alluvium.api.delta.streams.tracking import TRACKING, track_columns
from alluvium.api.options import Options, parse_options, parse_timestamp_ms
from alluvium.delta.features.rows import change_data_feed
from alluvium.delta.streams.checks import NEW_PARTITIONS
from alluvium.delta.streams.options import FLAGS, VALUES, StreamOptions, parse_stream_options
from alluvium.delta.streams.stream import Stream
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.streams.lanes import read_any_stream
from alluvium.storage.store import Store

_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
_POINTS = ("versionAsOf", "timestampAsOf", "endingVersion", "endingTimestamp")


def read_delta_stream(
    spark: SparkSession, url: str, options: Mapping[str, str], open_any: Callable[[str], Store]
) -> DataFrame:
    """The rows of a table, then those that are appended, for queries to be started of.

    Args:
        spark: The session.
        url: Of the table.
        options: As the caller spells them.
        open_any: From a URL to its store.

    Raises:
        NotFound: There is no table.
        InvalidRequest: An option that nobody knows, or that means nothing for a stream.
        CorruptTable: The log of columns of `schemaTrackingLocation` cannot be read.
    """
    zone = time_zone(spark)
    parsed = parse_options(options, (*FLAGS, *VALUES, *TRACKING, *_POINTS, "path"), ())
    asked = replace(
        _parse(parsed, zone),
        may_begin_late=read_flag(spark, _OUT_OF_RANGE, False),
        allows_new_partitions=read_flag(spark, NEW_PARTITIONS, False),
    )
    snapshot = open_snapshot(open_any(url), time_zone=zone, open_elsewhere=open_any)
    if not snapshot.config.schema.fields:
        raise InvalidRequest("a table without columns cannot be streamed", code="no-columns", url=snapshot.store.url)
    if asked.changes and not change_data_feed.is_used(snapshot.config):
        raise InvalidRequest(
            "the table does not record changes: delta.enableChangeDataFeed is not true",
            code="change-feed-disabled",
            url=snapshot.store.url,
            version=snapshot.version,
            hint="set it before the changes that you want to see",
        )
    tracker = track_columns(spark, snapshot, parsed, asked, open_any)
    if tracker is not None:
        snapshot = replace(snapshot, config=tracker.shown, _found={})
    return read_any_stream(spark, DeltaStream(Stream(snapshot, asked, tracker)))


def _parse(parsed: Options, zone: str) -> StreamOptions:
    for name in _POINTS:
        if parsed.get(name) is not None:
            raise InvalidRequest(
                f"a stream has no end, and is not as of a point in time: {name} means nothing for it",
                code="stream-as-of",
                hint="startingVersion or startingTimestamp say where it begins",
            )
    if parsed.properties:
        name = next(iter(parsed.properties))
        raise InvalidRequest(f"table property {name!r} is no option for reading", code="unknown-option")
    text = parsed.get("startingTimestamp")
    starting_ms = None if text is None else parse_timestamp_ms(text, "startingTimestamp", zone)
    return parse_stream_options(parsed.known, starting_ms)
