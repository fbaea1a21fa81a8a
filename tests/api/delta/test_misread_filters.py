"""Conditions that Catalyst prints as another one would print: each lost the rows of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark


def made(spark: SparkSession, path: Path, *rows: str) -> str:
    """A table of one file a row."""
    for row in rows:
        alluvium.write(spark.sql(f"select {row}").coalesce(1), str(path), mode="append")
    return str(path)


def ids(spark: SparkSession, url: str, condition: str = "true") -> list[int]:
    return sorted(row[0] for row in alluvium.read(spark, url).where(condition).select("id").collect())


def check(spark: SparkSession, url: str, condition: str, expected: list[int]) -> None:
    """A read finds the rows, and DELETE takes them and no others."""
    everything = ids(spark, url)
    assert ids(spark, url, condition) == expected, condition
    DeltaTable.forPath(spark, url).delete(condition)
    assert ids(spark, url) == sorted(set(everything) - set(expected)), condition


def test_a_struct_is_cast_by_position(spark: SparkSession, tmp_path: Path) -> None:
    # `s.a` is the second member under the name of the first.
    rows = ("1 id, named_struct('a', 1, 'b', 5) s", "2 id, named_struct('a', 5, 'b', 1) s")
    url = made(spark, tmp_path / "t", *rows)
    check(spark, url, "cast(s as struct<b: int, a: int>).a = 5", [1])


def test_a_product_is_rounded_by_types_that_are_not_printed(spark: SparkSession, tmp_path: Path) -> None:
    url = made(
        spark, tmp_path / "t", "1 id, cast('0.1234567891' as decimal(20,10)) d", "2 id, cast(7 as decimal(20,10)) d"
    )
    # 0.3703703673
    check(spark, url, "d * cast(3 as decimal(38,10)) = 0.370370", [1])


@pytest.mark.parametrize("name", ["and", "or", "not"])
def test_columns_called_as_operators(spark: SparkSession, tmp_path: Path, name: str) -> None:
    rows = (f"1 id, 1 `{name}`, int(null) `is`", f"2 id, int(null) `{name}`, 1 `is`")
    url = made(spark, tmp_path / "t", *rows)
    found = alluvium.read(spark, url).alias("t").where(f"t.`{name}` is not null").collect()
    assert [row["id"] for row in found] == [1]
    check(spark, url, f"`{name}` is not null", [1])


def test_a_variable_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    url = made(spark, tmp_path / "t", "1 id, 5 a, 7 b", "2 id, 6 a, 6 b")
    spark.sql("declare or replace variable b int default 5")
    try:
        check(spark, url, "a = session.b", [1])
    finally:
        spark.sql("drop temporary variable b")


@pytest.mark.parametrize("format", ["delta", "paimon"])
def test_workers_read_a_text_as_the_session_does(spark: SparkSession, tmp_path: Path, format: str) -> None:
    url = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 id, 'q' p union all select 2, 'x'"), url, format=format)
    key = "spark.sql.ansi.doubleQuotedIdentifiers"
    spark.conf.set(key, "true")
    try:
        found = alluvium.read(spark, url, lane="python", where="\"p\" = 'q'").collect()
        longer = alluvium.read(spark, url, lane="python", where='"id" > 1').collect()
    finally:
        spark.conf.unset(key)
    assert ([row["id"] for row in found], [row["id"] for row in longer]) == ([1], [2])


def test_a_local_time_of_long_ago(spark: SparkSession, tmp_path: Path) -> None:
    # Java's table of zones has summer time for Stockholm in 1943, and the one that Python reads may have none.
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    spark.conf.set(key, "Europe/Stockholm")
    try:
        times = [f"{n} id, timestamp'1943-07-0{n} 00:00:00' at, date'1943-07-0{n}' day" for n in (1, 2)]
        url = made(spark, tmp_path / "t", *times)
        check(spark, url, "at = timestamp'1943-07-01 00:00:00'", [1])
        check(spark, url, "at = cast(day as timestamp)", [2])
    finally:
        spark.conf.set(key, before)
