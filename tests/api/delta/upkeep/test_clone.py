"""CLONE from DeltaTable and from SQL: names, answers, errors, and every verb on a clone whose files lie elsewhere.

What a clone consists of is tested in tests/delta/upkeep/clone.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.plan.changes import Preview

pytestmark = pytest.mark.spark

ANSWER = ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size",
          "copied_files_size"]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture(scope="module")
def source(session, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Version 0: ten rows in partitions whose folders are escaped; 1: row 3 deleted by a vector."""
    root = str(tmp_path_factory.mktemp("clones") / "s é%20+")
    rows = session.range(10).selectExpr("id", "if(id % 2 = 0, 'a b%c', 'é:+') day")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    alluvium.write(rows.coalesce(1), root, partition_by=["day"], **properties)
    DeltaTable.forPath(session, root).delete("id = 3")
    return root


@pytest.fixture
def names(session):
    """Names of tables, dropped afterwards."""
    made = [f"c_{uuid.uuid4().hex}" for _ in range(3)]
    yield made
    for name in made:
        session.sql(f"DROP TABLE IF EXISTS {name}")


def ids(session, path: str) -> list[int]:
    return sorted(row["id"] for row in session.read.format("delta").load(path).collect())


LEFT = [0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("shallow", "vectors"), [(True, "true"), (True, "false"), (False, "true")], ids=["shallow", "rewritten", "deep"]
)
def test_every_verb_on_a_clone(session, source: str, tmp_path: Path, shallow: bool, vectors: str):
    path = str(tmp_path / "c d%")
    properties = {"delta.enableDeletionVectors": vectors}
    table = DeltaTable.forPath(session, source).clone(path, shallow, properties=properties)
    assert isinstance(table, DeltaTable) and ids(session, path) == LEFT
    assert session.read.format("delta").load(path).where("day = 'é:+' and id > 4").count() == 3
    table.delete("id = 5")
    table.update("id = 6", {"id": "60"})
    table.delete("day = 'nowhere'")
    more = session.createDataFrame([(7, "x"), (70, "x")], "id long, day string")
    table.alias("t").merge(more.alias("s"), "t.id = s.id and t.day = 'x'").whenNotMatchedInsertAll().execute()
    assert ids(session, path) == [0, 1, 2, 4, 7, 7, 8, 9, 60, 70]
    merged = table.alias("t").merge(more.alias("s"), "t.id = s.id and t.day <> 'x'")
    merged.whenMatchedUpdate(set={"id": "s.id + 1000"}).execute()
    expected = [0, 1, 2, 4, 7, 8, 9, 60, 70, 1007]
    assert ids(session, path) == expected
    table.optimize().executeCompaction()
    assert ids(session, path) == expected
    changes = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    first = [row["id"] for row in changes.where("_commit_version = 0").collect()]
    assert sorted(first) == LEFT
    assert sorted((row["_change_type"], row["id"]) for row in changes.where("_commit_version in (1, 2)").collect()) == [
        ("delete", 5),
        ("update_postimage", 60),
        ("update_preimage", 6),
    ]
    table.restoreToVersion(0)
    assert ids(session, path) == LEFT == ids(session, source)


def test_python_s_answers_and_errors(session, source: str, tmp_path: Path, names):
    table = DeltaTable.forPath(session, source)
    path = str(tmp_path / "c")
    assert isinstance(table.clone(path, True, dry_run=True), Preview)
    assert not os.path.exists(path)
    old = table.cloneAtVersion(0, path, isShallow=True, properties={"mine": "y"})
    assert old.toDF().count() == 10
    info = old.history(1).first()
    assert info["operation"] == "CLONE"
    assert info["operationParameters"] == {"source": f"delta.`file:{source}`", "sourceVersion": "0"}
    assert old.detail().first()["properties"]["mine"] == "y"
    with pytest.raises(AnalysisException, match="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION") as caught:
        table.clone(path, True)
    assert isinstance(caught.value, InvalidRequest)
    assert table.clone(path, True, True).toDF().count() == 9
    with pytest.raises(AnalysisException, match="DELTA_VERSION_NOT_FOUND"):
        table.cloneAtVersion(99, str(tmp_path / "d"), True)
    with pytest.raises(AnalysisException, match="DELTA_TIMESTAMP_GREATER_THAN_COMMIT"):
        table.cloneAtTimestamp("2999-01-01", str(tmp_path / "d"), True)
    for wrong in ((1,), ("x", "yes"), ("x", True, 1), ("x", True, True, {"a": 1})):
        with pytest.raises(ValueError, match="needs to be"):
            table.clone(*wrong)
    named = table.clone(names[0], True)
    assert session.table(names[0]).count() == 9 and named.detail().first()["name"].endswith(names[0])


