"""What data fits into what table; the expectations are what delta-spark 4.4 did (docs/write-schema-rules.md)."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType, _parse_datatype_string

from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark, to_spark
from alluvium.spark.values.columns import Assignment, align

pytestmark = pytest.mark.spark
EXACT, CAST = Assignment.EXACT, Assignment.CAST

SAME_FOR_BOTH = [
    ("a int, b int", "1 a", (1, None)),
    ("Abc int", "1 aBC", (1,)),
    ("a int, b string", "'x' b, 1 a", (1, "x")),
    ("a int, b int", "null a, 1 b", (None, 1)),
    ("a int", "tinyint(1) a", (1,)),
    ("s struct<x:int,y:int>", "named_struct('x',1) s", (Row(x=1, y=None),)),
    ("s struct<x:int,y:int>", "named_struct('y',2,'x',1) s", (Row(x=1, y=2),)),
    ("s struct<Xy:int>", "named_struct('xY',1) s", (Row(Xy=1),)),
    ("s struct<x:int,y:int>", "if(true,null,named_struct('y',1)) s", (None,)),
    ("a array<struct<x:int,y:int>>", "array(named_struct('y',2,'x',1), null) a", ([Row(x=1, y=2), None],)),
    ("a array<struct<x:int,y:int>>", "array(named_struct('x',1)) a", ([Row(x=1, y=None)],)),
    ("a array<array<struct<x:int,y:int>>>", "array(array(named_struct('y',1))) a", ([[Row(x=None, y=1)]],)),
    ("m map<string,struct<x:int,y:int>>", "map('a',named_struct('y',2,'x',1)) m", ({"a": Row(x=1, y=2)},)),
    ("`a.b` int, `c``d` int", "1 `a.b`, 2 `c``d`", (1, 2)),
    ("s struct<`p.q'r`:struct<z:int,w:int>>", "named_struct('p.q\\'r', named_struct('w',1)) s", None),
]
ONLY_CAST = [
    ("a bigint", "1 a", (1,)),
    ("a int", "1L a", (1,)),
    ("a int", "'1' a", (1,)),
    ("a string", "1 a", ("1",)),
    ("a float", "1.1D a", (1.100000023841858,)),
    ("a int", "1.7D a", (1,)),
    ("a decimal(12,4)", "cast(1.25 as decimal(5,2)) a", (Decimal("1.2500"),)),
    ("a decimal(5,1)", "cast(1.25 as decimal(5,2)) a", (Decimal("1.3"),)),
    ("a timestamp", "date'2024-01-02' a", (datetime.datetime(2024, 1, 2),)),
    ("a timestamp", "'2024-01-02 03:04:05' a", (datetime.datetime(2024, 1, 2, 3, 4, 5),)),
    ("a boolean", "1 a", (True,)),
    ("a string", "array(1) a", ("[1]",)),
    ("s struct<x:bigint>", "named_struct('x',1) s", (Row(x=1),)),
    ("s struct<x:bigint>", "if(true,null,named_struct('x',1)) s", (None,)),
    ("a array<bigint>", "array(1,2) a", ([1, 2],)),
    ("m map<string,int>", "map(1,1) m", ({"1": 1},)),
    ("m map<string,bigint>", "map('a',1) m", ({"a": 1},)),
]
REFUSED = [
    ("a int", "1 a, 2 b"),
    ("a int", "1 a, 2 A"),
    ("a date", "5 a"),
    ("a struct<x:int>", "1 a"),
    ("a map<string,int>", "named_struct('x',1) a"),
    ("s struct<x:int>", "named_struct('x',1,'y',2) s"),
    ("a array<struct<x:int>>", "array(named_struct('x',1,'y',2)) a"),
]


def schema_of(ddl: str) -> Struct:
    parsed = _parse_datatype_string(ddl)
    assert isinstance(parsed, StructType)
    return from_spark(parsed)


@pytest.mark.parametrize("assignment", [EXACT, CAST])
@pytest.mark.parametrize(("ddl", "data", "expected"), SAME_FOR_BOTH)
def test_fits(
    spark: SparkSession, ddl: str, data: str, expected: tuple[object, ...] | None, assignment: Assignment
) -> None:
    aligned = align(spark.sql(f"select {data}"), schema_of(ddl), assignment)
    assert aligned.schema.simpleString() == to_spark(schema_of(ddl)).simpleString()
    assert expected is None or tuple(aligned.first()) == expected
    assert aligned.count() == 1


@pytest.mark.parametrize(("ddl", "data", "expected"), ONLY_CAST)
def test_fits_by_cast_only(spark: SparkSession, ddl: str, data: str, expected: tuple[object, ...]) -> None:
    df = spark.sql(f"select {data}")
    assert tuple(align(df, schema_of(ddl), CAST).first()) == expected
    with pytest.raises(InvalidRequest) as raised:
        align(df, schema_of(ddl), EXACT)
    assert raised.value.code == "schema-mismatch"


@pytest.mark.parametrize("assignment", [EXACT, CAST])
@pytest.mark.parametrize(("ddl", "data"), REFUSED)
def test_refused(spark: SparkSession, ddl: str, data: str, assignment: Assignment) -> None:
    with pytest.raises(InvalidRequest) as raised:
        align(spark.sql(f"select {data}"), schema_of(ddl), assignment)
    assert raised.value.code == "schema-mismatch"


def test_overflow_is_an_error_whatever_the_session_says(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        aligned = align(spark.range(1).selectExpr("id + 5000000000 as a"), schema_of("a int"), CAST)
        assert aligned.sparkSession is spark
        with pytest.raises(Exception, match="CAST_OVERFLOW"):
            aligned.collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_the_message_shows_only_what_differs(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest) as raised:
        align(spark.sql("select 1 same, 'x' n, 2 extra"), schema_of("same int, n int"), EXACT)
    assert [line for line in str(raised.value).splitlines() if line[:1] in "+-"] == [
        "--- table", "+++ data", "-n: int", "+extra: int", "+n: string",
    ]  # fmt: skip
    assert "same" not in str(raised.value)


def test_equal_columns_are_passed_on(spark: SparkSession) -> None:
    df = spark.sql("select 1 a, 'x' b")
    assert align(df, schema_of("a int, b string")) is df


def test_missing_columns_may_be_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest):
        align(spark.sql("select 1 a"), schema_of("a int, b int"), CAST, fill_missing=False)
