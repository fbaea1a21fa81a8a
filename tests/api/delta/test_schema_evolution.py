"""mergeSchema and overwriteSchema of writers, and tables by name."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, UnsupportedFeature

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AB = "select 1 a, 'x' b"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def last(url: str) -> dict:
    return dict(alluvium.open(url).history(1)[0])


@pytest.mark.parametrize(
    ("second", "mode", "options", "columns", "rows"),
    [
        ("select 5 d, 2 A", "append", {"mergeSchema": "true"}, ["a", "b", "d"], [(1, "x", None), (2, None, 5)]),
        ("select 1 a, 'y' b, 2 c", "overwrite", {"mergeSchema": True}, ["a", "b", "c"], [(1, "y", 2)]),
        ("select 1 a, 3 z where false", "append", {"mergeSchema": "true"}, ["a", "b", "z"], [(1, "x", None)]),
        ("select 'q' a, 2 c", "overwrite", {"overwriteSchema": "true"}, ["a", "c"], [("q", 2)]),
        ("select 2 a", "append", {"overwriteSchema": "true"}, ["a", "b"], [(1, "x"), (2, None)]),
    ],
)
def test_the_schema_follows_the_rows(
    spark, path: str, second: str, mode: str, options: dict, columns: list, rows: list
):
    alluvium.write(spark.sql(AB), path)
    alluvium.write(spark.sql(second), path, mode=mode, **options)
    df = alluvium.read(spark, path)
    assert df.columns == columns
    assert sorted(tuple(r) for r in df.collect()) == sorted(rows, key=str) or {tuple(r) for r in df.collect()} == set(
        rows
    )


def test_history_says_that_the_schema_could_change(spark, path: str):
    alluvium.write(spark.sql(AB), path)
    alluvium.write(spark.sql("select 1 c"), path, mode="append", mergeSchema=True)
    assert last(path)["operationParameters"] == {"mode": "Append", "partitionBy": "[]", "canMergeSchema": "true"}
    alluvium.write(spark.sql("select 1 c"), path, mode="overwrite", overwriteSchema=True)
    found = last(path)
    assert found["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "canOverwriteSchema": "true"}
    assert set(found["operationMetrics"]) == {
        "numFiles", "numRemovedFiles", "numRemovedBytes", "numOutputRows", "numOutputBytes",
    }  # fmt: skip


def test_partitions_change_with_an_overwritten_schema_and_grow_with_a_merged_one(spark, path: str):
    alluvium.write(spark.sql(AB), path, partition_by="a")
    alluvium.write(spark.sql("select 1 a, 'k' b, 2 c"), path, mode="overwrite", mergeSchema=True, replaceWhere="a = 1")
    dynamic = {"partitionOverwriteMode": "dynamic", "mergeSchema": True}
    alluvium.write(spark.sql("select 1 a, 'l' b, 2 c, 3 d"), path, mode="overwrite", **dynamic)
    assert alluvium.open(path).partition_columns == ("a",)
    assert alluvium.open(path).to_arrow().to_pylist() == [{"a": 1, "b": "l", "c": 2, "d": 3}]
    alluvium.write(spark.sql("select 1 a, 'k' b"), path, mode="overwrite", partition_by="b", overwriteSchema=True)
    assert alluvium.open(path).partition_columns == ("b",)
    alluvium.write(spark.sql("select 1 a, 'k' b"), path, mode="overwrite", overwriteSchema=True)
    assert alluvium.open(path).partition_columns == ()


@pytest.mark.parametrize(
    ("second", "mode", "options", "code"),
    [
        ("select 1 a, 2 c", "append", {}, "schema-mismatch"),
        ("select 'q' a", "append", {"mergeSchema": True}, "schema-mismatch"),
        ("select 1L a", "append", {"mergeSchema": True}, "schema-mismatch"),
        ("select 1 a, 2 `c d`", "append", {"mergeSchema": True}, "invalid-column-name"),
        ("select 1 a, 2 c, 3 C", "append", {"mergeSchema": True}, "duplicate-column"),
        ("select timestamp_ntz'2024-01-01' t", "append", {"mergeSchema": True}, "feature-not-enabled"),
        ("select 1 a", "overwrite", {"overwriteSchema": True, "replaceWhere": "a = 1"}, "contradicting-options"),
        ("select 1 a", "append", {"mergeSchema": "yes"}, "invalid-option"),
    ],
)
def test_what_does_not_fit_changes_nothing(spark, path: str, second: str, mode: str, options: dict, code: str):
    alluvium.write(spark.sql(AB), path)
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql(second), path, mode=mode, **options)
    assert caught.value.code == code
    assert alluvium.open(path).version == 0
    assert len(list(Path(path).glob("*/*.parquet"))) == 1


def test_properties_are_for_tables_to_create(spark, path: str):
    alluvium.write(spark.sql(AB), path, **{"delta.appendOnly": "true"})
    with pytest.warns(UserWarning, match=r"delta.checkpointInterval"):
        alluvium.write(
            spark.sql(AB), path, mode="append", **{"delta.appendOnly": "true", "delta.checkpointInterval": "3"}
        )
    assert alluvium.open(path).metadata.configuration == {"delta.appendOnly": "true"}


@pytest.fixture
def name(spark, tmp_path: Path):
    """The name of a table to be, in a database of its own; the session is enabled."""
    alluvium.enable(spark)
    database = f"d_{uuid.uuid4().hex[:8]}"
    spark.sql(f"create database {database} location '{tmp_path}/warehouse'")
    yield f"{database}.t"
    spark._jsparkSession.sessionState().catalog().dropDatabase(database, True, True)
    alluvium.disable(spark)


def rows(spark, name: str) -> list[tuple]:
    return sorted(tuple(r) for r in DeltaTable.forName(spark, name).toDF().collect())


def test_save_as_table(spark, name: str):
    spark.sql(AB).write.format("delta").saveAsTable(name)
    table = DeltaTable.forName(spark, name)
    assert table.detail().collect()[0]["name"] == f"spark_catalog.{name}"
    assert table.history(1).collect()[0]["operation"] == "CREATE TABLE AS SELECT"
    # Columns go by name, and types are cast as INSERT casts them.
    spark.sql("select 'y' b, 2L a").write.format("delta").mode("append").saveAsTable(name)
    assert rows(spark, name) == [(1, "x"), (2, "y")]
    spark.sql("select 'z' b, 3 a").write.format("delta").mode("overwrite").saveAsTable(name)
    assert rows(spark, name) == [(3, "z")]
    assert table.history(1).collect()[0]["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
    spark.sql(AB).write.format("delta").mode("ignore").saveAsTable(name)
    for second, mode, code in (("select 1 z", "overwrite", "schema-mismatch"), (AB, "error", "table-exists")):
        with pytest.raises(InvalidRequest) as caught:
            spark.sql(second).write.format("delta").mode(mode).saveAsTable(name)
        assert caught.value.code == code
    wider = spark.sql("select 1 q").write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    wider.saveAsTable(name)
    assert rows(spark, name) == [(1,)]


def test_insert_into_goes_by_place(spark, name: str):
    spark.sql(AB).write.format("delta").saveAsTable(name)
    spark.sql("select 2L q, 'y' w").write.insertInto(name)
    assert rows(spark, name) == [(1, "x"), (2, "y")]
    spark.sql("select 3L q, 'z' w").write.insertInto(name, overwrite=True)
    assert rows(spark, name) == [(3, "z")]
    with pytest.raises(InvalidRequest) as caught:
        spark.sql("select 2L q").write.insertInto(name)
    assert caught.value.code == "schema-mismatch"


def test_write_to(spark, name: str):
    writer = spark.sql(AB).writeTo(name).using("delta").tableProperty("delta.appendOnly", "false").partitionedBy("a")
    writer.create()
    spark.sql("select 'y' b, 2L a").writeTo(name).append()
    spark.sql("select 'w' b, 1 a, 5 c").writeTo(name).option("mergeSchema", "true").overwrite(sf.col("a") == 1)
    assert rows(spark, name) == [(1, "w", 5), (2, "y", None)]
    spark.sql("select 'v' b, 2 a").writeTo(name).overwritePartitions()
    assert rows(spark, name) == [(1, "w", 5), (2, "v", None)]
    spark.sql("select 'u' b, 7 a").writeTo(name).overwrite(sf.lit(True))
    assert rows(spark, name) == [(7, "u", None)]
    with pytest.raises(InvalidRequest):
        spark.sql(AB).writeTo(name).using("delta").create()
    spark.sql(AB).writeTo(name).using("delta").createOrReplace()
    assert spark.table(name).columns == ["a", "b"]


def test_tables_by_name_from_the_builder(spark, name: str, tmp_path: Path):
    place = str(tmp_path / "else where")
    made = DeltaTable.create(spark).tableName(name.upper()).location(place).addColumn("a", "int").execute()
    assert made.detail().collect()[0]["name"] == f"spark_catalog.{name}", "as the catalog keeps it"
    assert DeltaTable.forName(spark, f"spark_catalog.{name}").detail().collect()[0]["location"] == f"file:{place}"
    assert DeltaTable.forName(spark, f"delta.`{place}`").toDF().columns == ["a"]
    DeltaTable.replace(spark).tableName(name).addColumn("b", "int").execute()
    assert DeltaTable.forName(spark, name).toDF().columns == ["b"]
    with pytest.raises(UnsupportedFeature) as caught:
        DeltaTable.forName(spark, f"other.{name}")
    assert caught.value.code == "unsupported-catalog"
    for create in (
        lambda: (
            DeltaTable.create(spark).tableName("no_such_db.t").location(place + "2").addColumn("a", "int").execute()
        ),
        lambda: spark.range(1).write.format("delta").saveAsTable("no_such_db.t"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            create()
        assert refused.value.code == "unknown-database"
    assert not Path(place + "2").exists()


def test_other_formats_stay_with_spark(spark, name: str):
    spark.sql(AB).writeTo(name).using("parquet").create()
    spark.sql("select 2 a, 'y' b").write.insertInto(name)
    assert spark.table(name).count() == 2
    spark.sql(f"drop table {name}")


def test_tables_are_read_by_name(spark, name: str):
    spark.sql(AB).write.format("delta").saveAsTable(name)
    spark.sql("select 2 a, 'y' b").write.format("delta").mode("append").saveAsTable(name)
    assert spark.table(name).count() == spark.read.table(f"spark_catalog.{name}").count() == 2
    assert spark.read.option("versionAsOf", 0).table(name).count() == 1
    place = DeltaTable.forName(spark, name).detail().collect()[0]["location"]
    assert spark.table(f"delta.`{place}`").count() == 2
    spark.range(3).createOrReplaceTempView("t")
    assert spark.table("t").count() == 3
    spark.catalog.dropTempView("t")


def test_tables_are_dropped_by_name(spark, name: str, tmp_path: Path):
    place = str(tmp_path / "outside")
    DeltaTable.create(spark).tableName(name).location(place).addColumn("a", "int").execute()
    assert spark.sql(f"drop table {name}").collect() == []
    assert not spark.catalog.tableExists(name)
    assert alluvium.open(place).version == 0, "whose files are its own affair"
    spark.sql(AB).write.format("delta").saveAsTable(name)
    files = Path(DeltaTable.forName(spark, name).detail().collect()[0]["location"].removeprefix("file:"))
    assert files.exists()
    spark.sql(f"DROP TABLE IF EXISTS spark_catalog.{name};")
    assert not spark.catalog.tableExists(name)
    assert not files.exists(), "whose files are the catalog's"
    quoted = name.replace(".t", ".`select`")
    spark.sql(AB).write.format("delta").saveAsTable(quoted)
    spark.sql(f"drop table {quoted}")
    assert not spark.catalog.tableExists(quoted)
    spark.sql(f"drop table if exists {name}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"drop table {name}")
