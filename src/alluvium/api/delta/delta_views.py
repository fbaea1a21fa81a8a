"""What DeltaTable tells of a table, as DataFrames in delta-spark's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as s

from alluvium.api.delta.told.detail import DETAIL, detail_row
from alluvium.delta.view.history import read_history
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS, InvalidRequest
from alluvium.schema.arrow import to_arrow
from alluvium.spark.naming.types import from_spark, to_spark

_TEXT, _LONG = s.StringType(), s.LongType()
_TEXTS, _TEXT_MAP = s.ArrayType(_TEXT), s.MapType(_TEXT, _TEXT)


def _struct(**members: s.DataType) -> s.StructType:
    return s.StructType([s.StructField(name, data_type) for name, data_type in members.items()])


_JOB = _struct(jobId=_TEXT, jobName=_TEXT, jobRunId=_TEXT, runId=_TEXT, jobOwnerId=_TEXT, triggerType=_TEXT)
_NOTEBOOK = _struct(notebookId=_TEXT)

HISTORY = _struct(
    version=_LONG,
    timestamp=s.TimestampType(),
    userId=_TEXT,
    userName=_TEXT,
    operation=_TEXT,
    operationParameters=_TEXT_MAP,
    job=_JOB,
    notebook=_NOTEBOOK,
    clusterId=_TEXT,
    readVersion=_LONG,
    isolationLevel=_TEXT,
    isBlindAppend=s.BooleanType(),
    operationMetrics=_TEXT_MAP,
    userMetadata=_TEXT,
    engineInfo=_TEXT,
)

#: Columns of a restore's result, and the metrics that they show.
_RESTORED: Mapping[str, str] = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}


def detail_frame(spark: SparkSession, snapshot: Snapshot, name: str | None) -> DataFrame:
    """One row about a version of a table."""
    return few_rows(spark, [detail_row(snapshot, name)], to_spark(DETAIL))


def history_frame(spark: SparkSession, snapshot: Snapshot, limit: int | None) -> DataFrame:
    """A row a commit, newest first.

    Raises:
        InvalidRequest: A negative limit.
    """
    if limit is not None and limit < 0:
        raise InvalidRequest(f"limit must not be negative: {limit}", code="invalid-limit")
    rows = read_history(snapshot, limit).to_pylist()
    for row in rows:
        row["job"] = _members(row["job"], _JOB)
        row["notebook"] = _members(row["notebook"], _NOTEBOOK)
    return few_rows(spark, rows, HISTORY)


def restore_frame(spark: SparkSession, metrics: Mapping[str, str]) -> DataFrame:
    """The metrics of a restore; no row where there was nothing to restore."""
    row = {column: int(metrics[name]) for column, name in _RESTORED.items()} if metrics else None
    schema = s.StructType([s.StructField(name, _LONG) for name in _RESTORED])
    return few_rows(spark, [] if row is None else [row], schema)


def _members(text: str | None, struct: s.StructType) -> dict[str, str | None] | None:
    """An object of commitInfo, kept as JSON text, as a struct."""
    try:
        found = None if text is None else msgspec.json.decode(text, type=dict[str, object])
    except DECODE_ERRORS:
        return None
    if found is None:
        return None
    return {name: None if found.get(name) is None else str(found[name]) for name in struct.names}


def few_rows(spark: SparkSession, rows: Sequence[Mapping[str, object]], schema: s.StructType) -> DataFrame:
    """A few rows as a DataFrame, by Arrow: no Python worker is started for them."""
    arrow = pa.schema(list(to_arrow(from_spark(schema))))
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=arrow), schema)
