"""Writing: rows of a session by Spark, rows of Arrow in this process."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from alluvium.api.arguments import plain, texts_of
from alluvium.api.doors import ArrowWriting, format_named
from alluvium.errors import InvalidRequest, suggest
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.portable.writing.arrow_rows import arrow_rows
from alluvium.storage.open import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    data: DataFrame | object,
    url: str,
    mode: str = "error",
    format: str = "delta",
    partition_by: Sequence[str] | str = (),
    retry: RetryPolicy = DEFAULT_RETRY,
    storage_options: Mapping[str, str] | None = None,
    **options: object,
) -> Committed:
    """Writes rows and commits them: those of a DataFrame of Spark by its own writer, on classic sessions and over
    Connect; all others without Spark, in this process.

    Args:
        data: The rows: a DataFrame of Spark, or whatever speaks Arrow (`pyarrow.Table`, `RecordBatchReader`, frames of
            pandas and Polars, `__arrow_c_stream__`), for Delta tables. Columns are matched by name without regard to
            case; nullable ones may be missing.
        url: A local path or URL.
        mode: `"error"` (there must be no table), `"append"`, `"overwrite"` or `"ignore"`.
        format: `"delta"` or `"paimon"`.
        partition_by: Partition columns of a table to create; for an existing one they must be its own.
        retry: How often a commit that lost a race is tried again, where the rules allow it.
        storage_options: Credentials; a session writes data files by its own file systems.
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
        UnsupportedFeature: The table needs a writer that we are not, or Spark (`"needs-spark"`): for expressions that
            only Spark evaluates, for `replaceUsing`, for Paimon tables.
        CommitConflict: Another writer won.
        CommitUnknown: The store did not say whether the commit stands.

    Example:
        >>> alluvium.write(df, "/data/flights", partition_by=["month"])
        >>> alluvium.write(pa.table({"carrier": ["UA"], "month": [3]}), "/data/flights", mode="append")
    """
    save_mode = parse_mode(mode)
    names = texts_of((partition_by,) if isinstance(partition_by, str) else partition_by, "partition_by")
    if hasattr(data, "sparkSession"):
        frames = importlib.import_module("alluvium.api.calls")
        return cast(Committed, frames.write_frame(data, url, save_mode, format, names, retry, storage_options, options))
    door, rows = format_named(format).door, arrow_rows(data)
    store = open_store(url, storage_options)
    return door.write(ArrowWriting(rows, data, store, save_mode, names, options, retry))


def parse_mode(mode: str) -> str:
    """A save mode as the history names it.

    Raises:
        InvalidRequest: There is no such mode.
    """
    text = plain(mode) if isinstance(mode, str) else str(mode)
    if text.lower() not in _MODES:
        raise InvalidRequest(f"unknown mode {mode!r}", code="unknown-mode", hint=suggest(text, _MODES))
    return _MODES[text.lower()]
