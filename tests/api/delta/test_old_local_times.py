"""Conditions over the local times of old rows, in zones of which tables say different things: Spark's is the one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark

#: Around midnight by the clocks of 1930 that the city had, and by those that Java has for it.
OLD = [
    f"1930-01-{day} {time}Z" for day, time in ((15, "22:45:00"), (15, "23:30:00"), (15, "23:45:00"), (16, "00:15:00"))
]
ROWS = [*OLD, "1978-11-20 20:15:00Z", "2020-01-01 00:00:00Z"]
CONDITIONS = [
    "cast(ts as date) = '1930-01-15'", "cast(ts as date) <> '1930-01-15'", "cast(ts as date) > '1930-01-15'",
    "to_date(ts) <= '1930-01-15'", "date_trunc('day', ts) = '1930-01-16'", "hour(ts) = 0",
    "date_format(ts, 'yyyy-MM-dd') = '1930-01-16'", "cast(ts as timestamp_ntz) < '1930-01-16 00:00:00'",
]  # fmt: skip


@pytest.fixture(scope="module", params=["plain", "partitioned"])
def url(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("old") / "t")
    for number, time in enumerate(ROWS):
        rows = spark.sql(f"select {number} k, timestamp'{time}' ts")
        alluvium.write(rows, url, mode="append", partition_by=["ts"] if request.param == "partitioned" else [])
    return url


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Asia/Tehran"])
def test_rows_that_stay(spark: SparkSession, url: str, tmp_path: Path, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", str(zone))
    try:
        # Spark's own rows, which no file is left out of.
        rows = spark.createDataFrame(alluvium.read(spark, url).collect(), "k int, ts timestamp")
        for number, condition in enumerate(CONDITIONS):
            stay = sorted(row.k for row in rows.where(f"not coalesce({condition}, false)").collect())
            copy = shutil.copytree(url, tmp_path / f"{number}")
            DeltaTable.forPath(spark, str(copy)).delete(condition)
            assert sorted(row.k for row in alluvium.read(spark, str(copy)).collect()) == stay, condition
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
