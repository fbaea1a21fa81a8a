"""Plans of tables by name that have not changed are given to Spark again; what has changed is seen at once."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import alluvium
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions import catalog_relations
from alluvium.spark.sessions.session import session_catalog

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkSession):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def url(session: SparkSession, tmp_path: Path) -> str:
    """A table of which one version is old enough to be known by its time."""
    path = str(tmp_path / "t")
    alluvium.write(session.range(3), path)
    return path


def relation(frame: DataFrame) -> int:
    """Which object of the JVM the rows of a query come from."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return int(java_of(frame.sparkSession).jvm.java.lang.System.identityHashCode(leaves.apply(0)))


def settled(session: SparkSession, query: str) -> DataFrame:
    """A query, asked for when its table's log is known: of files that were written just now nobody keeps anything."""
    for _ in range(100):
        first = relation(session.sql(query))
        frame = session.sql(query)
        if relation(frame) == first:
            return frame
        threading.Event().wait(0.05)
    raise AssertionError("no plan is ever given again")


def count(session: SparkSession, query: str) -> int:
    return session.sql(query).count()


@pytest.mark.parametrize("query", ["select * from delta.`{}`", "select * from delta.`{}` version as of 0"])
def test_what_has_not_changed_is_the_same_relation(session: SparkSession, url: str, query: str):
    frame = settled(session, query.format(url))
    assert relation(frame) == relation(session.sql(query.format(url)))
    assert frame.count() == 3


def test_a_new_version_is_seen(session: SparkSession, url: str):
    query = f"select * from delta.`{url}`"
    before = settled(session, query)
    alluvium.write(session.range(4), url, mode="append")
    assert (count(session, query), before.count()) == (7, 7)
    session.sql(f"delete from delta.`{url}` where id = 0")
    assert (count(session, query), count(session, f"{query} version as of 0")) == (5, 3)


def test_another_table_of_the_same_path_is_seen(session: SparkSession, url: str):
    query = f"select * from delta.`{url}`"
    settled(session, query)
    shutil.rmtree(url)
    alluvium.write(session.range(9).selectExpr("id as other"), url)
    assert session.sql(query).columns == ["other"]
    assert count(session, query) == 9


@pytest.mark.parametrize("how", ["cleared", "refreshed", "old"])
def test_what_spark_has_forgotten_is_planned_anew(session: SparkSession, url: str, how: str, monkeypatch):
    query = f"select * from delta.`{url}`"
    settled(session, query)
    if how == "cleared":
        session_catalog(session).invalidateAllCachedTables()
    elif how == "refreshed":
        session.sql(f"refresh table delta.`{url}`")
    else:
        # Another statement has all that is older dropped.
        monkeypatch.setattr(catalog_relations, "_KEPT_SECONDS", 0.0)
        session.sql(f"{query} version as of 0")
    assert count(session, query) == 3


def test_the_catalog_s_entry_is_the_newest(session: SparkSession, url: str, tmp_path: Path):
    session.sql(f"create table kept_entry using delta location '{url}'")
    try:
        settled(session, "select * from kept_entry")
        other = str(tmp_path / "other")
        alluvium.write(session.range(8), other)
        session.sql("drop table kept_entry")
        session.sql(f"create table kept_entry using delta location '{other}'")
        assert count(session, "select * from kept_entry") == 8
        session.sql(f"alter table kept_entry set location '{url}'")
        assert count(session, "select * from kept_entry") == 3
    finally:
        session.sql("drop table kept_entry")


def test_a_plan_that_settings_went_into_is_made_anew(session: SparkSession, url: str):
    session.sql(f"alter table delta.`{url}` set tblproperties ('delta.enableTypeWidening' = 'true')")
    session.sql(f"alter table delta.`{url}` set tblproperties ('delta.columnMapping.mode' = 'name')")
    query = f"select * from delta.`{url}`"
    session.sql(f"alter table delta.`{url}` rename column id to renamed")
    threading.Event().wait(0.2)
    assert relation(session.sql(query)) != relation(session.sql(query))
    assert count(session, query) == 3


def test_one_name_twice_in_a_statement(session: SparkSession, url: str):
    settled(session, f"select * from delta.`{url}`")
    joined = f"select a.id, b.id from delta.`{url}` a join delta.`{url}` b on a.id + 1 = b.id"
    assert sorted(map(tuple, session.sql(joined).collect())) == [(0, 1), (1, 2)]
    assert sorted(map(tuple, session.sql(joined).collect())) == [(0, 1), (1, 2)]
    union = f"select id from delta.`{url}` union all select id + 10 from delta.`{url}` version as of 0"
    assert sorted(r[0] for r in session.sql(union).collect()) == [0, 1, 2, 10, 11, 12]


def test_threads_see_whole_versions_while_another_writes(session: SparkSession, url: str):
    query = f"select count(*) n, (select max(id) from delta.`{url}`) from delta.`{url}`"
    seen: list[list[int]] = [[], []]
    stop = threading.Event()

    def ask(into: list[int]) -> None:
        while not stop.is_set():
            into.append(session.sql(query).first()["n"])

    threads = [threading.Thread(target=ask, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for _ in range(4):
        alluvium.write(session.range(3), url, mode="append")
        assert count(session, f"select * from delta.`{url}`") % 3 == 0
    stop.set()
    for thread in threads:
        thread.join()
    for into in seen:
        assert into == sorted(into)
        assert {n % 3 for n in into} <= {0}
