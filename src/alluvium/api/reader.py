"""Reading with Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.open import open_snapshot, storage_for
from alluvium.api.options import READ, READ_LATER, as_of, parse_options
from alluvium.delta.source import DeltaSource
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.scan.native import read_native
from alluvium.spark.session import ensure_native, hadoop_access, time_zone


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
    the DataFrame gives the same rows however often it is evaluated.

    Args:
        spark: A classic session (with a JVM).
        url: A local path or URL.
        version: This version instead of the newest.
        timestamp: The newest version committed at or before this time (naive: UTC), or ISO text.
        storage_options: Credentials for reading the log; the data files are read by Spark's file systems.
        **options: Spark's spelling: `versionAsOf`, `timestampAsOf`.

    Raises:
        NotFound: There is no table, or not that version.
        UnsupportedFeature: The table or an option needs something that is not implemented.
        InvalidRequest: An unknown option, or a session without a JVM.

    Example:
        >>> alluvium.read(spark, "/data/flights").where("month = 1").count()
    """
    ensure_native(spark)
    parsed = parse_options(options, READ, READ_LATER)
    at_version, at_ms = as_of(
        version if version is not None else parsed.get("versionAsOf"),
        timestamp if timestamp is not None else parsed.get("timestampAsOf"),
    )
    if parsed.properties:
        name = next(iter(parsed.properties))
        raise InvalidRequest(f"table property {name!r} is no option for reading", code="unknown-option")
    open_any = partial(storage_for, storage_options=storage_options, hadoop=partial(hadoop_access, spark))
    snapshot = open_snapshot(open_any(url), at_version, at_ms, time_zone(spark), open_any)
    return read_native(spark, DeltaSource(snapshot))


def changes(spark: SparkSession, url: str, start: object, end: object = None) -> DataFrame:
    """The change data feed with Spark; not implemented yet."""
    raise UnsupportedFeature(
        "reading the change data feed is not implemented yet", features=("changeDataFeed",), url=str(url)
    )
