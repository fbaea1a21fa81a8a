"""Deleted rows on the native lane: a bitmap that rides along as one constant a file, and a filter that looks its own
row up in it.

The look-up is a static method of Spark's own, which its generated code calls like any expression: a few machine
instructions a row, however many rows are deleted, and Spark's vectorised reader stays on. A join would cost a
hundred times as much, a Python function would cost the vectorised reader.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.spark.jvm.catalyst import catalyst_of
from alluvium.spark.jvm.frames import filter_rows, negated
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.names import quote


def apply_masks(
    spark: SparkSession, frame: DataFrame, name: str, keeps_masked: bool, row_index: Column | None = None
) -> DataFrame:
    """The rows of a relation that are not deleted; or, the other way round, those that masks list.

    Args:
        spark: Its session.
        frame: The relation itself, or its rows with their positions.
        name: Its column of deleted rows.
        keeps_masked: See `plan.scan.ScanPart`.
        row_index: A row's position in its file; None: Spark's reader tells.
    """
    if row_index is None:
        row_index = Column(frame._jdf.metadataColumn("_metadata").getField("row_index"))
    deleted = is_deleted(spark, name, row_index)
    return filter_rows(frame, deleted if keeps_masked else negated(spark, deleted))


def is_deleted(spark: SparkSession, deleted: str, row_index: Column) -> Column:
    """Whether a row is among the deleted ones: never null, hence Spark infers no filter on its operands.

    Args:
        spark: The session.
        deleted: Name of the column with what `bits_of` gives, never empty: its last bit stands for all rows behind.
        row_index: The row's position.
    """
    catalyst = catalyst_of(spark)
    java, bits = java_of(spark), quote(deleted)
    place: JavaObject = row_index._jc
    last = java.functions.expr(f"length({bits}) * 8L - 1L")
    # No row, whatever the order in which Spark puts conditions, may lead out of the bitmap: `isSet` checks nothing.
    index = catalyst.expression(Column(java.functions.when(place.lt(last), place).otherwise(last).cast("int")))
    column = catalyst.parse(bits)
    # Where bytes begin in an array of bytes is a matter of the JVM that asks: an executor's, not the driver's.
    text = catalyst.static_call("org.apache.spark.unsafe.types.UTF8String", "fromBytes", "string", [column])
    start = catalyst.call(text, "getBaseOffset", "bigint")
    found = catalyst.static_call(
        "org.apache.spark.unsafe.bitset.BitSetMethods", "isSet", "boolean", [column, start, index]
    )
    return Column(java.functions.coalesce(java.seq([catalyst.column(found)._jc, java.functions.lit(False)])))
