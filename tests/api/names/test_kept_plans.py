"""Plans of tables by name that have not changed are given to Spark again; what has changed is seen at once."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from s3_server import S3Bucket, serve_s3

import alluvium
from alluvium.api.names import kept_plans
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


def latest(session: SparkSession) -> int:
    """The number of the plan in the catalog's cache that a statement asked for last."""
    return next(reversed(catalog_relations._put_names[java_of(session).gateway].values())).number


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


class Clock:
    """The clock of those who keep plans, which a test can put forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (catalog_relations, kept_plans):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def test_a_plan_that_is_asked_for_again_and_again_stays(session: SparkSession, url: str, tmp_path: Path, clock: Clock):
    alluvium.write(session.range(5), str(tmp_path / "other"))
    query, other = f"select * from delta.`{url}`", f"select * from delta.`{tmp_path / 'other'}`"
    settled(session, query)
    first = latest(session)
    for _ in range(5):
        clock.ahead_s += 25
        # Whoever puts a plan there has old ones dropped.
        assert count(session, f"{other} version as of 0") == 5
        session.sql(query)
        assert latest(session) == first
    clock.ahead_s += catalog_relations._KEPT_SECONDS + 1
    assert count(session, other) == 5
    assert count(session, query) == 3
    assert latest(session) != first


def test_spark_s_cache_gets_a_plan_again_before_it_may_let_it_go(
    session: SparkSession, url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """`spark.sql.metadataCacheTTLSeconds` counts from when a plan was put there."""
    query = f"select * from delta.`{url}`"
    first = relation(settled(session, query))
    asked: list[str] = []
    send = ClientServerConnection.send_command
    monkeypatch.setattr(
        ClientServerConnection, "send_command", lambda self, command: asked.append(command) or send(self, command)
    )
    for ahead_s, times in ((1, 0), (catalog_relations._KEPT_SECONDS / 2, 1), (1, 1)):
        clock.ahead_s += ahead_s
        assert relation(session.sql(query)) == first
        assert sum("\ncacheTable\n" in command for command in asked) == times


def test_the_spelling_of_a_plan_that_stands_is_given_to_no_other(
    session: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch
):
    alluvium.write(session.range(4), url, mode="append")
    query = f"select * from delta.`{url}`"
    first = relation(settled(session, query))
    # After so many others the spellings begin anew.
    monkeypatch.setattr(catalog_relations, "_numbers", itertools.count(latest(session) + 4095))
    assert count(session, f"{query} version as of 0") == 3
    assert relation(session.sql(query)) == first
    assert count(session, query) == 7


def test_what_another_process_commits_is_seen(session: SparkSession, url: str):
    session.sql(f"create view kept_view as select * from delta.`{url}`")
    session.sql(f"create table kept_name using delta location '{url}'")
    queries = [f"select * from delta.`{url}`", "select * from kept_view", "select * from kept_name"]
    elsewhere = """
