"""Frames that show the newest version of their table at each query, as delta-spark's do."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import CommitConflict, InvalidRequest, NotFound

pytestmark = [pytest.mark.spark]


@pytest.fixture
def enabled(spark: SparkSession) -> SparkSession:
    alluvium.enable(spark)
    return spark


def ids(df: DataFrame) -> list[int]:
    return sorted(row[0] for row in df.select("id").collect())


def made(spark: SparkSession, url: str, *, count: int = 3, **properties: str) -> DeltaTable:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    builder = DeltaTable.create(spark).location(url).addColumn("id", "long")
    for name, value in named.items():
        builder = builder.property(name, value)
    table = builder.execute()
    alluvium.write(spark.range(count).coalesce(1), url, mode="append")
    return table


def append(spark: SparkSession, url: str, *values: int) -> None:
    alluvium.write(spark.createDataFrame([(v,) for v in values], "id long").coalesce(1), url, mode="append")


def frames(spark: SparkSession, url: str) -> dict[str, DataFrame]:
    """Of each door that follows one, and of those that do not."""
    load = spark.read.format("delta").load(url)
    load.createOrReplaceTempView("followed_view")
    return {
        "load": load,
        "derived": load.where("id >= 0").select(sf.col("id")),
        "toDF": DeltaTable.forPath(spark, url).toDF(),
        "view": spark.table("followed_view"),
        "path": spark.table(f"delta.`{url}`"),
        "sql": spark.sql(f"select id from delta.`{url}` where id > -1"),
        "read": alluvium.read(spark, url, follow=True),
        "pinned read": alluvium.read(spark, url),
        "pinned load": spark.read.format("delta").option("follow", "false").load(url),
        "asked": spark.read.format("delta").option("versionAsOf", 1).load(url),
    }


def test_each_query_shows_the_newest_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url)
    known = frames(enabled, url)
    assert {name: ids(df) for name, df in known.items()} == {name: [0, 1, 2] for name in known}
    append(enabled, url, 10)
    table.delete("id = 1")
    stays = ("pinned read", "pinned load", "asked")
    expected = {name: [0, 1, 2] if name in stays else [0, 2, 10] for name in known}
    assert {name: sorted(r[0] for r in df.where("id >= 0").collect()) for name, df in known.items()} == expected
    assert known["load"].count() == 3 and known["load"].rdd.count() == 3
    assert known["load"].alias("a").join(known["toDF"].alias("b"), "id").count() == 3
    assert enabled.sql("select count(*) from followed_view where id in (select id from followed_view)").first()[0] == 3


def test_rows_deleted_by_vectors(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url, count=10, delta_enableDeletionVectors="true")
    df = enabled.read.format("delta").load(url)
    assert df.count() == 10
    table.delete("id % 2 = 0")
    assert (ids(df), df.count(), ids(df.where("id > 4"))) == ([1, 3, 5, 7, 9], 5, [5, 7, 9])
    append(enabled, url, 20)
    assert ids(df) == [1, 3, 5, 7, 9, 20]
    table.delete()
    assert ids(df.where("id > 0")) == [] and df.count() == 0
    append(enabled, url, 1)
    assert ids(df.where("id > 0")) == [1]


def test_vectors_that_nobody_expected(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url, count=10)
    df = enabled.read.format("delta").load(url)
    table.addFeatureSupport("deletionVectors")
    enabled.sql(f"alter table delta.`{url}` set tblproperties ('delta.enableDeletionVectors' = 'true')")
    assert df.count() == 10
    table.delete("id % 2 = 0")
    with pytest.raises(InvalidRequest, match="vectors") as caught:
        df.where("id > -1").count()
    assert caught.value.code == "table-changed"


def test_columns_that_come_and_go(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    builder = DeltaTable.create(enabled).location(url).addColumn("id", "long").addColumn("s", "struct<a:int>")
    table = builder.property("delta.columnMapping.mode", "name").addColumn("x", "string").execute()
    alluvium.write(enabled.sql("select 1L id, named_struct('a', 5) s, 'x' x"), url, mode="append")
    df = enabled.read.format("delta").load(url)
    table.addColumns({"more": "int", "s.b": "int"})
    alluvium.write(enabled.sql("select 2L id, named_struct('a', 6, 'b', 7) s, 'y' x, 3 more"), url, mode="append")
    assert sorted(map(tuple, df.selectExpr("id", "s.a", "to_json(s)", "x").collect())) == [
        (1, 5, '{"a":5}', "x"), (2, 6, '{"a":6}', "y"),
    ]  # fmt: skip
    table.dropColumns("x")
    for query in (df, df.where("id = 1"), df.select("id")):
        with pytest.raises(InvalidRequest, match="column x") as caught:
            query.collect()
        assert (caught.value.code, caught.value.column) == ("table-changed", "x")


def test_a_table_that_is_gone(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    df = enabled.read.format("delta").load(url)
    (tmp_path / "t").rename(tmp_path / "u")
    with pytest.raises(NotFound):
        df.count()


def test_statements_read_their_table_at_their_base(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url)
    df = enabled.read.format("delta").load(url)
    append(enabled, url, 10)
    # delta-spark plans the frame anew: so does this, where it used to be a conflict.
    alluvium.write(df.where("id < 2 or id = 10"), url, mode="overwrite")
    assert ids(df.where("id >= 0")) == [0, 1, 10]
    append(enabled, url, 11)
    source = df.selectExpr("id + 100 as id")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert ids(df.where("id > 0")) == [1, 10, 11, 100, 101, 110, 111]
    df.createOrReplaceTempView("all_rows")
    enabled.sql(f"delete from delta.`{url}` where id in (select id + 100 from all_rows)")
    assert ids(df.where("id >= 0")) == [0, 1, 10, 11]
    df.write.format("delta").mode("append").save(url)
    assert df.count() == 8


def test_cached_rows_are_those_of_a_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    df = enabled.read.format("delta").load(url)
    cached = df.where("id > 0").cache()
    try:
        assert cached.count() == 2
        append(enabled, url, 10)
        assert ids(cached.where("id >= 0")) == [1, 2]
        # Written back they would take away what came since.
        cached.createOrReplaceTempView("cached_rows")
        for rows in (cached, cached.union(df), df.where("id in (select id + 1 from cached_rows)")):
            with pytest.raises(CommitConflict):
                alluvium.write(rows, url, mode="overwrite")
    finally:
        cached.unpersist()
    alluvium.write(df.where("id > 0"), url, mode="overwrite")
    assert ids(df.where("id > -1")) == [1, 2, 10]


def test_a_query_sees_one_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    made(enabled, str(url))
    one, two = (enabled.read.format("delta").load(str(url)) for _ in range(2))
    both = one.selectExpr("1 as side").union(two.selectExpr("2 as side")).groupBy("side").count()
    with committing(url) as committed:
        seen = [dict(map(tuple, both.select("side", "count").collect())) for _ in range(15)]
        rounds = [one.union(two.where("id >= 0")).rdd.count() for _ in range(3)]
    assert [counts[1] for counts in seen] == [counts[2] for counts in seen]
    assert len({counts[1] for counts in seen}) > 5, "nothing was committed meanwhile"
    assert rounds == sorted(rounds)
    assert one.count() == 3 + committed[0] * 3


@contextmanager
def committing(url: Path) -> Iterator[list[int]]:
    """Meanwhile the table's first file is added again and again, under other names."""
    first = json.loads((url / "_delta_log" / f"{1:020}.json").read_text().splitlines()[-1])
    assert "add" in first
    done, stop = [0], threading.Event()

    def commit() -> None:
        while not stop.wait(0.02):
            add = {**first["add"], "path": f"again-{done[0]}.parquet"}
            shutil.copy(url / first["add"]["path"], url / add["path"])
            entry = url / "_delta_log" / f"{2 + done[0]:020}.json"
            entry.with_suffix(".tmp").write_text(json.dumps({"add": add}))
            entry.with_suffix(".tmp").rename(entry)
            done[0] += 1

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def test_a_table_made_anew_at_the_same_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    one, two = (enabled.read.format("delta").load(url) for _ in range(2))
    view = alluvium.open(url)
    assert (one.count(), two.count()) == (3, 3)
    (tmp_path / "t").rename(tmp_path / "old")
    made(enabled, url, count=7)
    # The version has the number that all know.
    assert view.refresh().count() == 7
    assert one.select("id").union(two.select("id")).count() == 14
    alluvium.write(two.where("id < 5"), url, mode="overwrite")
    assert ids(one) == ids(two) == [0, 1, 2, 3, 4]
