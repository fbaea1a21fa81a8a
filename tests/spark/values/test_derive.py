"""Columns that the job computes, numbers or takes from the data."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from alluvium.errors import InvalidRequest
from alluvium.plan.write import Check, Derived, Numbered, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.values.derive import complete, find_exhausted

pytestmark = pytest.mark.spark

SCHEMA = Struct((Field("id", t.LONG), Field("x", t.INTEGER), Field("y", t.LONG), Field("odd `n.`", t.STRING)))
CHECK = Check("y", "`y` <=> (x + 1)", ("y", "x"))


def plan(*parts: Derived | Numbered) -> WritePlan:
    return WritePlan(
        "file:/t",
        "d",
        SCHEMA,
        derived=tuple(p for p in parts if isinstance(p, Derived)),
        numbered=tuple(p for p in parts if isinstance(p, Numbered)),
    )


def ids(df: DataFrame, first: int = 1, step: int = 1) -> list[int]:
    rows = complete(df, SCHEMA, plan(Numbered("id", first, step, False)))
    assert rows.numbered == ("id",)
    return [row["id"] for row in rows.df.collect()]


def test_missing_columns_are_computed_and_cast(spark: SparkSession) -> None:
    parts = (
        Derived("y", "x + 1", "x + 1", check=CHECK),
        Derived("x", "6.6", "6.6", is_constant=True),
        Derived("odd `n.`", "upper('a')", "upper('a')"),
    )
    rows = complete(spark.range(1), SCHEMA, plan(*parts))
    assert rows.df.columns == list(SCHEMA.names)
    # Constants first, whatever the order of the plan.
    assert [tuple(row) for row in rows.df.collect()] == [(0, 6, 7, "A")]
    assert dict(rows.df.dtypes) == {"id": "bigint", "x": "int", "y": "bigint", "odd `n.`": "string"}
    assert rows.plan.checks == ()
    assert (rows.plan.derived, rows.plan.numbered, rows.numbered) == ((), (), ())


def test_columns_that_the_data_brings_are_checked_not_computed(spark: SparkSession) -> None:
    df = spark.sql("select 1L as id, 5 as x, 9L as Y")
    rows = complete(
        df, SCHEMA, plan(Derived("y", "x + 1", "x + 1", check=CHECK), Derived("x", "7", "7", is_constant=True))
    )
    assert rows.plan.checks == (CHECK,)
    assert [tuple(row) for row in rows.df.collect()] == [(1, 5, 9, None)]


def test_an_expression_that_spark_does_not_know_is_reported(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest) as caught:
        complete(spark.range(1), SCHEMA, plan(Derived("y", "nobody + 1", "nobody + 1")))
    assert (caught.value.code, caught.value.column) == ("invalid-expression", "y")
    assert "nobody" in caught.value.message


def test_numbers_are_unique_and_dense_over_partitions(spark: SparkSession) -> None:
    sources = {
        "range": spark.range(0, 1000, 1, 7).selectExpr("cast(id as int) x"),
        "one row": spark.sql("select 1 x"),
        "values": spark.sql("select * from values (1), (2), (3) as v(x)"),
        "local": spark.createDataFrame([(i,) for i in range(20)], "x int"),
        "none": spark.sql("select 1 x where false"),
        "shuffled": spark.range(1000).selectExpr("cast(id % 50 as int) x").distinct(),
        "union": spark.range(10).unionAll(spark.range(20)).selectExpr("cast(id as int) x"),
        "sorted": spark.range(100).selectExpr("cast(id as int) x").orderBy("x").limit(30),
        "coalesced": spark.range(0, 100, 1, 8).coalesce(3).selectExpr("cast(id as int) x"),
        "joined": spark.range(300).join(spark.range(300), "id").selectExpr("cast(id as int) x"),
        "filtered": spark.range(0, 100, 1, 4).where("id % 3 = 0").selectExpr("cast(id as int) x"),
    }
    for name, df in sources.items():
        numbers = ids(df)
        assert len(numbers) == df.count(), name
        assert max(Counter(numbers).values(), default=1) == 1, name
        assert min(numbers, default=1) >= 1, name
        # As dense as the partitions are even: never a block of numbers for each.
        assert max(numbers, default=0) <= 40 * (len(numbers) + 1), name
    assert sorted(ids(spark.range(0, 1000, 1, 4).selectExpr("cast(id as int) x"))) == list(range(1, 1001))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_numbers_follow_the_step(spark: SparkSession, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        three = spark.range(0, 3, 1, 1).selectExpr("cast(id as int) x")
        assert ids(three, 10, 3) == [10, 13, 16]
        assert ids(three, -5, -2) == [-5, -7, -9]
        assert ids(three, 2**63 - 3, 1) == [2**63 - 3, 2**63 - 2, 2**63 - 1]
        assert ids(three, -(2**63) + 2, -1) == [-(2**63) + 2, -(2**63) + 1, -(2**63)]
        for first, step in ((2**63 - 2, 1), (-(2**63) + 1, -1), (0, 2**62)):
            with pytest.raises(Exception, match="numbers-exhausted") as caught:
                ids(three, first, step)
            assert find_exhausted(str(caught.value)) == "id"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_numbers_may_be_computed_with(spark: SparkSession) -> None:
    parts = (Numbered("id", 1, 1, False), Derived("y", "id * 10", "id * 10"))
    rows = complete(spark.range(0, 100, 1, 3).selectExpr("cast(id as int) x"), SCHEMA, plan(*parts))
    assert all(row["y"] == 10 * row["id"] for row in rows.df.collect())


def test_numbers_that_the_table_makes_may_not_be_given(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest) as caught:
        complete(spark.sql("select 1L ID, 1 x"), SCHEMA, plan(Numbered("id", 1, 1, False)))
    assert (caught.value.code, caught.value.column) == ("numbers-given", "id")
    rows = complete(spark.sql("select 7L ID, 1 x"), SCHEMA, plan(Numbered("id", 1, 1, True)))
    assert rows.numbered == ()
    assert rows.df.first()["id"] == 7
