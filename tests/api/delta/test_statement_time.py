"""One statement has one time, however many jobs it takes: rows whose turn comes between two of them are neither lost nor
twice there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}
FEED = {"delta.enableChangeDataFeed": "true"}
ALL = list(range(-2000, 60_000))


def due(spark) -> DataFrame:
    """Rows one of which is due each millisecond, from a while ago to long after."""
    begin = spark.sql("select unix_micros(current_timestamp())").collect()[0][0]
    rows = spark.range(-2000, 60_000)
    return rows.selectExpr("id", f"timestamp_micros({begin} + id * 1000) as ts", "0 as n").coalesce(1)


def ids(path: str) -> list[int]:
    return sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist())


def told(spark, path: str) -> dict[str, tuple[int, ...]]:
    """What the feed tells of the second version: least and greatest id, and how many."""
    feed = alluvium.changes(spark, path, 1).groupBy("_change_type").agg(sf.min("id"), sf.max("id"), sf.count("id"))
    return {r[0]: tuple(r)[1:] for r in feed.collect()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["function", "text", "view", "cached"])
def test_what_is_due_is_replaced_by_itself(spark, tmp_path: Path, mode: str, how: str) -> None:
    path, rows = str(tmp_path / "t"), due(spark)
    alluvium.write(rows, path, **MODES[mode], **FEED)
    fresh = rows.where(sf.col("ts") < sf.current_timestamp() if how == "function" else "ts < now()")
    if how == "view":
        fresh.createOrReplaceTempView("due_rows")
        fresh = spark.sql("select * from due_rows where id in (select id from due_rows)")
    if how == "cached":
        # They are those that were due when they were kept, and lie in what is replaced.
        fresh = fresh.cache()
        kept = fresh.count()
    alluvium.write(fresh, path, mode="overwrite", replaceWhere="ts < current_timestamp()")
    found = told(spark, path)
    if how == "cached":
        assert found["insert"] == (-2000, kept - 2001, kept) and found["delete"][2] >= kept
        fresh.unpersist()
    else:
        assert ids(path) == ALL and found["delete"] == found["insert"]
    assert len(ids(path)) == len(ALL) - found["delete"][2] + found["insert"][2] == len(set(ids(path)))


NOW = ["current_timestamp()", "timestamp 'NOW '", "cast('now' as timestamp)", "'now'"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("now", NOW)
def test_verbs_that_read_a_time_several_times(spark, tmp_path: Path, mode: str, now: str) -> None:
    """What the feed says of a row is what became of it, and of a source no row is lost."""
    rows, where = due(spark), f"ts < {now}"
    for verb in ("update", "delete", "merge"):
        path = str(tmp_path / verb)
        alluvium.write(rows, path, **MODES[mode], **FEED)
        table = DeltaTable.forPath(spark, path)
        if verb == "update":
            table.update(where, {"n": "n + 1"})
        elif verb == "delete":
            table.delete(where)
        else:
            merge = table.alias("t").merge(rows.alias("s"), f"t.id = s.id and t.{where}")
            merge.whenMatchedUpdate(set={"n": "t.n + 1"}).whenNotMatchedInsert(
                values={"id": "s.id + 1000000", "ts": "s.ts", "n": "2"}
            ).execute()
        found = told(spark, path)
        after = dict(zip(*alluvium.open(path).to_arrow(["id", "n"]).to_pydict().values(), strict=True))
        changed = found["delete"] if verb == "delete" else found["update_postimage"]
        begin, end, count = changed
        assert (begin, count) == (-2000, end + 2001) and count > 2000
        assert all(after.get(n) == (None if verb == "delete" else 1) for n in range(begin, end + 1))
        assert all(after[n] == 0 for n in range(end + 1, 60_000))
        if verb == "merge":
            assert sorted(n - 1_000_000 for n, m in after.items() if m == 2) == list(range(end + 1, 60_000))


@pytest.mark.parametrize("format", ["delta", "paimon"])
@pytest.mark.parametrize("where", ["d = current_date()", "d = current_date", "d = date'today'", "d < date 'tomorrow'",
                                   "d = cast(now() as date)", "date_sub(d, 1) = date'yesterday'"])  # fmt: skip
def test_partitions_of_today(spark, tmp_path: Path, format: str, where: str) -> None:
    path = str(tmp_path / "t")
    days = spark.sql("select id, date_add(current_date(), cast(id as int)) as d from range(3)")
    alluvium.write(days, path, partition_by="d", format=format)
    fresh = spark.sql("select 9L id, current_date() as d")
    if format == "paimon" and "date_sub" in where:
        pytest.skip("an expression that partition values do not decide")
    alluvium.write(fresh, path, mode="overwrite", replaceWhere=where, format=format)
    assert sorted(r[0] for r in alluvium.read(spark, path).select("id").collect()) == [1, 2, 9]


def test_rows_and_defaults_have_the_time_of_the_condition(spark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("id", "BIGINT").addColumn("at", "TIMESTAMP")
    builder.addColumn("day", "DATE", generatedAlwaysAs="cast(at as date)").execute()
    for _ in range(2):
        fresh = spark.range(3).withColumn("at", sf.current_timestamp())
        alluvium.write(fresh, path, mode="overwrite", replaceWhere="at <= current_timestamp()")
        assert ids(path) == [0, 1, 2]
    assert alluvium.open(path).history()[0]["operationParameters"]["predicate"] == "at <= current_timestamp()"


@pytest.mark.parametrize("where", ["ts < 'now'", "ts < cast(concat('n', 'ow') as timestamp)", "ts < timestamp('today')",
                                   "ts < timestamp'today Europe/Paris'", r"s rlike r'\d' and ts < now()"])  # fmt: skip
def test_a_time_that_cannot_be_held(spark, tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select timestamp'2020-01-01' ts, 'a' s"), path)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select timestamp'2020-01-01' ts, 'b' s"), path, mode="overwrite", replaceWhere=where)
    assert caught.value.code == "invalid-expression" and "current_timestamp()" in caught.value.hint
    assert alluvium.open(path).version == 0


def test_words_that_are_no_times(spark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 'now' s, 1 current_date union all select 'then', 2").coalesce(1), path)
    fresh = spark.sql("select 'now' s, 1 current_date")
    alluvium.write(fresh, path, mode="overwrite", replaceWhere="s = 'now' and current_date = 1")
    assert sorted(alluvium.open(path).to_arrow(["s"])["s"].to_pylist()) == ["now", "then"]


@pytest.mark.parametrize("format", ["delta", "paimon"])
@pytest.mark.parametrize("where", ["id > rand() * 5", "id = monotonically_increasing_id()", "uuid() > 'a' or id = 1",
                                   "id = uniform(0, 9)", "input_file_name() like '%a%' and id > 1",
                                   "randstr(3) > 'a'", "spark_partition_id() = 0"])  # fmt: skip
def test_what_differs_each_time_is_refused(spark, tmp_path: Path, format: str, where: str) -> None:
    path = str(tmp_path / "t")
    alluvium.write(spark.range(9).selectExpr("id", "1 as n"), path, partition_by="id", format=format)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 0L id, 1 n"), path, mode="overwrite", replaceWhere=where, format=format)
    assert caught.value.code == "invalid-expression"
    assert len(alluvium.read(spark, path).collect()) == 9
