"""Spark's writer under our settings, with checks inside the job."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.write import Check, Derived, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.write import write_files

pytestmark = pytest.mark.spark


@pytest.fixture
def plan(tmp_path: Path) -> Callable[[DataFrame], WritePlan]:
    return lambda df: WritePlan(f"file:{tmp_path}", "job 1", from_spark(df.schema))


def parquet(plan: WritePlan) -> list[Path]:
    return sorted(Path(plan.root[5:], plan.directory).rglob("*.parquet"))


def test_settings_are_private_and_timestamps_are_micros(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    before = dict(spark.conf.getAll)
    df = spark.range(3).withColumn("ts", sf.expr("timestamp'2024-01-02 03:04:05.123456'"))
    write_files(spark, df, p := replace(plan(df), options=(("compression", "zstd"),)))
    files = parquet(p)
    meta = pq.ParquetFile(files[0]).metadata
    assert meta.schema.column(1).physical_type == "INT64"
    assert meta.row_group(0).column(0).compression == "ZSTD"
    assert dict(spark.conf.getAll) == before
    assert sorted(f.name for f in files[0].parent.iterdir() if f.suffix not in (".parquet", ".crc")) == []


def test_partition_directories_are_in_utc_and_expressions_are_not(
    spark: SparkSession, plan: Callable[..., WritePlan]
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        moment = "timestamp'2024-01-02 09:00:00'"
        df = spark.range(1).selectExpr("id", f"{moment} as ts", f"hour({moment}) as h")
        write_files(spark, df, p := replace(plan(df), partition_by=("ts",)))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    (file,) = parquet(p)
    assert file.parent.name == "ts=2024-01-02 00%3A00%3A00"
    assert pq.ParquetFile(file).read().to_pylist() == [{"id": 0, "h": 9}]


def test_field_ids_reach_the_files(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    df = spark.range(1).selectExpr("id", "struct(id as x) as s", "array(struct(id as y)) as a")
    inner = Struct((Field("x", t.LONG, True, {"parquet.field.id": 8}),))
    element = Struct((Field("y", t.LONG, True, {"parquet.field.id": 10}),))
    schema = Struct(
        (
            Field("id", t.LONG, True, {"parquet.field.id": 7}),
            Field("s", inner, True, {"parquet.field.id": 9}),
            Field("a", t.Array(element), True, {"parquet.field.id": 11}),
        )
    )
    write_files(spark, df, p := replace(plan(df), schema=schema))
    text = str(pq.ParquetFile(parquet(p)[0]).metadata.schema)
    assert all(f"field_id={n} " in text for n in (7, 8, 9, 10, 11))


def test_checks_pass_or_name_the_row(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    check = Check("positive 'id'", "id >= 0 and s != 'it''s'", ("id", "s"))
    df = spark.range(100).selectExpr("id", "concat('n', id) as s")
    write_files(spark, df, p := replace(plan(df), checks=(check, Check("known", "id is not null", ("id",)))))
    assert sum(pq.ParquetFile(f).metadata.num_rows for f in parquet(p)) == 100
    for bad, shown in (("-5", "id = -5, s = n7"), ("null", "id = null, s = n7")):
        rows = df.selectExpr(f"if(id = 7, {bad}, id) as id", "s")
        with pytest.raises(InvalidRequest) as raised:
            write_files(spark, rows, replace(p, directory=f"job {bad}"))
        assert raised.value.code == "constraint-violated"
        assert "positive 'id'" in str(raised.value)
        assert shown in str(raised.value)
        assert parquet(replace(p, directory=f"job {bad}")) == []


def test_checks_see_only_rows_that_are_written(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    left = spark.range(10).withColumnRenamed("id", "k")
    right = spark.range(5).withColumnRenamed("id", "k")
    df = left.join(right, "k").orderBy("k").limit(3)
    write_files(spark, df, p := replace(plan(df), checks=(Check("low", "k < 3", ("k",)),)))
    assert sum(pq.ParquetFile(f).metadata.num_rows for f in parquet(p)) == 3


def test_checks_of_constants_are_not_folded_away(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    df = spark.range(1).selectExpr("id", "cast(null as int) as n")
    with pytest.raises(InvalidRequest, match="n = null"):
        write_files(spark, df, replace(plan(df), checks=(Check("n", "n is not null", ("n",)),)))


def test_errors_of_the_data_are_ours(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    df = spark.range(3).selectExpr("cast(concat('x', id) as int) as n")
    with pytest.raises(InvalidRequest) as raised:
        write_files(spark, df, plan(df))
    assert raised.value.code == "invalid-data"
    with pytest.raises(InvalidRequest):
        write_files(spark, df, replace(plan(df), checks=(Check("c", "missing > 1"),)))
    with pytest.raises(InvalidRequest):
        write_files(spark, df, replace(plan(df), partition_by=("n",), directory="only"))
    with pytest.raises(UnsupportedFeature):
        write_files(spark, df, replace(plan(df), derived=(Derived("n", "1"),)))


def test_old_dates_are_not_rebased(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    df = spark.range(1).selectExpr("date'1500-02-03' as d")
    write_files(spark, df, p := plan(df))
    rows = [row for file in parquet(p) for row in pq.ParquetFile(file).read().to_pylist()]
    assert rows == [{"d": datetime.date(1500, 2, 3)}]


def test_existing_directories_are_refused(spark: SparkSession, plan: Callable[..., WritePlan]) -> None:
    df = spark.range(1).toDF("n")
    write_files(spark, df, p := plan(df))
    with pytest.raises(InvalidRequest):
        write_files(spark, df, p)