import sys, alluvium, pyarrow as pa
alluvium.alter(sys.argv[1]).add_columns({"w": "int"})
alluvium.write(pa.table({"id": [7], "w": pa.array([1], pa.int32())}), sys.argv[1], mode="append")
"""
    try:
        for query in queries:
            settled(session, query)
        subprocess.run([sys.executable, "-c", elsewhere, url], check=True)
        assert [count(session, query) for query in queries] == [4, 4, 4]
        # A view has the columns that it was made with.
        assert [session.sql(query).columns for query in queries] == [["id", "w"], ["id"], ["id", "w"]]
    finally:
        session.sql("drop view kept_view")
        session.sql("drop table kept_name")


def test_a_name_that_was_dropped_means_nothing(session: SparkSession, url: str, tmp_path: Path):
    query = "select * from kept_dropped"
    session.sql(f"create table kept_dropped using delta location '{url}'")
    settled(session, query)
    session.sql("drop table kept_dropped")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql(query)
    session.sql("create table kept_dropped (other string) using parquet")
    try:
        assert session.sql(query).columns == ["other"]
    finally:
        session.sql("drop table kept_dropped")


def test_a_database_that_is_called_like_a_format(session: SparkSession, url: str, tmp_path: Path):
    query = f"select * from delta.`{url}`"
    settled(session, query)
    session.sql(f"create database delta location '{tmp_path}/named_delta'")
    try:
        session.sql("create table delta.kept using delta as select 1 as a, 2 as b")
        assert session.sql("select * from delta.kept").columns == ["a", "b"]
        assert count(session, query) == 3
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.sql("select * from delta.`not there`")
    finally:
        session.sql("drop database delta cascade")


def test_each_session_has_its_own(session: SparkSession, url: str):
    query = f"select * from delta.`{url}`"
    other = session.newSession()
    alluvium.enable(other)
    try:
        settled(session, query)
        settled(other, query)
        alluvium.write(session.range(4), url, mode="append")
        assert (count(session, query), count(other, query)) == (7, 7)
        alluvium.write(other.range(2), url, mode="append")
        assert (count(other, query), count(session, query)) == (9, 9)
        # Both take the same table of the same catalog.
        joined = f"select a.id from ({query}) a join delta.`{url}` b on a.id = b.id"
        assert count(other, joined) == count(session, joined)
    finally:
        alluvium.disable(other)


def test_the_session_s_zone_is_that_of_the_query(session: SparkSession, tmp_path: Path):
    url, query = str(tmp_path / "t"), "select cast(p as string) from delta.`{}`"
    rows = session.sql("select 1 as id, timestamp '2020-06-01 12:00:00 UTC' as p")
    alluvium.write(rows, url, partition_by=["p"])
    settled(session, query.format(url))
    before = session.conf.get("spark.sql.session.timeZone")
    seen = []
    try:
        for zone in ("UTC", "Asia/Tokyo", "UTC"):
            session.conf.set("spark.sql.session.timeZone", zone)
            expected = alluvium.read(session, url).selectExpr("cast(p as string)").collect()
            assert session.sql(query.format(url)).collect() == expected
            seen.append(expected[0][0])
    finally:
        session.conf.set("spark.sql.session.timeZone", before)
    assert seen[0] == seen[2] != seen[1]


def test_a_table_is_reached_as_the_session_reaches_it_now(session: SparkSession):
    """Credentials of object stores expire, and a service that runs for days renews them."""
    old, new, url = S3Bucket(), S3Bucket(), "s3a://bucket/t"
    with serve_s3(old) as before, serve_s3(new) as now:
        said = {
            "endpoint": before, "endpoint.region": "us-east-1", "access.key": "key", "secret.key": "secret",
            "path.style.access": "true",
        }  # fmt: skip
        options = {f"fs.s3a.{name}": value for name, value in said.items()}
        alluvium.write(pa.table({"id": [1]}), url, storage_options=options)
        new.objects = old.objects
        for name, value in said.items():
            session.conf.set(f"fs.s3a.{name}", value)
        try:
            query = f"select * from delta.`{url}`"
            assert len(settled(session, query).inputFiles()) == 1
            old.denied = True
            session.conf.set("fs.s3a.endpoint", now)
            assert len(session.sql(query).inputFiles()) == 1
        finally:
            for name in said:
                session.conf.unset(f"fs.s3a.{name}")


def test_texts_of_char_are_as_the_session_pads_them(session: SparkSession, tmp_path: Path):
    query = f"select length(c) from delta.`{tmp_path / 't'}` where c = 'ab'"
    session.sql(f"create table delta.`{tmp_path / 't'}` (c char(5)) using delta")
    session.sql(f"insert into delta.`{tmp_path / 't'}` values ('ab')")
    seen = []
    try:
        for pads in ("false", "true", "false"):
            session.conf.set("spark.sql.readSideCharPadding", pads)
            threading.Event().wait(0.1)
            seen += [session.sql(query).first() for _ in range(2)]
    finally:
        session.conf.unset("spark.sql.readSideCharPadding")
    assert [row and row[0] for row in seen] == [2, 2, 5, 5, 2, 2]
