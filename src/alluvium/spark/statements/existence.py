"""Rows with a mark on those that meet some row of others: each stays one row, however many it meets."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, StructField, StructType

from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.session import java_schema
from alluvium.spark.statements.resolve import Resolved


def with_existence(joined: DataFrame, condition: Resolved, name: str) -> DataFrame:
    """The left rows of a join, and whether the condition is true of them and any of the right ones.

    By Catalyst's own join of that kind, which is what it makes of `EXISTS` in a filter; no text can ask for it.

    Args:
        joined: `left.join(right)`, without a condition.
        condition: Resolved over it.
        name: Of the column that tells.
    """
    spark, java = joined.sparkSession, java_of(joined.sparkSession)
    plans = java.jvm.org.apache.spark.sql.catalyst.plans
    join = joined._jdf.queryExecution().analyzed()
    mark = java_schema(spark, StructType([StructField(name, BooleanType(), False)]))
    meets = plans.ExistenceJoin(java.data_type_utils.toAttributes(mark).apply(0))
    marked = join.copy(join.left(), join.right(), meets, java.option.apply(condition.java), join.hint())
    return DataFrame(java.dataset.ofRows(spark._jsparkSession, marked), spark)