def test_sql(session, source: str, tmp_path: Path, names):
    one, two, three = names
    done = session.sql(f"CREATE TABLE {one} SHALLOW CLONE delta.`{source}` VERSION AS OF 0 TBLPROPERTIES ('k' = 'v')")
    assert done.columns == ANSWER and [row[3] for row in done.collect()] == [0]
    assert session.table(one).count() == 10
    entry = {row["col_name"]: row["data_type"] for row in session.sql(f"DESCRIBE EXTENDED {one}").collect()}
    assert entry["Type"] == "MANAGED"
    assert session.sql(f"CREATE TABLE IF NOT EXISTS {one} SHALLOW CLONE delta.`{source}`").collect() == []
    assert session.table(one).count() == 10
    with pytest.raises(AnalysisException, match="DELTA_TABLE_ALREADY_EXISTS"):
        session.sql(f"CREATE TABLE {one} DEEP CLONE delta.`{source}`")
    session.sql(f"CREATE OR REPLACE TABLE {one} CLONE delta.`{source}@v1`")
    assert session.table(one).count() == 9
    place = tmp_path / "place"
    copied = session.sql(f"CREATE TABLE {two} DEEP CLONE {one} LOCATION '{place}'").first()
    assert copied == Row(*[copied[0], 2, 0, 2, 0, copied[0]])
    assert (place / "_delta_log").is_dir() and session.table(two).count() == 9
    again = session.sql(f"REPLACE TABLE {two} DEEP CLONE {one}").first()
    assert (again["num_copied_files"], again["num_removed_files"]) == (0, 0)
    parameters = session.sql(f"DESCRIBE HISTORY {two}").first()["operationParameters"]
    assert parameters == {"source": f"spark_catalog.default.{one}", "sourceVersion": "1"}
    session.sql(f"DROP TABLE {one}")
    assert session.table(two).count() == 9
    session.sql(f"CREATE OR REPLACE TEMP VIEW v_{three} AS SELECT 1 a")
    for statement, said in (
        (f"REPLACE TABLE {three} SHALLOW CLONE {two}", "DELTA_CANNOT_REPLACE_MISSING_TABLE"),
        (f"CREATE TABLE {three} SHALLOW CLONE v_{three}", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        (f"CREATE TABLE {three} SHALLOW CLONE parquet.`{place}`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        (f"CREATE TABLE {three} SHALLOW CLONE orc.`{place}`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        (f"CREATE TABLE {three} SHALLOW CLONE nowhere_{three}", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"CREATE TABLE {three} SHALLOW CLONE delta.`{tmp_path}/nowhere`", "DELTA_MISSING_DELTA_TABLE"),
        (f"CREATE TABLE {three} SHALLOW CLONE {two} TBLPROPERTIES ('delta.foo' = '1')", "DELTA_UNKNOWN_CONFIGURATION"),
        (f"CREATE TABLE {three} SHALLOW CLONE {two} LOCATION '{place}'", "non|lie|table"),
    ):
        with pytest.raises(AlluviumError, match=said):
            session.sql(statement)
        assert not session.catalog.tableExists(three), statement
    session.sql(f"DROP VIEW v_{three}")


def test_parquet_tables(session, tmp_path: Path):
    name, folder, clone = f"p_{uuid.uuid4().hex}", tmp_path / "s", f"delta.`{tmp_path}/c`"
    session.range(4).selectExpr("id", "id % 2 as p").write.partitionBy("p").parquet(str(folder))
    answer = session.sql(f"CREATE TABLE {clone} SHALLOW CLONE parquet.`{folder}`").first()
    assert (answer["source_num_of_files"] > 1, answer["num_copied_files"]) == (True, 0)
    parameters = session.sql(f"DESCRIBE HISTORY {clone}").first()["operationParameters"]
    assert parameters == {"source": f"parquet.`file:{folder}`", "sourceVersion": "-1"}
    session.sql(f"DELETE FROM {clone} WHERE p = 1")
    assert session.table(clone).where("p = 0").count() == session.table(clone).count() == 2
    with pytest.raises(AnalysisException, match="DELTA_CLONE_UNSUPPORTED_SOURCE"):
        session.sql(f"CREATE OR REPLACE TABLE {clone} SHALLOW CLONE parquet.`{folder}` VERSION AS OF 1")
    session.read.parquet(str(folder)).write.saveAsTable(name, format="parquet", partitionBy="p")
    session.sql(f"CREATE OR REPLACE TABLE {clone} CLONE {name}")
    session.sql(f"DROP TABLE {name}")
    assert session.table(clone).groupBy().sum("id").first()[0] == 6


def test_a_source_that_is_gone(session, source: str, tmp_path: Path):
    path = str(tmp_path / "c")
    session.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{source}`")
    os.rename(source, source + "-away")
    try:
        with pytest.raises(NotFound) as caught:
            session.sql(f"CREATE TABLE delta.`{tmp_path}/d` SHALLOW CLONE delta.`{path}`")
        assert caught.value.code == "missing-file" and not (tmp_path / "d").exists()
    finally:
        os.rename(source + "-away", source)
