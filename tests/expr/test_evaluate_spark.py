"""`evaluate` gives what a real Spark session gives, row by row."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate
from alluvium.expr.tree import Unknown, walk
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Decimal, Field, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

D = decimal.Decimal
UTC = dt.timezone.utc
DDL = (
    "k int, i int, l bigint, d double, f float, s string, x binary, b boolean, day date, ts timestamp,"
    " tn timestamp_ntz, e decimal(9,2), n struct<i:int,s:string>"
)
SCHEMA = Struct(
    (
        Field("k", t.INTEGER),
        Field("i", t.INTEGER),
        Field("l", t.LONG),
        Field("d", t.DOUBLE),
        Field("f", t.FLOAT),
        Field("s", t.STRING),
        Field("x", t.BINARY),
        Field("b", t.BOOLEAN),
        Field("day", t.DATE),
        Field("ts", t.TIMESTAMP),
        Field("tn", t.TIMESTAMP_NTZ),
        Field("e", Decimal(9, 2)),
        Field("n", Struct((Field("i", t.INTEGER), Field("s", t.STRING)))),
    )
)
ROWS: list[tuple[object, ...]] = [
    (0, None, None, None, None, None, None, None, None, None, None, None, None),
    (1, 1, 1, math.nan, math.nan, "", b"", True, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC),
     dt.datetime(2024, 1, 1), D("1.50"), (1, "a")),
    (2, -7, 2**53 + 1, -0.0, -0.0, "a", b"a", False, dt.date(2018, 2, 18), dt.datetime(2018, 2, 18, 1, 30, tzinfo=UTC),
     dt.datetime(2018, 2, 18, 1, 30), D("-1.50"), (None, None)),
    (3, 7, -(2**63), 0.0, 0.1, "a%b", b"\xff", None, dt.date(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999,
     tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), D("0.00"), None),
    (4, 2**31 - 2, 2**63 - 1, math.inf, 1.5, "\ue000", b"ab", True, dt.date(9999, 12, 31),
     dt.datetime(2024, 11, 3, 5, 30, tzinfo=UTC), dt.datetime(2024, 11, 3, 5, 30), D("9999999.99"), (5, "ab")),
    (5, 2, 2, 1.5, 2.5, "😀", b"b", True, dt.date(2024, 2, 29), dt.datetime(2024, 3, 10, 7, 0, tzinfo=UTC),
     dt.datetime(2024, 3, 10, 2, 30), D("1.00"), (2, "")),
    (6, 5, 5, -2.5, -1.0, " a\nb ", b"\x00", False, dt.date(2020, 12, 31), dt.datetime(1900, 6, 1, tzinfo=UTC),
     dt.datetime(1900, 6, 1), D("2.25"), (1, "a_c")),
    (7, 10, 100, 3.0, 16777216.0, "Straße", b"abc", None, dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 4, 59, tzinfo=UTC),
     dt.datetime(2024, 1, 2, 4, 59), D("12.34"), (7, None)),
]  # fmt: skip

PREDICATES = [
    "i > 1", "i = 1.0", "i > 1.5", "i > 1.5D", "i = '1'", "i != 1", "i <=> NULL", "i <=> 1", "NOT (i <=> NULL)",
    "i = NULL", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i NOT IN (1, 2)", "i IN (1, 2.0)", "i BETWEEN 1 AND 5",
    "i NOT BETWEEN 1 AND 5", "i > 3000000000", "l = 9007199254740993", "l = 9007199254740992D", "l < 0",
    "l = -9223372036854775808", "i < l", "i = d", "d = double('NaN')", "d > 1", "d >= double('NaN')",
    "d < double('NaN')", "d != double('NaN')", "d = 0", "d = -0.0D", "d IN (double('NaN'), 0.0D)", "d = f", "f < d",
    "f = 0.1", "f = float('0.1')", "f > 0.1", "f IN (1.5, 2.5)", "f = 16777217", "isnan(d)", "NOT isnan(d)",
    "d <=> double('NaN')", "d BETWEEN 0 AND 2", "s = 'a'", "s > 'a'", "s < '😀'", "s >= '\ue000'", "s LIKE 'a%'",
    "s LIKE 'a\\\\%%'", "s LIKE '_'", "s LIKE '%a_b%'", "s NOT LIKE 'a%'", "s LIKE ''", "startswith(s, 'a')",
    "endswith(s, 'b')", "contains(s, 'a')", "length(s) = 1", "upper(s) = 'STRASSE'", "lower(s) = 'a%b'",
    "trim(s) = 'a\nb'", "substring(s, 2, 2) = '%b'", "substring(s, -2) = 'ße'", "substring(s, 0, 1) = 'a'",
    "substring(s, -3, 2) = 'a%'", "substring(s, -5, 4) = 'a'", "s || 'x' = 'ax'", "concat(s, n.s) = 'a%bab'",
    "s = repeat('a', 1)", "repeat(s, 2) = 'abab'", "repeat(s, -1) = ''", "repeat(s, null) is null",
    "coalesce(s, 'none') = 'none'", "nullif(i, 1) IS NULL", "x = X'61'", "x > X'61'", "x < X'FF'", "b", "NOT b",
    "b IS NULL", "b IS NOT TRUE", "b IS FALSE", "b = (i > 1)", "b AND NULL", "b OR NULL", "NULL OR b",
    "day = '2024-01-01'", "day > DATE'2020-01-01'", "day >= TIMESTAMP'2024-01-01 00:00:00'", "day IN ('2024-1-1', '2024-02-29')",
    "day = ts", "day < tn", "ts > '2024-01-01'", "ts = '2024-03-10 02:30:00'", "ts >= DATE'2024-01-01'",
    "ts = TIMESTAMP'2024-11-03 01:30:00'", "ts < '2018-02-18T01:30:00.000001Z'", "ts = tn", "CAST(ts AS DATE) = '2024-01-01'",
    "to_date(ts) = '2018-02-17'", "tn = TIMESTAMP_NTZ'2024-01-01'", "tn > '2018-02-18 01:30'", "CAST(tn AS DATE) = day",
    "year(day) = 2024", "year(ts) = 2023", "month(day) = 2", "day(day) = 29", "quarter(day) = 4", "hour(ts) = 20",
    "hour(tn) = 5", "minute(ts) = 30", "second(ts) = 59", "date_add(k_day, 1) = '2024-01-02'", "date_sub(day2, 1) = '2017-02-17'",
    "datediff(day, DATE'2024-01-01') = 59", "date_trunc('MONTH', ts) = '2024-01-01'", "date_trunc('DAY', ts) = '2024-11-03'",
    "trunc(day, 'MM') = '2024-01-01'", "trunc(ts, 'QUARTER') = '2024-10-01'", "trunc(day, 'week') < day",
    "date_format(ts, 'yyyy-MM') = '2024-11'", "date_format(ts, 'yyyy-MM-dd-HH') >= '2024-03-10-03'",
    "date_format(day, 'yyyyMMdd') = '20240301'", "left(s, 2) = 'a%'", "substring(s, 1, 2) >= 'b'",
    "date_trunc('MONTH', day) = '2024-01-01'",
    "e = 1.5", "e > 1", "e > 1.234", "e = '1.5'", "e = 1.5D", "e IN (1.5, 2.25)", "e * 2 = 3", "e + 1.005 > 2.5", "-e = 1.5",
    "e > i", "i + 1 = 2", "i - 1 > l", "l % 50 = 1", "i % 3 = -1", "i % -1 = 0", "i / 2 = 3.5", "i div 2 = -3", "d % 2 = -0.5",
    "-i = 7", "abs(i) = 7", "abs(d) < 100 AND floor(d) = -3", "abs(d) < 100 AND ceil(d) = 2", "round(f) = 3", "round(d, 1) = -2.5", "round(d) = -3",
    "i <> 0 AND 10 / i > 1", "CASE WHEN i = 1 THEN b WHEN i = 2 THEN NOT b ELSE d > 1 END", "if(i > 1, d, l) > 2",
    "CASE i WHEN 1 THEN true END", "n.i = 1", "n.i IS NULL", "n IS NULL", "n.s LIKE 'a_c'", "N.S = 'a'", "(i = 1) IS NULL",
    "(i = 1) = b", "true", "CAST(i AS STRING) = '7'", "CAST(l AS STRING) > '5'", "CAST(d AS FLOAT) = f", "CAST(i AS DECIMAL(12,1)) = e",
    "CAST(b AS INT) = 1", "CAST(day AS STRING) = '0001-01-01'", "CAST(e AS DOUBLE) = 2.25D", "equal_null(i, 1)",
]  # fmt: skip
# Dates near the ends of the calendar would overflow in Python, not in Spark: two columns without them.
PREDICATES = [p.replace("k_day", "CAST(ts AS DATE)").replace("day2", "CAST(tn AS DATE)") for p in PREDICATES]

# Catalyst prints local times without their offset, and these occur twice.
AMBIGUOUS = (
    ("America/New_York", "ts = TIMESTAMP'2024-11-03 01:30:00'"),
    ("America/Sao_Paulo", "ts < '2018-02-18T01:30:00.000001Z'"),
)


#: Of the third zone midnight is missing once a year.
ZONES = ["UTC", "America/New_York", "America/Sao_Paulo"][: 3 if os.environ.get("ALLUVIUM_ZONES") == "all" else 2]


@pytest.fixture(scope="module", params=ZONES)
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", before))
    return str(request.param)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    names = SCHEMA.names
    members = [None if r[-1] is None else dict(zip(("i", "s"), r[-1], strict=True)) for r in ROWS]
    dicts = [{**dict(zip(names, r, strict=True)), "n": m} for r, m in zip(ROWS, members, strict=True)]
    return pa.Table.from_pylist(dicts, schema_to_arrow(SCHEMA))


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    # Arrow's statistics leave NaN out, and Spark's own row group filter would lose the rows with it.
    pq.write_table(rows, path, write_statistics=False)
    return spark.read.schema(DDL).parquet(path)


def test_values_are_spark_values(spark: SparkSession, frame: DataFrame, rows: pa.Table, zone: str) -> None:
    columns = [f"({p}) AS c{n}" for n, p in enumerate(PREDICATES)]
    expected = {r["k"]: r for r in frame.selectExpr("k", *columns).collect()}
    wrong = []
    for n, text in enumerate(PREDICATES):
        ours = evaluate(parse_predicate(text, SCHEMA, zone), rows, zone).to_pylist()
        theirs = [expected[k][f"c{n}"] for k in rows.column("k").to_pylist()]
        if ours != theirs:
            wrong.append(f"{text}: ours {ours}, Spark's {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", PREDICATES)
def test_catalyst_text_means_the_same(frame: DataFrame, rows: pa.Table, zone: str, text: str) -> None:
    plan = frame.alias("a").where(text)._jdf.queryExecution().optimizedPlan()
    while plan.getClass().getSimpleName() != "Filter":
        if plan.children().isEmpty():
            pytest.skip("Spark has optimised the filter away")
        plan = plan.children().apply(0)
    parsed = parse_engine_filter(plan.condition().sql(), SCHEMA, zone)
    if any(isinstance(node, Unknown) for node in walk(parsed)):
        assert (zone, text) in AMBIGUOUS, plan.condition().sql()
        return
    ours = evaluate(parsed, rows, zone).to_pylist()
    theirs = {r["k"] for r in frame.where(text).collect()}
    assert {k for k, value in zip(rows.column("k").to_pylist(), ours, strict=True) if value} == theirs
