"""What is read of Catalyst's conditions."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from alluvium.expr.literals import format_sql
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.filters import parse_condition
from alluvium.spark.jvm.gateway import java_of

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
