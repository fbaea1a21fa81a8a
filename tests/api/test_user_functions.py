"""Functions of users that are called like Spark's own: they mean what their users wrote, and leave no file out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Call, walk
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.scan.native_lane.describe import filters_of_scans
from alluvium.spark.statements.conditions import condition_text

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = [(1, "A1", "A"), (2, "B1", "B"), (3, None, None)]
UNTYPED = "spark.sql.legacy.allowUntypedScalaUDF"

#: From a column of text to its text as it is, by a function that is called `lower`.
Lower = Callable[[str], Column]


@pytest.fixture(params=["python", "registered", "scala"])
def lower(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Lower]:
    def lower(text: str) -> str:
        return text

    if request.param == "scala":
        jvm = java_of(spark).jvm
        spark.conf.set(UNTYPED, "true")
        identity = getattr(getattr(jvm.scala, "Predef$").__getattr__("MODULE$"), "$conforms")()
        function = jvm.org.apache.spark.sql.functions.udf(identity, java_of(spark).type_of_text("string"))
        spark.conf.unset(UNTYPED)
        named = function.withName("lower")
        yield lambda name: Column(named.apply(java_of(spark).seq([sf.col(name)._jc])))
        return
    made = sf.udf(lower, "string")
    if request.param == "python":
        yield made
        return
    spark.udf.register("lower", made)
    try:
        if spark.sql("select lower('A')").first()[0] == "a":
            pytest.skip("this Spark looks for its own functions first")
        yield lambda name: sf.expr(f"lower({name})")
    finally:
        spark._jsparkSession.sessionState().catalog().dropTempFunction("lower", True)


@pytest.fixture(params=["p", "v"])
def column(request: pytest.FixtureRequest) -> str:
    """One that files are apart by, and one that has statistics."""
    return str(request.param)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    alluvium.write(spark.createDataFrame(ROWS, "id int, p string, v string"), path, partition_by=["p"])
    return path


def ids(df) -> list[int]:
    return sorted(row["id"] for row in df.collect())


def test_reads(spark, path: str, lower: Lower, column: str) -> None:
    rows = alluvium.read(spark, path)
    assert ids(rows.where(lower(column).startswith("A"))) == [1]
    assert ids(rows.where(lower(column) != "a")) == [1, 2]
    assert ids(rows.where((sf.col("id") < 3) & lower(column).startswith("B"))) == [2]
    assert ids(rows.where(lower(column).isNull() | (lower(column) == "B1"))) == ([2, 3] if column == "p" else [3])


def test_rows_that_go_and_change(spark, path: str, lower: Lower, column: str) -> None:
    table = DeltaTable.forPath(spark, path)
    first = "a1" if column == "p" else "a"
    table.delete(lower(column) == first)
    table.update(lower(column) == first, {"id": "0"})
    assert ids(table.toDF()) == [1, 2, 3]
    table.update(lower(column) == first.upper(), {"id": "10"})
    table.delete(lower(column) == ("B1" if column == "p" else "B"))
    assert ids(table.toDF()) == [3, 10]


def test_merges(spark, path: str, lower: Lower) -> None:
    source = spark.sql("select 'A1' k union all select 'b1'").alias("s")
    table = DeltaTable.forPath(spark, path).alias("t")
    met = (sf.col("t.p") == sf.col("s.k")) & (lower("t.v") == "A")
    table.merge(source, met).whenMatchedUpdate(set={"id": "10"}).whenNotMatchedInsert(values={"id": "20"}).execute()
    assert ids(table.toDF()) == [2, 3, 10, 20]


def test_what_a_write_has_read_is_not_said_in_their_names(spark, path: str, lower: Lower) -> None:
    (found,) = {where for _, where in filters_of_scans(alluvium.read(spark, path).where(lower("v") == "A"))}
    assert found is None or not any(isinstance(node, Call) for node in walk(found))


def test_a_condition_that_is_kept_as_text(spark, path: str, lower: Lower) -> None:
    with pytest.raises(InvalidRequest) as caught:
        condition_text(spark, alluvium.open(path).schema, lower("p") == "A1")
    assert caught.value.code == "invalid-condition"
