"""Writing rows of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from alluvium.api.calls import Writing
from alluvium.api.doors import format_named
from alluvium.api.engine import session_opener
from alluvium.plan.changes import Committed
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.sessions.session import ensure_native, is_connect


def write_frame(
    df: DataFrame,
    url: str,
    save_mode: str,
    format: str,
    partition_by: Sequence[str],
    retry: RetryPolicy,
    storage_options: Mapping[str, str] | None,
    options: Mapping[str, object],
) -> Committed:
    """`alluvium.write` of a DataFrame; arguments and errors as there, `save_mode` as the history names it."""
    spark = df.sparkSession
    if not is_connect(spark):
        ensure_native(spark)
    open_any = session_opener(spark, storage_options)
    writing = Writing(df, open_any(url), open_any, save_mode, partition_by, options, retry, storage_options)
    return format_named(format).frame_door.write(writing)
