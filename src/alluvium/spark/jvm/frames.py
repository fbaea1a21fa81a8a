"""Columns and frames of a classic session, made in few round trips.

For each function of a column that Python calls, PySpark asks the JVM a dozen times (for the class, for how much of the
caller's stack is to be told, that it be told and forgotten), and twice for each column of a list. A verb that puts
together some twenty frames would spend more time on that than on its plan. What is made here is what PySpark makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from alluvium.expr.sql.sql_tokens import SUBSTITUTION
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column


def expression_of(spark: SparkSession, text: str) -> Column:
    """`functions.expr`."""
    return Column(java_of(spark).functions.expr(text))


def column_of(spark: SparkSession, name: str) -> Column:
    """`functions.col` of a column's name, whatever is in it."""
    return Column(java_of(spark).functions.col(quote(name)))


def negated(spark: SparkSession, column: Column) -> Column:
    """`~column`."""
    # A keyword of Python.
    return Column(getattr(java_of(spark).functions, "not")(column._jc))


def choose(spark: SparkSession, condition: Column, value: Column, otherwise: Column) -> Column:
    """`when(condition, value).otherwise(otherwise)`; over Spark Connect, too, for verbs that do not care."""
    if not isinstance(condition, ClassicColumn):
        return sf.when(condition, value).otherwise(otherwise)
    return Column(java_of(spark).functions.when(condition._jc, value._jc).otherwise(otherwise._jc))


def select_named(frame: DataFrame, columns: Sequence[tuple[str, Column]]) -> DataFrame:
    """`DataFrame.select` of columns under names; over Spark Connect, too."""
    if not isinstance(frame, ClassicFrame):
        return frame.select(*(column.alias(name) for name, column in columns))
    spark = frame.sparkSession
    named = [column._jc.alias(name) for name, column in columns]
    return DataFrame(frame._jdf.select(java_of(spark).seq(named)), spark)


def select_column(frame: DataFrame, column: Column, name: str) -> DataFrame:
    """`DataFrame.select` of one column under a name."""
    spark = frame.sparkSession
    java = java_of(spark)
    return DataFrame(frame._jdf.select(java.seq([column._jc.alias(name)])), spark)


def select_texts(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """`DataFrame.selectExpr` of texts of ours: what looks like a variable to Spark is a part of a name in them.

    It takes frames of Spark Connect, too, for verbs that do not care.
    """
    if any(SUBSTITUTION in text for text in texts):
        return frame.select(*map(sql_column, texts))
    if not isinstance(frame, ClassicFrame):
        return frame.selectExpr(*texts)
    spark = frame.sparkSession
    return DataFrame(frame._jdf.selectExpr(java_of(spark).texts(texts)), spark)


def with_columns(frame: DataFrame, columns: Sequence[tuple[str, Column]]) -> DataFrame:
    """`DataFrame.withColumns`."""
    if not columns:
        return frame
    spark = frame.sparkSession
    java = java_of(spark)
    names, values = java.texts([name for name, _ in columns]), java.seq([value._jc for _, value in columns])
    return DataFrame(frame._jdf.withColumns(names, values), spark)


def filter_rows(frame: DataFrame, condition: Column | str) -> DataFrame:
    """`DataFrame.where`."""
    wanted = condition if isinstance(condition, str) else condition._jc
    return DataFrame(frame._jdf.filter(wanted), frame.sparkSession)


def aggregate(frame: DataFrame, by: Sequence[str], texts: Sequence[str]) -> DataFrame:
    """`DataFrame.groupBy(*by).agg(...)`, the aggregates as SQL.

    Args:
        frame: Rows.
        by: Names of columns, at least one.
        texts: Aggregates, each ` as name`; at least one.
    """
    spark = frame.sparkSession
    java = java_of(spark)
    grouped = frame._jdf.groupBy(by[0], java.texts(by[1:]))
    first, *others = (java.functions.expr(text) for text in texts)
    return DataFrame(grouped.agg(first, java.seq(others)), spark)
