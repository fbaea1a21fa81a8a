"""One statement has one time over Connect, too, however many jobs it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = [pytest.mark.connect, pytest.mark.slow]

MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}
FEED = {"delta.enableChangeDataFeed": "true"}


def due(connect) -> DataFrame:
    """Rows one of which is due each millisecond, from a while ago to long after."""
    begin = connect.sql("select unix_micros(current_timestamp())").collect()[0][0]
    return connect.range(-2000, 60_000).selectExpr("id", f"timestamp_micros({begin} + id * 1000) as ts").coalesce(1)


def _by_function(rows: DataFrame) -> DataFrame:
    return rows.where(sf.col("ts") < sf.current_timestamp())


def _by_text(rows: DataFrame) -> DataFrame:
    return rows.where("ts < now()")


def _by_sql(rows: DataFrame) -> DataFrame:
    return rows.sparkSession.sql("select * from {due} where ts < current_timestamp()", due=rows)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows_of", [_by_function, _by_text, _by_sql])
def test_what_is_due_is_replaced_by_itself(connect, tmp_path: Path, mode: str, rows_of) -> None:
    path, rows = str(tmp_path / "t"), due(connect)
    alluvium.write(rows, path, **MODES[mode], **FEED)
    alluvium.write(rows_of(rows), path, mode="overwrite", replaceWhere="ts < current_timestamp()")
    found = alluvium.open(path).to_arrow(["id"])["id"].to_pylist()
    assert sorted(found) == list(range(-2000, 60_000))
    feed = alluvium.changes(connect, path, 1).groupBy("_change_type").agg(sf.min("id"), sf.max("id"), sf.count("id"))
    told = {r[0]: tuple(r)[1:] for r in feed.collect()}
    assert told["delete"] == told["insert"] and told["delete"][2] > 2000


@pytest.mark.parametrize(
    "where", ["d = current_date()", "d = current_date", "d = CurDate()", "d = date'today'", "d < date'tomorrow'",
              "d = cast(now() as date)", "date_sub(d, 1) = date'yesterday'"]
)  # fmt: skip
def test_partitions_of_today(connect, tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "t")
    days = connect.sql("select id, date_add(current_date(), cast(id as int)) as d from range(3)")
    alluvium.write(days, path, partition_by="d")
    fresh = connect.sql("select 9L id, current_date() as d")
    alluvium.write(fresh, path, mode="overwrite", replaceWhere=where)
    assert sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist()) == [1, 2, 9]


@pytest.mark.parametrize("where", ["ts < 'now'", "ts < cast('now' as timestamp)", "ts < timestamp('today')",
                                   "ts < timestamp'today Europe/Paris'", r"s rlike r'\d' and ts < now()"])  # fmt: skip
def test_a_time_that_cannot_be_held(connect, tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select timestamp'2020-01-01' ts, 'a' s"), path)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(
            connect.sql("select timestamp'2020-01-01' ts, 'b' s"), path, mode="overwrite", replaceWhere=where
        )
    assert caught.value.code == "invalid-expression" and "current_timestamp()" in caught.value.hint
    assert alluvium.open(path).version == 0


def test_words_that_are_no_times(connect, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select 'now' s, 1 current_date union all select 'then', 2").coalesce(1), path)
    fresh = connect.sql("select 'now' s, 1 current_date")
    alluvium.write(fresh, path, mode="overwrite", replaceWhere="s = 'now' and current_date = 1")
    assert sorted(alluvium.open(path).to_arrow(["s"])["s"].to_pylist()) == ["now", "then"]


@pytest.mark.parametrize("where", ["id > rand() * 5", "id = monotonically_increasing_id()", "uuid() > 'a' or id = 1",
                                   "id = uniform(0, 9)", "input_file_name() like '%a%' and id > 1",
                                   "randstr(3) > 'a'", "spark_partition_id() = 0"])  # fmt: skip
def test_what_differs_each_time_is_refused(connect, tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "t")
    alluvium.write(connect.range(9), path)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(1), path, mode="overwrite", replaceWhere=where)
    assert caught.value.code == "invalid-expression"
    assert alluvium.open(path).version == 0
