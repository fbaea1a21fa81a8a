"""Writing with Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from alluvium.api.calls import Writing
from alluvium.api.doors import format_named
from alluvium.api.engine import session_opener
from alluvium.errors import InvalidRequest, suggest
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.session import ensure_native, is_connect

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
        **options: `replaceWhere`, `replaceUsing`, `replaceOn`, `targetAlias`, `partitionOverwriteMode`,
            `mergeSchema`, `overwriteSchema`, `userMetadata`, `txnAppId` and `txnVersion`, `dataChange`,
            `optimizeWrite`, `sort_by`, `clusterBy`, `compression`, `maxRecordsPerFile`;
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
    door = format_named(format).frame_door
    names = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    open_any = session_opener(spark, storage_options)
    return door.write(Writing(df, open_any(url), open_any, save_mode, names, options, retry, storage_options))


def parse_mode(mode: str) -> str:
    """A save mode as the history names it.

    Raises:
        InvalidRequest: There is no such mode.
    """
    if str(mode).casefold() not in _MODES:
        raise InvalidRequest(f"unknown mode {mode!r}", code="unknown-mode", hint=suggest(str(mode), _MODES))
    return _MODES[mode.casefold()]
