"""Cached tables and temporary views of tables of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark, tmp_path_factory) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    spark.sql(f"create database kept location '{tmp_path_factory.mktemp('kept')}'")
    spark.sql("use kept")
    spark.sql("create table t using delta as select 1 id")
    yield spark
    spark.sql("use default")
    spark.sql("drop database kept cascade")
    alluvium.disable(spark)


def cached(spark: SparkSession) -> int:
    """How many plans have rows in Spark's cache."""
    manager = spark._jsparkSession.sharedState().cacheManager()
    field = manager.getClass().getDeclaredField("cachedData")
    field.setAccessible(True)
    return field.get(manager).size()


def test_a_cached_table_stays_cached_when_it_changes(session):
    before = cached(session)
    session.sql("cache table t options ('storageLevel' 'MEMORY_ONLY')")
    session.sql("insert into t values (2)")
    assert session.catalog.isCached("t")
    assert session.table("t").storageLevel.useDisk is False
    session.sql("update t set id = 3 where id = 2")
    assert sorted(r.id for r in session.table("t").collect()) == [1, 3]
    assert cached(session) == before + 1
    session.sql("uncache table t")
    session.sql("delete from t where id = 3")
    assert not session.catalog.isCached("t")
    assert cached(session) == before


def test_by_the_catalogs_method_as_well(session):
    session.catalog.cacheTable("kept.t")
    session.sql("insert into t values (4)")
    assert session.catalog.isCached("t")
    assert session.sql("select * from t version as of 0").storageLevel.useMemory is False
    session.catalog.clearCache()
    session.sql("insert into t values (5)")
    assert not session.catalog.isCached("t")


def test_a_frame_that_was_cached_is_its_owners(session):
    frame = session.table("t").cache()
    try:
        session.sql("insert into t values (6)")
        assert frame.storageLevel.useMemory
        assert not session.catalog.isCached("t")
    finally:
        frame.unpersist()


def test_temporary_views_by_path(session, tmp_path):
    session.range(2).write.format("delta").save(str(tmp_path))
    session.sql(f"create temporary view by_path using delta options (path '{tmp_path}')")
    session.range(2, 5).write.format("delta").mode("append").save(str(tmp_path))
    assert session.table("by_path").count() == 5
    session.sql(f"create or replace temp view by_path using delta options (path '{tmp_path}', versionAsOf 0)")
    assert session.table("by_path").count() == 2
    session.sql(f"create global temporary view by_path using delta options (path '{tmp_path}')")
    assert session.table("global_temp.by_path").count() == 5
    with pytest.raises(InvalidRequest) as info:
        session.sql("create temp view none using delta")
    assert info.value.code == "no-path"
    for view in ("by_path", "global_temp.by_path"):
        session.sql(f"drop view {view}")


def test_rows_change_through_a_global_view_that_shows_all(session):
    session.sql("create or replace table g using delta as select id, 'a' v from range(4)")
    session.sql("create global temporary view all_of_g as select * from g")
    assert session.sql("update global_temp.all_of_g set v = 'b' where id = 1").collect() == [(1,)]
    assert session.sql("delete from global_temp.all_of_g where id > 1").collect() == [(2,)]
    source = "(select 0L id) s on x.id = s.id"
    session.sql(f"merge into global_temp.all_of_g x using {source} when matched then update set v = 'c'")
    assert sorted(map(tuple, session.table("g").collect())) == [(0, "c"), (1, "b")]
    session.sql("create or replace global temporary view all_of_g as select * from g where id > 0")
    with pytest.raises(InvalidRequest) as info:
        session.sql("delete from global_temp.all_of_g")
    assert info.value.code == "changed-view"
    session.sql("drop view global_temp.all_of_g")


@pytest.mark.parametrize(
    "text", ["update shown set id = 1", "delete from shown", "optimize shown", "describe history shown"]
)
def test_what_is_said_of_a_view_of_the_catalog_is_refused(session, text):
    session.sql("create or replace view shown as select * from t")
    with pytest.raises(InvalidRequest) as info:
        session.sql(text)
    assert info.value.code in ("changed-view", "expects-table")


def test_what_only_delta_knows_is_not_said_of_other_tables(session):
    session.sql("create table if not exists pq using parquet as select 1 a")
    for text in ("optimize pq", "vacuum pq", "describe history pq", "restore table pq to version as of 0"):
        with pytest.raises(InvalidRequest) as info:
            session.sql(text)
        assert (info.value.code, info.value.getCondition()) == ("not-delta", "DELTA_ONLY_OPERATION")
    assert session.sql("describe detail pq").head()["format"] == "parquet"


def test_errors_of_the_catalog_come_through_as_themselves(session):
    session.sql("create table if not exists pq using parquet as select 1 a")
    with pytest.raises(Exception) as info:  # which class is what is asked
        session.sql("select * from pq version as of 1")
    assert info.value.getCondition() == "UNSUPPORTED_FEATURE.TIME_TRAVEL"


@pytest.mark.parametrize("kind", ["temporary", "global temporary"])
def test_rows_are_inserted_by_a_view_of_a_path(session, tmp_path, kind):
    """As in delta-spark: the view stands for the table. One of a query, be it of the same path, is only read."""
    spark, path = session, str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 id, 'a' s"), path)
    name = "into_path" if kind == "temporary" else "global_temp.into_path"
    spark.sql(f"create {kind} view into_path using delta options (path '{path}')")
    spark.sql(f"insert into {name} values (2, 'b')")
    spark.sql(f"insert into {name} (s) values ('c')")
    assert sorted(map(tuple, spark.table(name).collect()), key=str) == [(1, "a"), (2, "b"), (None, "c")]
    spark.sql(f"insert overwrite {name} values (3, 'd')")
    spark.sql("select 4 id, 'e' s").write.insertInto(name)
    assert sorted(map(tuple, spark.read.format("delta").load(path).collect())) == [(3, "d"), (4, "e")]
    spark.sql(f"create or replace {kind} view into_path as select * from delta.`{path}`")
    with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
        spark.sql(f"insert into {name} values (5, 'f')")
    spark.sql(f"drop view {name}")
    assert spark.read.format("delta").load(path).count() == 2
