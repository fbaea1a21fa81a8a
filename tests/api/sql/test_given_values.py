"""Parameters where Spark's grammar wants a literal: from 4.1 on it puts their values into the text before it parses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.spark.sessions.session import capabilities

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    if capabilities(spark).version < (4, 1):
        pytest.skip("Spark 4.0 takes parameters for expressions alone")
    alluvium.enable(spark)
    spark.conf.set("spark.sql.scripting.enabled", "true")
    spark.sql("create table of_values (id int, k string) using delta partitioned by (k)")
    yield spark
    spark.sql("drop table of_values")
    spark.conf.unset("spark.sql.scripting.enabled")
    alluvium.disable(spark)


@pytest.fixture(autouse=True)
def emptied(session: SparkSession) -> None:
    session.sql("truncate table of_values")


def rows(spark: SparkSession) -> list[tuple]:
    return sorted(tuple(row) for row in spark.table("of_values").collect())


def test_partitions_and_points_in_time(session: SparkSession):
    session.sql("insert into of_values partition (k = :k) values (:id)", {"k": "it's; a", "id": 1})
    session.sql("insert into of_values partition (k = ?) select ?", ["b", 2])
    session.sql("insert overwrite of_values partition (k = :k) select 3", {"k": "b"})
    version = session.sql("describe history of_values limit 1").first()["version"]
    assert rows(session) == [(1, "it's; a"), (3, "b")]
    session.sql("insert into of_values select id + 10, k from of_values version as of :v", {"v": version - 1})
    assert rows(session) == [(1, "it's; a"), (3, "b"), (11, "it's; a"), (12, "b")]
    old = "with old as (select * from of_values version as of :v) insert into of_values select id + :n, k from old"
    session.sql(old, {"v": version - 2, "n": 20})
    assert rows(session)[-1] == (21, "it's; a")


def test_what_a_table_is_made_with(session: SparkSession, tmp_path: Path):
    given = {"c": "a 'column'", "t": "it's; --", "v": "x", "at": str(tmp_path / "t")}
    session.sql(
        "create table of_values_made (a int comment :c) using delta comment :t location :at tblproperties ('p' = :v)",
        given,
    )
    try:
        assert session.sql("show tblproperties of_values_made ('p')").first()["value"] == "x"
        assert session.table("of_values_made").schema["a"].metadata["comment"] == "a 'column'"
        assert session.sql("describe detail of_values_made").first()["description"] == "it's; --"
        session.sql("alter table of_values_made set tblproperties ('p' = :v)", {"v": "y"})
        session.sql("comment on table of_values_made is :c", {"c": "new"})
        detail = session.sql("describe detail of_values_made").first()
        assert (detail["description"], detail["properties"]["p"]) == ("new", "y")
    finally:
        session.sql("drop table of_values_made")


def test_within_other_statements(session: SparkSession):
    session.sql("execute immediate 'insert into of_values partition (k = :k) values (:n)' using 'a' as k, 1 as n")
    session.sql("begin insert into of_values partition (k = :k) values (2); end", {"k": "b"})
    assert rows(session) == [(1, "a"), (2, "b")]
