"""What came in a range of a Paimon table's snapshots, by functions in the FROM of a query, in the table's own columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import alluvium
from alluvium.api.names.warehouses import find_named, url_of
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    alluvium.enable(spark, catalogs={"lake": str(tmp_path_factory.mktemp("warehouse"))})
    spark.sql("CREATE DATABASE lake.db")
    spark.sql("CREATE TABLE lake.db.app (k INT, v STRING)")
    spark.sql(
        "CREATE TABLE lake.db.t (k INT, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', 'write-only' = 'true')"
    )
    for table in ("app", "t"):
        for values in ("(1, 'a'), (2, 'x')", "(1, 'b'), (3, 'n')"):
            spark.sql(f"INSERT INTO lake.db.{table} VALUES {values}")
    spark.sql("DELETE FROM lake.db.t WHERE k = 2")
    for day, snapshot in (("2024-05-01", 1), ("2024-05-02", 2), ("2024-05-04", 3), ("other", 2)):
        spark.sql(f"CALL lake.sys.create_tag('db.t', '{day}', {snapshot})")
    yield spark
    alluvium.disable(spark)


def rows(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def came(spark: SparkSession, arguments: str, function: str = "query") -> list[tuple[object, ...]]:
    return rows(spark, f"SELECT * FROM paimon_incremental_{function}({arguments})")


def test_between_snapshots_and_tags(lake: SparkSession) -> None:
    assert came(lake, "'lake.db.t', 0, 1") == [(1, "a"), (2, "x")]
    assert came(lake, "'lake.db.t', 1, 2") == came(lake, "'lake.db.t', '1', '2'") == [(1, "b"), (3, "n")]
    # What was deleted is no row of the table.
    assert came(lake, "'lake.db.t', 1, 3") == [(1, "b"), (3, "n")]
    assert came(lake, "'lake.db.t', '2024-05-01', '2024-05-04'") == [(1, "b"), (3, "n")]
    assert came(lake, "'lake.db.app', 1, 2") == [(1, "b"), (3, "n")]
    lake.sql("USE lake.db")
    try:
        assert came(lake, "'t', 1, 2") == came(lake, "'db.t', 1, 2") == [(1, "b"), (3, "n")]
        counted = "SELECT count(*) FROM paimon_incremental_query('t', 1, 2) a JOIN t USING (k) WHERE a.v = 'b'"
        assert rows(lake, counted) == [(1,)]
    finally:
        lake.sql("USE spark_catalog.default")


def test_rows_with_their_kinds(lake: SparkSession) -> None:
    assert came(lake, "'lake.db.`t$audit_log`', 1, 3") == [("+I", 1, "b"), ("+I", 3, "n"), ("-D", 2, "x")]
    assert came(lake, "'lake.db.`t$audit_log`', 2, 2") == came(lake, "'lake.db.t', 2, 2") == []
    # Java tells the rows that went between two tags as well.
    with pytest.raises(UnsupportedFeature) as raised:
        came(lake, "'lake.db.`t$audit_log`', '2024-05-01', '2024-05-02'")
    assert raised.value.code == "unsupported-changes"
    for name, columns in (("t", ["k", "v"]), ("`t$audit_log`", ["rowkind", "k", "v"])):
        found = lake.sql(f"SELECT * FROM paimon_incremental_query('lake.db.{name}', 1, 2)")
        assert found.columns == columns


def test_updates_in_one_row(lake: SparkSession) -> None:
    lake.sql(
        "CREATE TABLE lake.db.told (k INT, v STRING, m MAP<STRING, INT>) "
        "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', 'changelog-producer' = 'lookup')"
    )
    lake.sql("INSERT INTO lake.db.told VALUES (1, 'a', map('x', 1)), (2, 'b', NULL)")
    lake.sql("INSERT INTO lake.db.told VALUES (1, 'c', NULL), (3, 'n', NULL)")
    lake.sql("DELETE FROM lake.db.told WHERE k = 2")
    try:
        ((last,),) = rows(lake, "SELECT max(snapshot_id) FROM lake.db.`told$snapshots`")
        text = f"SELECT rowkind, k, v, m[0]['x'] FROM paimon_incremental_query('lake.db.`told$binlog`', 0, {last})"
        assert rows(lake, text) == [
            ("+I", [1], ["a"], 1), ("+I", [2], ["b"], None), ("+I", [3], ["n"], None), ("+U", [1, 1], ["a", "c"], 1),
            ("-D", [2], ["b"], None),
        ]  # fmt: skip
        named = find_named(lake, ["lake", "db", "told"])
        assert named is not None
        here = alluvium.open(url_of(lake, named)).changes(0, last, mode="binlog").to_pylist()
        there = alluvium.changes(lake, url_of(lake, named), 0, last, mode="binlog").toArrow().to_pylist()
        assert sorted(map(str, here)) == sorted(map(str, there))
        assert rows(lake, "SELECT rowkind, k FROM lake.db.`told$binlog`") == [("+I", [1]), ("+I", [3]), ("-D", [2])]
    finally:
        lake.sql("DROP TABLE lake.db.told")
    app = came(lake, "'lake.db.`app$binlog`', 1, 2")
    assert app == [("+I", [1], ["b"]), ("+I", [3], ["n"])]


def test_between_times(lake: SparkSession) -> None:
    times = [
        row[0] for row in rows(lake, "SELECT unix_millis(cast(commit_time AS TIMESTAMP)) FROM lake.db.`t$snapshots`")
    ]
    first, second, _ = times
    assert came(lake, f"'lake.db.t', {first}, {second}", "between_timestamp") == [(1, "b"), (3, "n")]
    assert came(lake, f"'lake.db.t', '{first}', '{second}'", "between_timestamp") == [(1, "b"), (3, "n")]
    every = [(1, "a"), (1, "b"), (2, "x"), (3, "n")]
    for start, end in (("'2020-01-01'", "'2100-01-01 00:00:00'"), ("TIMESTAMP'2020-01-01'", "TIMESTAMP'2100-01-01'")):
        assert came(lake, f"'lake.db.t', {start}, {end}", "between_timestamp") == every
    for table in ("t", "`t$audit_log`", "`t$binlog`"):
        assert came(lake, f"'lake.db.{table}', 0, 1", "between_timestamp") == []
        assert came(lake, f"'lake.db.{table}', 4102444800000, 4102444800001", "between_timestamp") == []


def test_to_the_tag_of_a_period(lake: SparkSession) -> None:
    assert came(lake, "'lake.db.t', '2024-05-02'", "to_auto_tag") == [(1, "b"), (3, "n")]
    # The day between has none.
    assert came(lake, "'lake.db.t', '2024-05-04'", "to_auto_tag") == []
    assert came(lake, "'lake.db.t', '2024-05-01'", "to_auto_tag") == []
    assert came(lake, "'lake.db.t', '2024-05-09'", "to_auto_tag") == []
    with pytest.raises(InvalidRequest) as raised:
        came(lake, "'lake.db.t', 'other'", "to_auto_tag")
    assert raised.value.code == "invalid-tag"


def test_what_is_refused(lake: SparkSession) -> None:
    for arguments, kind in [
        ("'lake.db.t', 1", InvalidRequest),
        ("'lake.db.t', 1, 2, 3", InvalidRequest),
        ("1, 2, 3", InvalidRequest),
        ("'lake.db.t', 2, 1", InvalidRequest),
        ("'lake.db.nothing', 1, 2", NotFound),
        ("'lake.db.`t$snapshots`', 1, 2", NotFound),
        ("'lake.db.t', 1, 99", NotFound),
    ]:
        with pytest.raises(kind):
            came(lake, arguments)


def test_they_are_there_as_long_as_the_session_is_enabled(lake: SparkSession) -> None:
    other = lake.newSession()
    with pytest.raises(AnalysisException):
        other.sql("SELECT * FROM paimon_incremental_query('lake.db.t', 1, 2)")
