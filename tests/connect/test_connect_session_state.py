"""What a copy of a Connect session does not have: variables, and where names are looked for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.scan.connect_lane.connect import ask_files
from alluvium.spark.sessions.clone import runs_in_copy, with_settings

pytestmark = [pytest.mark.connect, pytest.mark.slow]

SETTING = "spark.sql.parquet.outputTimestampType"
MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}


@pytest.fixture
def url(connect, tmp_path: Path) -> Iterator[str]:
    connect.sql("declare or replace variable wanted bigint default 3")
    before = connect.conf.get(SETTING)
    yield str(tmp_path / "t")
    assert connect.conf.get(SETTING) == before, "the session keeps its settings"
    connect.sql("drop temporary variable wanted")


def ids(url: str) -> list[int]:
    return sorted(alluvium.open(url).to_arrow(["id"])["id"].to_pylist())


def _by_sql(connect) -> DataFrame:
    return connect.sql("select id from range(10) where id > session.wanted")


def _by_text(connect) -> DataFrame:
    return connect.range(10).where("id > wanted")


def _by_column(connect) -> DataFrame:
    return connect.range(10).where(sf.col("id") > sf.col("wanted"))


def _by_value(connect) -> DataFrame:
    return connect.sql("select explode(sequence(wanted + 1, 9)) as id")


@pytest.mark.parametrize("rows_of", [_by_sql, _by_text, _by_column, _by_value])
def test_rows_that_ask_for_a_variable(connect, url: str, rows_of) -> None:
    alluvium.write(rows_of(connect), url)
    assert ids(url) == [4, 5, 6, 7, 8, 9]
    connect.sql("set variable wanted = 8")
    alluvium.write(rows_of(connect), url, mode="append")
    assert ids(url) == [4, 5, 6, 7, 8, 9, 9]


@pytest.mark.parametrize("mode", MODES)
def test_a_condition_that_asks_for_a_variable(connect, url: str, mode: str) -> None:
    alluvium.write(connect.range(10).coalesce(1), url, **MODES[mode])
    rows = connect.range(7, 8)
    alluvium.write(rows, url, mode="overwrite", replaceWhere="id > wanted")
    assert ids(url) == [0, 1, 2, 3, 7]
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(2, 3), url, mode="overwrite", replaceWhere="id > wanted")
    assert caught.value.code == "constraint-violated"
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(rows, url, mode="overwrite", replaceWhere="id > unwanted")
    assert caught.value.code == "unknown-column"
    assert ids(url) == [0, 1, 2, 3, 7] and alluvium.open(url).version == 1


def test_rows_that_nobody_knows_leave_nothing(connect, url: str) -> None:
    with pytest.raises((InvalidRequest, AnalysisException)):
        alluvium.write(connect.range(3).where("id > unwanted"), url)
    assert not Path(url).exists()


def test_a_constraint_of_the_table_asks_for_no_variable(connect, url: str) -> None:
    alluvium.write(connect.range(3), url)
    log = Path(url, "_delta_log", f"{0:020}.json")
    text = log.read_text().replace('"configuration":{', '"configuration":{"delta.constraints.c":"id < wanted"')
    log.write_text(text.replace('"minWriterVersion":2', '"minWriterVersion":3'))
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.write(connect.range(1), url, mode="append")
    assert "wanted" in caught.value.message
    assert alluvium.open(url).version == 0


@pytest.fixture
def elsewhere(connect, tmp_path: Path) -> Iterator[str]:
    """Another catalog, which is the current one, with rows under a name that the first catalog has, too."""
    connect.sql(f"create table rows_here using parquet location '{tmp_path}/here' as select 1L id")
    name = "other_catalog"
    settings = {"": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
                ".url": f"jdbc:derby:memory:{tmp_path.name};create=true",
                ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}  # fmt: skip
    for key, value in settings.items():
        connect.conf.set(f"spark.sql.catalog.{name}{key}", value)
    connect.sql(f"create table {name}.APP.rows_here (id bigint)")
    connect.sql(f"insert into {name}.APP.rows_here values (2)")
    connect.sql(f"use {name}.APP")
    yield name
    connect.sql("use spark_catalog.default")
    connect.sql("drop table rows_here")
    for key in settings:
        connect.conf.unset(f"spark.sql.catalog.{name}{key}")


def test_names_are_looked_for_where_the_session_is(connect, url: str, elsewhere: str) -> None:
    alluvium.write(connect.table("rows_here"), url)
    alluvium.write(connect.sql("select id + 10 as id from rows_here"), url, mode="append")
    alluvium.write(connect.range(1).selectExpr("(select max(id) from rows_here) + 20 as id"), url, mode="append")
    assert ids(url) == [2, 12, 22]


def test_a_copy_of_a_session_leaves_nothing_behind(connect):
    """PySpark would keep the client of every copy, and its channel to the server, until the process ends."""
    if not runs_in_copy(connect.range(1)):
        pytest.skip("before 4.1 a Connect server copies no sessions")
    settings = {"spark.sql.ansi.enabled": "false"}
    with with_settings(connect.range(1), settings) as rows:
        assert rows.sparkSession is not connect and rows.count() == 1
        client = weakref.ref(rows.sparkSession.client)
    del rows
    gc.collect()
    assert client() is None


def test_a_frame_that_was_asked_for_its_files_is_not_kept(connect, url: str) -> None:
    alluvium.write(connect.range(1), url)
    frame = connect.read.schema("id long").parquet(url)
    ask_files(frame)
    known = weakref.ref(frame)
    del frame
    gc.collect()
    assert known() is None
