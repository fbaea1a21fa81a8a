"""A Paimon warehouse as a catalog: databases, tables, their metadata and branches, statements and procedures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import alluvium
from alluvium.api.names.warehouses import find_named, url_of
from alluvium.errors import AlluviumError, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    alluvium.enable(spark, catalogs={"lake": str(tmp_path_factory.mktemp("warehouse"))})
    spark.sql("CREATE DATABASE lake.db")
    spark.sql(
        "CREATE TABLE lake.db.t (k INT, v STRING COMMENT 'said', day STRING) PARTITIONED BY (day) COMMENT 'told' "
        "TBLPROPERTIES ('primary-key' = 'day,k', 'bucket' = '1')"
    )
    spark.sql("INSERT INTO lake.db.t VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    spark.sql("INSERT INTO lake.db.t VALUES (1, 'c', 'x')")
    yield spark
    alluvium.disable(spark)


def rows(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def test_names_and_metadata(lake: SparkSession) -> None:
    assert rows(lake, "SHOW DATABASES IN lake") == [("db",), ("default",)]
    assert [row[1] for row in rows(lake, "SHOW TABLES IN lake.db")] == ["t"]
    assert rows(lake, "SELECT db.t.k, v FROM lake.db.t ORDER BY k") == [(1, "c"), (2, "b")]
    assert rows(lake, "SELECT v FROM lake.db.t VERSION AS OF 1 WHERE k = 1") == [("a",)]
    assert rows(lake, "SELECT snapshot_id FROM lake.db.`t$snapshots`") == [(1,), (2,)]
    described = {row[0]: row[2] for row in rows(lake, "DESCRIBE lake.db.t")}
    assert described["v"] == "said"
    assert ("primary-key", "day,k") in rows(lake, "SHOW TBLPROPERTIES lake.db.t")
    with pytest.raises(AnalysisException):
        lake.sql("SELECT * FROM lake.db.nothing")
    with pytest.raises(AnalysisException):
        lake.sql("SHOW TABLES IN lake.nothing").collect()


def test_tags_branches_and_procedures(lake: SparkSession) -> None:
    assert rows(lake, "CALL lake.sys.create_tag('db.t', 'first', 1)") == [(True,)]
    assert rows(lake, "SELECT v FROM lake.db.t VERSION AS OF 'first' WHERE k = 1") == [("a",)]
    lake.sql("CALL lake.sys.create_branch(table => 'db.t', branch => 'b', tag => 'first')")
    lake.sql("INSERT INTO lake.db.`t$branch_b` VALUES (3, 'on b', 'x')")
    assert rows(lake, "SELECT count(*) FROM lake.db.`t$branch_b`") == [(3,)]
    assert rows(lake, "SELECT count(*) FROM lake.db.t") == [(2,)]
    for verb in ("DELETE FROM lake.db.`t$branch_b`", "UPDATE lake.db.`t$branch_b` SET v = 'changed'"):
        with pytest.raises(UnsupportedFeature) as refused:
            lake.sql(verb)
        assert refused.value.code == "unsupported-branch", "it changed the rows of the table itself"
    assert rows(lake, "SELECT v FROM lake.db.t ORDER BY k") == [("c",), ("b",)]
    expired = rows(lake, "CALL sys.expire_snapshots(table => 'lake.db.t$branch_b', retain_max => 1, retain_min => 1)")
    assert expired == [(1,)]
    for text, kind in [
        ("CALL sys.no_such('lake.db.t')", InvalidRequest),
        ("CALL sys.create_tag(table => 'lake.db.t')", InvalidRequest),
        ("CALL sys.create_tag('lake.db.nothing', 'x')", NotFound),
        ("CALL sys.compact_database()", InvalidRequest),
        ("CALL lake.sys.repair('db.t')", UnsupportedFeature),
        ("CALL lake.sys.copy('db.t', 'no place')", InvalidRequest),
        ("CALL lake.sys.copy('db.t', 'db.t$branch_x')", InvalidRequest),
        ("CALL lake.sys.copy('db.t', 'db.t')", InvalidRequest),
    ]:
        with pytest.raises(kind):
            lake.sql(text)


def test_a_time_of_a_call_is_that_of_the_session(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE lake.db.timed AS SELECT 1 AS k")
    lake.sql("INSERT INTO lake.db.timed VALUES (2)")
    before = lake.conf.get("spark.sql.session.timeZone")
    call = "CALL lake.sys.expire_snapshots(table => 'db.timed', retain_min => 1, older_than => {})"
    try:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            lake.conf.set("spark.sql.session.timeZone", zone)
            ((an_hour_ago,),) = rows(lake, "SELECT cast(current_timestamp() - INTERVAL 1 HOUR AS STRING)")
            for kind in ("TIMESTAMP", "TIMESTAMP_NTZ", ""):
                assert rows(lake, call.format(f"{kind} '{an_hour_ago}'")) == [(0,)], (zone, kind)
        assert rows(lake, call.format("DATE '2020-01-01'")) == [(0,)]
        ((soon,),) = rows(lake, "SELECT cast(current_timestamp() + INTERVAL 1 HOUR AS STRING)")
        assert rows(lake, call.format(f"TIMESTAMP '{soon}'")) == [(1,)]
    finally:
        lake.conf.set("spark.sql.session.timeZone", before or "UTC")
        lake.sql("DROP TABLE lake.db.timed")


def test_tables_are_copied_and_compacted_by_name(lake: SparkSession, tmp_path: Path) -> None:
    assert rows(lake, "CALL lake.sys.copy(source_table => 'db.t', target_table => 'copies.t')") == [(True,)]
    assert rows(lake, "CALL sys.copy('lake.db.t', 'lake.copies.u', \"day = 'x'\")") == [(True,)]
    assert rows(lake, f"CALL sys.copy('lake.db.t', 'paimon.`{tmp_path}/elsewhere`')") == [(True,)]
    every = "SELECT k, v FROM {} ORDER BY k"
    held = rows(lake, every.format("lake.db.t"))
    assert rows(lake, every.format("lake.copies.u")) == [(1, "c")]
    for copied in ("lake.copies.t", f"paimon.`{tmp_path}/elsewhere`"):
        assert rows(lake, every.format(copied)) == held
    lake.sql("INSERT INTO lake.copies.t VALUES (9, 'nine', 'x')")
    said = rows(lake, "CALL lake.sys.compact_database(including_databases => 'copies', excluding_tables => '.*u')")
    assert said == [("Compact database finished. Success: 1, Failed: 0",)]
    kind = rows(lake, "SELECT commit_kind FROM lake.copies.`t$snapshots` ORDER BY snapshot_id DESC LIMIT 1")
    assert kind == [("COMPACT",)] and len(rows(lake, every.format("lake.copies.t"))) == len(held) + 1
    call = "CALL lake.sys.rollback_to_as_latest(table => 'copies.t', snapshot_id => 1)"
    ((previous, restored, current),) = rows(lake, call)
    assert (restored, current) == (1, previous + 1)
    assert rows(lake, every.format("lake.copies.t")) == held
    lake.sql("USE lake.copies")
    assert rows(lake, "CALL sys.purge_files('t')") == [("Success",)] and rows(lake, "SELECT * FROM t") == []
    lake.sql("USE spark_catalog.default")
    lake.sql("DROP DATABASE lake.copies CASCADE")


def test_tables_are_made_altered_and_dropped(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE lake.db.c TBLPROPERTIES ('bucket' = '1', 'bucket-key' = 'k') AS SELECT k, v FROM lake.db.t")
    with pytest.raises(InvalidRequest):
        lake.sql("CREATE TABLE lake.db.c AS SELECT 1 AS x")
    with pytest.raises(UnsupportedFeature):
        lake.sql("CREATE OR REPLACE TABLE lake.db.c AS SELECT 1 AS x")
    lake.sql("ALTER TABLE lake.db.c ADD COLUMN w INT AFTER k")
    lake.sql("ALTER TABLE lake.db.c RENAME COLUMN w TO u")
    lake.sql("ALTER TABLE lake.db.c ALTER COLUMN u TYPE BIGINT")
    lake.sql("ALTER TABLE lake.db.c SET TBLPROPERTIES ('snapshot.num-retained.max' = '20')")
    assert lake.table("lake.db.c").dtypes == [("k", "int"), ("u", "bigint"), ("v", "string")]
    assert rows(lake, "SELECT value FROM lake.db.`c$options` WHERE key LIKE 'snapshot%'") == [("20",)]
    with pytest.raises(AlluviumError, match="NOT NULL"):
        lake.sql("ALTER TABLE lake.db.c ADD COLUMNS (n INT NOT NULL)")
    with pytest.raises(UnsupportedFeature, match="default"):
        lake.sql("ALTER TABLE lake.db.c ADD COLUMNS (n INT DEFAULT 5)")
    lake.sql("ALTER TABLE lake.db.c ADD COLUMN s STRUCT<k: INT, u: INT>")
    for place in ("FIRST", "AFTER u"):
        # Not the column of the table that is called the same.
        with pytest.raises(UnsupportedFeature, match=r"s\.k"):
            lake.sql(f"ALTER TABLE lake.db.c ALTER COLUMN s.k {place}")
    assert lake.table("lake.db.c").columns == ["k", "u", "v", "s"]
    lake.sql("ALTER TABLE lake.db.c DROP COLUMN s")
    lake.sql("ALTER TABLE lake.db.c DROP COLUMN u")
    lake.sql("USE lake.db")
    assert rows(lake, "SELECT * FROM c ORDER BY k") == [(1, "c"), (2, "b")]
    assert rows(lake, "CALL sys.create_tag('c', 'x')") == [(True,)]
    lake.sql("USE spark_catalog.default")
    lake.sql("DROP TABLE lake.db.c")
    lake.sql("DROP TABLE IF EXISTS lake.db.c")
    assert [row[1] for row in rows(lake, "SHOW TABLES IN lake.db")] == ["t"]
    with pytest.raises(AnalysisException):
        lake.sql("DROP DATABASE lake.db")
    # Called as folders within tables are.
    lake.sql("CREATE DATABASE lake.other")
    lake.sql("CREATE TABLE lake.other.tag (k INT)")
    assert [row[1] for row in rows(lake, "SHOW TABLES IN lake.other")] == ["tag"]
    with pytest.raises(AnalysisException):
        lake.sql("DROP DATABASE lake.other")
    lake.sql("DROP DATABASE lake.other CASCADE")


def test_paths_are_names_in_whatever_catalog_is_current(lake: SparkSession, tmp_path: Path) -> None:
    paths = {f"{kind}.`{tmp_path}/{kind}`": kind for kind in ("delta", "paimon", "parquet")}
    for path, kind in paths.items():
        lake.range(2).write.format(kind).save(path.split("`")[1])
    lake.sql("USE lake.db")
    try:
        for path, kind in paths.items():
            assert lake.table(path).count() == len(rows(lake, f"SELECT * FROM {path}")) == 2
            if kind == "parquet":
                continue
            lake.sql(f"INSERT INTO {path} VALUES (9L)")
            lake.range(1).writeTo(path).append()
            lake.range(1).write.insertInto(path)
            lake.range(1).write.format(kind).mode("append").saveAsTable(path)
            assert lake.table(path).count() == 6
            first = 0 if kind == "delta" else 1
            assert len(rows(lake, f"SELECT * FROM {path} VERSION AS OF {first}")) == 2
            with pytest.raises((NotFound, AnalysisException)):
                lake.table(f"{kind}.`{tmp_path}/nothing`")
        for missing in ("`a/b`", "db.`a/b`", "lake.db.`a/b`"):
            with pytest.raises(AnalysisException):
                lake.table(missing)
            assert lake.catalog.tableExists(missing) is False
            lake.sql(f"DROP TABLE IF EXISTS {missing}")
            with pytest.raises((InvalidRequest, AnalysisException)):
                lake.sql(f"CREATE TABLE {missing} (k INT)")
    finally:
        lake.sql("USE spark_catalog.default")


def test_the_word_default_in_an_insert(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE lake.db.filled (k INT, v INT, s STRING)")
    named = find_named(lake, ["lake", "db", "filled"])
    assert named is not None
    PaimonTable.forPath(url_of(lake, named)).alter([SchemaChange.update_column_default("v", "5")])
    lake.sql("INSERT INTO lake.db.filled VALUES (1, DEFAULT, 'a'), (2, 7, DEFAULT)")
    lake.sql("INSERT INTO lake.db.filled (v, k) SELECT DEFAULT, 3")
    lake.sql("INSERT INTO lake.db.filled VALUES (4, NULL, 'd')")
    assert rows(lake, "SELECT * FROM lake.db.filled ORDER BY k") == [
        (1, 5, "a"),
        (2, 7, None),
        (3, 5, None),
        (4, 5, "d"),
    ]
    lake.sql("DROP TABLE lake.db.filled")


def test_texts_keep_their_declared_lengths(lake: SparkSession) -> None:
    lake.sql(
        "CREATE TABLE lake.db.texts (c CHAR(5), v VARCHAR(5), s STRING, n STRUCT<c: VARCHAR(2), d: ARRAY<CHAR(3)>>)"
    )
    lake.sql("ALTER TABLE lake.db.texts ADD COLUMN w VARCHAR(3)")
    lake.sql("ALTER TABLE lake.db.texts ADD COLUMN n.e MAP<STRING, VARCHAR(4)>")
    lake.sql("ALTER TABLE lake.db.texts ALTER COLUMN v TYPE VARCHAR(7)")
    try:
        named = find_named(lake, ["lake", "db", "texts"])
        assert named is not None
        types = {f.name: str(f.type) for f in PaimonTable.forPath(url_of(lake, named)).schema.fields}
        nested = "ROW<`c` VARCHAR(2), `d` ARRAY<CHAR(3)>, `e` MAP<STRING NOT NULL, VARCHAR(4)>>"
        assert [types[name] for name in "cvsnw"] == ["CHAR(5)", "VARCHAR(7)", "STRING", nested, "VARCHAR(3)"]
        row = "'abc', '{}', 'abcdefgh', named_struct('c', 'x', 'd', array('{}'), 'e', map()), 'abc'"
        insert = f"INSERT INTO lake.db.texts VALUES ({row})"
        lake.sql(insert.format("abcdefg", "abc"))
        for texts in (("abcdefgh", "abc"), ("a", "abcd")):
            with pytest.raises(InvalidRequest) as caught:
                lake.sql(insert.format(*texts))
            assert caught.value.code == "text-too-long"
        assert [row[1] for row in rows(lake, "SELECT * FROM lake.db.texts")] == ["abcdefg"]
        lake.sql("ALTER TABLE lake.db.texts ALTER COLUMN v TYPE STRING")
        lake.sql(insert.format("abcdefgh", "abc"))
        assert sorted(row[1] for row in rows(lake, "SELECT * FROM lake.db.texts")) == ["abcdefg", "abcdefgh"]
    finally:
        lake.sql("DROP TABLE lake.db.texts")


def test_orphans_of_all_tables_of_a_database(lake: SparkSession) -> None:
    lake.sql("CREATE DATABASE lake.strays")
    for name in ("a", "b"):
        lake.sql(f"CREATE TABLE lake.strays.{name} AS SELECT 1 AS k")
        named = find_named(lake, ["lake", "strays", name])
        assert named is not None
        stray = Path(url_of(lake, named).removeprefix("file:"), "bucket-0/stray")
        stray.write_bytes(b"12345")
        os.utime(stray, (1, 1))
    for text, found in [
        ("CALL lake.sys.remove_orphan_files(table => 'strays.*', dry_run => true)", (2, 10)),
        ("CALL sys.remove_orphan_files('lake.strays.*', '2000-01-01 00:00:00', true)", (2, 10)),
        ("CALL lake.sys.remove_orphan_files('`strays`.*')", (2, 10)),
        ("CALL lake.sys.remove_orphan_files('strays.*')", (0, 0)),
    ]:
        assert rows(lake, text) == [found], text
    for text, kind in [
        ("CALL lake.sys.remove_orphan_files('nowhere.*')", InvalidRequest),
        ("CALL sys.remove_orphan_files('strays.*')", InvalidRequest),
        ("CALL lake.sys.remove_orphan_files('*')", InvalidRequest),
        ("CALL lake.sys.compact('strays.*')", InvalidRequest),
    ]:
        with pytest.raises(kind):
            lake.sql(text)
    lake.sql("DROP DATABASE lake.strays CASCADE")
