"""Who runs a stream: Spark's own Structured Streaming on classic sessions, the client over Spark Connect."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource, StreamSource
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.streams.source import read_stream


def read_any_stream(
    spark: SparkSession,
    stream: StreamSource,
    shape: Callable[[DataFrame], DataFrame] | None = None,
    read_other: Callable[[ScanSource], DataFrame] | None = None,
) -> DataFrame:
    """The rows of a stream, for queries to be started of; arguments and errors as of `read_stream`."""
    if not is_connect(spark):
        return read_stream(spark, stream, shape, read_other)
    # Its packages are not there without Connect.
    frame = importlib.import_module("alluvium.spark.streams.client.frame")
    rows: DataFrame = frame.read_stream_by_client(spark, stream, shape)
    return rows
