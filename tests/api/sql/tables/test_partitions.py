"""Partitions of Paimon tables by SQL: shown as Spark shows those of a catalog, dropped by a commit."""

from __future__ import annotations

from collections.abc import Iterator

import jvm
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    alluvium.enable(spark, catalogs={"lake": str(tmp_path_factory.mktemp("warehouse"))})
    spark.sql("CREATE DATABASE lake.db")
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def table(lake: SparkSession) -> Iterator[str]:
    lake.sql("CREATE TABLE lake.db.t (k INT, v STRING, p INT, `q r` STRING) PARTITIONED BY (p, `q r`)")
    lake.sql(
        "INSERT INTO lake.db.t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'a/b=c'), (3, 'c', 2, 'x'), (4, 'd', NULL, NULL)"
    )
    yield "lake.db.t"
    lake.sql("DROP TABLE lake.db.t")


def shown(spark: SparkSession, text: str) -> list[str]:
    return [row["partition"] for row in spark.sql(text).collect()]


def ks(spark: SparkSession) -> list[int]:
    return sorted(row[0] for row in spark.sql("SELECT k FROM lake.db.t").collect())


def test_they_are_shown(lake: SparkSession, table: str) -> None:
    assert shown(lake, f"SHOW PARTITIONS {table}") == [
        "p=1/q r=a%2Fb%3Dc", "p=1/q r=x", "p=2/q r=x", "p=null/q r=null",
    ]  # fmt: skip
    assert shown(lake, f"SHOW PARTITIONS {table} PARTITION (P = 1)") == ["p=1/q r=a%2Fb%3Dc", "p=1/q r=x"]
    assert shown(lake, f"SHOW PARTITIONS {table} PARTITION (`q r` = 'x', p = 2)") == ["p=2/q r=x"]
    assert shown(lake, f"SHOW PARTITIONS {table} PARTITION (p = NULL)") == ["p=null/q r=null"]
    assert shown(lake, f"SHOW PARTITIONS {table} PARTITION (p = 7)") == []
    with pytest.raises(InvalidRequest, match="not partitioned by 'k'"):
        lake.sql(f"SHOW PARTITIONS {table} PARTITION (k = 1)")


def test_they_are_truncated(lake: SparkSession, table: str) -> None:
    assert lake.sql(f"TRUNCATE TABLE {table} PARTITION (p = 1, `q r` = 'x')").collect() == []
    assert ks(lake) == [2, 3, 4]
    lake.sql(f"TRUNCATE TABLE {table} PARTITION (P = 1)")
    assert ks(lake) == [3, 4]
    with pytest.raises(NotFound) as caught:
        lake.sql(f"TRUNCATE TABLE {table} PARTITION (p = 9, `q r` = 'x')")
    assert caught.value.code == "partition-not-found"
    with pytest.raises(InvalidRequest, match="not partitioned by 'k'"):
        lake.sql(f"TRUNCATE TABLE {table} PARTITION (k = 1)")
    assert ks(lake) == [3, 4]


def test_they_are_dropped(lake: SparkSession, table: str) -> None:
    assert lake.sql(f"ALTER TABLE {table} DROP PARTITION (p = 1, `q r` = 'x')").collect() == []
    assert ks(lake) == [2, 3, 4]
    kind = lake.sql("SELECT commit_kind FROM lake.db.`t$snapshots` ORDER BY snapshot_id DESC LIMIT 1").head()
    assert kind == ("OVERWRITE",)
    # Two, of which one is there; by one of two keys.
    lake.sql(f"ALTER TABLE {table} DROP IF EXISTS PARTITION (p = 9, `q r` = 'x'), PARTITION (p = 2)")
    assert ks(lake) == [2, 4]
    lake.sql(f"ALTER TABLE {table} DROP PARTITION (p = NULL, `q r` = NULL)")
    assert shown(lake, f"SHOW PARTITIONS {table}") == ["p=1/q r=a%2Fb%3Dc"]
    assert len(lake.sql("SELECT * FROM lake.db.`t$snapshots`").collect()) == 4


