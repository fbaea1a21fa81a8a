"""What is read of Catalyst's conditions."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from alluvium.expr.literals import format_sql
from alluvium.expr.tree import Unknown
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.filters import parse_condition
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.types import from_spark

pytestmark = pytest.mark.spark

SCHEMA = Struct((Field("id", t.LONG), Field("u", t.STRING)))


def read_again(spark: SparkSession, condition: str) -> str:
    """The text of the condition that we read of what Spark makes of another."""
    rows = spark.sql("select id, string(id) as u from range(3)").where(condition)
    plan = rows._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() != "Filter":
        plan = plan.children().head()
    return format_sql(parse_condition(java_of(spark), plan.condition(), SCHEMA))


def test_a_constant_within_a_call_of_java_is_no_part_of_the_condition(spark: SparkSession) -> None:
    # The constant is printed without quotes, and would close the call and bring a condition of its own.
    told = read_again(spark, "id > 1 and parse_url(u, 'x)) = 1) OR (id = 5') is null")
    assert "id = 5" not in told and "OR" not in told
    assert told.startswith("((id > 1L) AND ")


def seen(spark: SparkSession, table: str, condition: str, *, named: str = "") -> str:
    """What we read of a condition over columns."""
    rows = spark.createDataFrame([], table)
    kept = rows.alias(named).where(condition) if named else rows.where(condition)
    plan = kept._jdf.queryExecution().optimizedPlan()
    while plan.nodeName() != "Filter":
        plan = plan.children().head()
    found = parse_condition(java_of(spark), plan.condition(), from_spark(rows.schema))
    return "?" if isinstance(found, Unknown) else format_sql(found)


@pytest.mark.parametrize("named", ["", "t"])
@pytest.mark.parametrize("name", ["and", "or", "not"])
def test_a_column_called_as_an_operator_is_no_other_column(spark: SparkSession, name: str, named: str) -> None:
    # `t.and IS NOT NULL` was read as something AND `is IS NOT NULL`, and `not IS NOT NULL` as `is IS NULL`.
    for condition in (f"`{name}` is not null", f"`{name}` is null", f"`{name}` > 5", f"`{name}` in (1, 2)"):
        read = seen(spark, f"`{name}` int, `is` int", condition, named=named)
        assert "is IS" not in read.replace(f"{name} IS", ""), read


def test_the_cast_of_a_struct_is_not_read_as_the_struct(spark: SparkSession) -> None:
    # Its members go under other names; Catalyst prints s.`a`.
    table = "s struct<a: int, b: int>, i int"
    for cast in ("cast(s as struct<b: int, a: int>).a", "try_cast(s as struct<b: bigint, a: bigint>).a"):
        assert "s.a" not in seen(spark, table, f"{cast} = 5")
        assert "s.a" not in seen(spark, table, f"{cast} + s.b > i or {cast} = 5")


def test_a_decimal_constant_of_more_digits_than_are_printed(spark: SparkSession) -> None:
    # Spark rounds the product to six digits behind the point, for its type is too wide.
    table = "d decimal(20,10), e decimal(9,2)"
    assert "*" not in seen(spark, table, "d * cast(3 as decimal(38,10)) = 0.370371").replace("BD) =", "")
    assert "(d + CAST" not in seen(spark, table, "d + cast(1 as decimal(38,4)) = 1.5")
    assert "(e * CAST('1.5' AS DECIMAL(2,1)))" in seen(spark, table, "e * 1.5 = 3")


def test_a_variable_of_the_session_is_no_column(spark: SparkSession) -> None:
    spark.sql("declare or replace variable b int default 5")
    try:
        assert "= b" not in seen(spark, "a int, b int", "a = session.b")
    finally:
        spark.sql("drop temporary variable b")
