"""Overwrites of single rows by `replaceWhere`, and what the session's settings say of writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dml_tables import last

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, UnsupportedFeature

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}
KEPT = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}


@pytest.fixture
def setting(spark):
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def rows(path: str, version: int | None = None) -> dict[int, tuple[str, int, int]]:
    found = alluvium.open(path, version=version).to_arrow(["*", "_row_id", "_row_commit_version"])
    return {r["a"]: (r["b"], r["_row_id"], r["_row_commit_version"]) for r in found.to_pylist()}


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_replaced_and_others_keep_their_identity(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    first = spark.sql("select cast(id as int) a, concat('b', id) b from range(10)").coalesce(1)
    alluvium.write(first, path, **MODES[mode], **KEPT)
    before = rows(path)
    fresh = spark.sql("select 3 a, 'n' b union all select 4, 'm'").coalesce(1)
    done = alluvium.write(fresh, path, mode="overwrite", replaceWhere="a between 3 and 5")
    after = rows(path)
    assert done.version == 1 and done.metrics["numDeletedRows"] == "3" and done.metrics["numCopiedRows"] == "7"
    assert {a for a in range(10) if after.get(a) == before[a]} == {0, 1, 2, 6, 7, 8, 9}
    assert after[3][0] == "n" and after[3][1] > 9 and after[3][2] == 1 and 5 not in after
    feed = alluvium.changes(spark, path, 1).select("_change_type", "a").collect()
    assert sorted((r[0], r[1]) for r in feed) == [
        ("delete", 3), ("delete", 4), ("delete", 5), ("insert", 3), ("insert", 4)]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_rows_outside_of_the_condition_change_nothing(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 a, 'x' b"), path, **MODES[mode], **KEPT)
    files = set(Path(path).rglob("*.parquet"))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 2 a, 'y' b"), path, mode="overwrite", replaceWhere="a = 1")
    assert caught.value.code == "constraint-violated" and "a = 2" in caught.value.message
    assert alluvium.open(path).version == 0 and set(Path(path).rglob("*.parquet")) == files


def test_nothing_for_nothing_makes_no_commit(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 a, 'x' b"), path)
    none = spark.sql("select 2 a, 'y' b where false")
    assert alluvium.write(none, path, mode="overwrite", replaceWhere="a = 2").attempts == 0
    assert alluvium.write(none, path, mode="overwrite", replaceWhere="a = 1").version == 1
    assert alluvium.open(path).to_arrow().num_rows == 0


def test_a_condition_that_does_not_resolve(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 a"), path)
    for where in ("zz = 1", "a +", "a > (select 1)"):
        with pytest.raises(InvalidRequest):
            alluvium.write(spark.sql("select 1 a"), path, mode="overwrite", replaceWhere=where)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 1 a"), path, mode="overwrite", replaceWhere="a = 1", dataChange=False)
    assert caught.value.code == "contradicting-options"
    assert alluvium.open(path).version == 0


def test_a_transaction_is_remembered(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1 a"), path)
    for _ in range(2):
        alluvium.write(
            spark.sql("select 1 a"), path, mode="overwrite", replaceWhere="a = 1", txnAppId="app", txnVersion=1
        )
    assert alluvium.open(path).version == 1 and dict(alluvium.open(path).txns) == {"app": 1}


def test_settings_of_the_session_stand_for_options(spark, tmp_path, setting):
    path = str(tmp_path / "t")
    setting("spark.databricks.delta.properties.defaults.enableChangeDataFeed", "true")
    setting("spark.databricks.delta.commitInfo.userMetadata", "nightly")
    alluvium.write(spark.sql("select id, id % 2 p from range(4)"), path, partition_by="p")
    assert alluvium.open(path).properties["delta.enableChangeDataFeed"] == "true"
    setting("spark.sql.sources.partitionOverwriteMode", "dynamic")
    alluvium.write(spark.sql("select 9L id, 1L p"), path, mode="overwrite")
    assert sorted(alluvium.open(path).to_arrow(["id"]).column("id").to_pylist()) == [0, 2, 9]
    setting("spark.databricks.delta.schema.autoMerge.enabled", "true")
    alluvium.write(spark.sql("select 10L id, 1L p, 'x' n"), path, mode="append")
    DeltaTable.forPath(spark, path).delete("id = 10")
    assert alluvium.open(path).schema.names == ("id", "p", "n")
    assert {h["userMetadata"] for h in alluvium.open(path).history()} == {"nightly"}
    setting("spark.databricks.delta.replaceWhere.dataColumns.enabled", "false")
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.write(spark.sql("select 0L id, 0L p"), path, mode="overwrite", replaceWhere="id = 0")
    assert caught.value.code == "replace-where-data"


def test_files_are_written_anew_when_a_feature_goes(spark, tmp_path):
    path = str(tmp_path / "t")
    first = spark.sql("select cast(id as int) a, concat('b', id) b from range(10)").coalesce(1)
    alluvium.write(first, path, **KEPT, **MODES["mask"], **{"delta.columnMapping.mode": "name"})
    table = DeltaTable.forPath(spark, path)
    table.delete("a = 3")
    table.renameColumn("b", "c")
    before = {r["a"]: r["_row_id"] for r in alluvium.open(path).to_arrow(["a", "_row_id"]).to_pylist()}
    table.dropFeatureSupport("deletionVectors")
    table.dropFeatureSupport("columnMapping")
    opened = alluvium.open(path)
    assert {r["a"]: r["_row_id"] for r in opened.to_arrow(["a", "_row_id"]).to_pylist()} == before
    assert opened.schema.names == ("a", "c") and opened.protocol.min_reader_version == 1
    assert not any("columnMapping" in key for key in opened.properties)
    operations = [h["operation"] for h in opened.history()]
    assert "REORG" in operations and "REMOVE COLUMN MAPPING" in operations
    tags = json.loads(
        next(Path(path, "_delta_log").glob("*4.json")).read_text().splitlines()[0]
    )["commitInfo"]["tags"]  # fmt: skip
    assert tags["delta.rowTracking.preserved"] == "true" and not last(path, "cdc")


def test_a_column_that_was_dropped_does_not_come_back_when_mapping_goes(spark, tmp_path):
    """Its files are called as its columns are, and still have it."""
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1L a, 'secret' b, named_struct('x', 1, 'y', 7) s"), path)
    table = DeltaTable.forPath(spark, path)
    table.setProperties({"delta.columnMapping.mode": "name"})
    alluvium.alter(path).drop_columns("b", "s.y")
    table.dropFeatureSupport("columnMapping")
    assert "REMOVE COLUMN MAPPING" in [h["operation"] for h in alluvium.open(path).history()]
    alluvium.alter(path).add_columns({"b": "string", "s.y": "int"})
    expected = [{"a": 1, "s": {"x": 1, "y": None}, "b": None}]
    assert alluvium.open(path).to_arrow().to_pylist() == expected
    assert [row.asDict(recursive=True) for row in alluvium.read(spark, path).collect()] == expected


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_stay_take_new_fields_of_structs(spark, tmp_path, mode):
    """As in delta-spark 4.4; with the fields in another order, too."""
    path = str(tmp_path / "t")
    old = "select 1 id, named_struct('a', 1, 'b', 'x') s, array(named_struct('c', 1)) l union all select 2, null, null"
    alluvium.write(spark.sql(old).coalesce(1), path, **MODES[mode])
    new = "select 2 id, named_struct('n', 7, 'b', 'y', 'a', 5) s, array(named_struct('d', 2, 'c', 3)) l"
    alluvium.write(spark.sql(new), path, mode="overwrite", replaceWhere="id = 2", mergeSchema="true")
    found = {row["id"]: row for row in alluvium.open(path).to_arrow().to_pylist()}
    assert found[1] == {"id": 1, "s": {"a": 1, "b": "x", "n": None}, "l": [{"c": 1, "d": None}]}
    assert found[2] == {"id": 2, "s": {"a": 5, "b": "y", "n": 7}, "l": [{"c": 3, "d": 2}]}
