"""`_metadata` over what a scan makes of its files: there for whoever names it, outside of the schema otherwise.

Spark gives `_metadata` on a single relation alone: a union loses it, and what tables know of rows beyond their files
is not in it. Here it is an ordinary column of all parts, which the topmost projection hides in the way in which Spark
hides the keys of `JOIN ... USING`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr

from alluvium.spark.catalyst import catalyst_of
from alluvium.spark.scan.names import quote, quote_text

METADATA = "_metadata"
#: Members of Spark's own `_metadata` of Parquet files.
_OF_FILES = (
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
    "row_index",
)


def with_metadata(frame: DataFrame, names: Sequence[str], members: Mapping[str, str]) -> DataFrame:
    """The columns of a frame that are asked for, and `_metadata` behind them.

    Args:
        frame: Rows of one relation: its `_metadata` is in reach.
        names: Columns to keep.
        members: Members beside those of files: their names, and the frame's columns that hold them.
    """
    pairs = [f"{quote_text(name)}, {METADATA}.{name}" for name in _OF_FILES]
    pairs += [f"{quote_text(name)}, {quote(column)}" for name, column in members.items()]
    made = expr(f"named_struct({', '.join(pairs)})")
    return frame.select(*_columns(names), made.alias(METADATA, metadata={"__metadata_col": METADATA}))


def hide_metadata(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The frame without its last column, `_metadata`, which is found all the same where it is named."""
    return catalyst_of(spark).hide_last(spark, frame)


def _columns(names: Sequence[str]) -> list[Column]:
    return [col(quote(name)) for name in names]