def test_one_that_is_not_there(lake: SparkSession, table: str) -> None:
    with pytest.raises(NotFound) as caught:
        lake.sql(f"ALTER TABLE {table} DROP PARTITION (p = 1, `q r` = 'x'), PARTITION (p = 9, `q r` = 'x')")
    assert caught.value.code == "partition-not-found" and ks(lake) == [1, 2, 3, 4]
    lake.sql(f"ALTER TABLE {table} DROP IF EXISTS PARTITION (p = 9, `q r` = 'x')")
    # As Paimon's own, which looks for partitions that a part of their keys means.
    lake.sql(f"ALTER TABLE {table} DROP PARTITION (p = 9)")
    assert len(lake.sql("SELECT * FROM lake.db.`t$snapshots`").collect()) == 1


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_is_no_value_is_not_taken_for_null(lake: SparkSession, table: str, ansi: str) -> None:
    with jvm.having(lake, {"spark.sql.ansi.enabled": ansi}):
        for text in ("ALTER TABLE {} DROP PARTITION (p = 'no')", "SHOW PARTITIONS {} PARTITION (p = 'no')"):
            with pytest.raises(InvalidRequest) as caught:
                lake.sql(text.format(table))
            assert caught.value.code == "invalid-partition"
    assert ks(lake) == [1, 2, 3, 4]


def test_partitions_of_every_type(lake: SparkSession) -> None:
    values = {
        "BOOLEAN": "true", "TINYINT": "1", "BIGINT": "-5", "DOUBLE": "1.5", "DECIMAL(9,2)": "2.50",
        "DATE": "DATE'2024-05-09'", "TIMESTAMP": "TIMESTAMP'2024-05-09 10:00:00.5'",
        "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-05-09 10:00:00'", "VARCHAR(5)": "'v'", "CHAR(3)": "'abc'",
    }  # fmt: skip
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(values))
    keys = ", ".join(f"c{n}" for n in range(len(values)))
    lake.sql(f"CREATE TABLE lake.db.typed (k INT, {columns}) PARTITIONED BY ({keys})")
    lake.sql(f"INSERT INTO lake.db.typed VALUES (1, {', '.join(values.values())})")
    try:
        assert shown(lake, "SHOW PARTITIONS lake.db.typed") == [
            "c0=true/c1=1/c2=-5/c3=1.5/c4=2.50/c5=2024-05-09/c6=2024-05-09 10%3A00%3A00.5/c7=2024-05-09 10%3A00%3A00"
            "/c8=v/c9=abc"
        ]
        for n, value in enumerate(values.values()):
            assert len(shown(lake, f"SHOW PARTITIONS lake.db.typed PARTITION (c{n} = {value})")) == 1, value
        spec = ", ".join(f"c{n} = {value}" for n, value in enumerate(values.values()))
        lake.sql(f"ALTER TABLE lake.db.typed DROP PARTITION ({spec})")
        assert shown(lake, "SHOW PARTITIONS lake.db.typed") == []
    finally:
        lake.sql("DROP TABLE lake.db.typed")


def test_of_a_branch_and_by_path(lake: SparkSession, table: str) -> None:
    lake.sql("CALL lake.sys.create_branch('db.t', 'b')")
    lake.sql("INSERT INTO lake.db.`t$branch_b` VALUES (8, 'b', 8, 'x'), (9, 'b', 9, 'x')")
    lake.sql("ALTER TABLE lake.db.`t$branch_b` DROP PARTITION (p = 8)")
    assert shown(lake, "SHOW PARTITIONS lake.db.`t$branch_b`") == ["p=9/q r=x"]
    assert ks(lake) == [1, 2, 3, 4]
    (url,) = {row[1] for row in lake.sql(f"DESCRIBE EXTENDED {table}").collect() if row[0] == "Location"}
    path = str(url).removeprefix("file:").replace("//", "/")
    lake.sql(f"ALTER TABLE paimon.`{path}` DROP PARTITION (p = 1)")
    assert shown(lake, f"SHOW PARTITIONS paimon.`{path}`") == ["p=2/q r=x", "p=null/q r=null"]


def test_what_is_refused(lake: SparkSession, table: str) -> None:
    for text in (
        f"ALTER TABLE {table} ADD PARTITION (p = 1, `q r` = 'x')",
        f"ALTER TABLE {table} PARTITION (p = 1, `q r` = 'x') RENAME TO PARTITION (p = 2, `q r` = 'x')",
        f"ALTER TABLE {table} RECOVER PARTITIONS",
        f"MSCK REPAIR TABLE {table}",
        f"ALTER TABLE {table} DROP PARTITION (p = 1, `q r` = 'x') PURGE",
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            lake.sql(text)
        assert caught.value.code == "unsupported-statement" and "Paimon" in str(caught.value), text
    lake.sql("CREATE TABLE lake.db.plain (k INT)")
    for text in ("SHOW PARTITIONS lake.db.plain", "ALTER TABLE lake.db.plain DROP PARTITION (k = 1)"):
        with pytest.raises(InvalidRequest):
            lake.sql(text)
    lake.sql("DROP TABLE lake.db.plain")
