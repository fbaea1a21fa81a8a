"""Names: what a table's name, a view's, a column's and a path's mean, where delta-spark gives them a meaning."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature

pytestmark = pytest.mark.spark

AT_PATHS = "spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled"


@pytest.fixture(scope="module")
def enabled(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def database(enabled, tmp_path: Path) -> Iterator[str]:
    """A database of its own, which is the current one."""
    name = f"d_{uuid.uuid4().hex[:8]}"
    enabled.sql(f"create database {name} location '{tmp_path}/warehouse'")
    enabled.catalog.setCurrentDatabase(name)
    yield name
    enabled.catalog.setCurrentDatabase("default")
    enabled._jsparkSession.sessionState().catalog().dropDatabase(name, True, True)


def make(spark: SparkSession, name: str, count: int) -> None:
    numbered(spark, count).write.format("delta").saveAsTable(name)


def numbered(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("id", "id * 10 v")


def rows(found: DataFrame | DeltaTable) -> list[tuple]:
    frame = found.toDF() if isinstance(found, DeltaTable) else found
    return sorted(tuple(row) for row in frame.collect())


# --- views ---


def test_a_view_hides_a_table_of_its_name(enabled, database: str):
    make(enabled, "ev", 5)
    enabled.table("ev").where("id < 2").createOrReplaceTempView("ev")
    row = enabled.sql("select 77L id, 7L v")
    try:
        assert enabled.table("ev").count() == enabled.read.table("ev").count() == 2
        assert enabled.table(f"{database}.ev").count() == 5, "a name with a database is never a view's"
        assert DeltaTable.forName(enabled, f"{database}.ev").toDF().count() == 5
        with pytest.raises(NotFound, match="is not a Delta table"):
            DeltaTable.forName(enabled, "ev")
        for write in (
            lambda: row.write.insertInto("ev"),
            lambda: row.write.insertInto("ev", overwrite=True),
            lambda: row.writeTo("ev").append(),
            lambda: row.writeTo("ev").overwrite(sf.lit(True)),
            lambda: row.writeTo("ev").overwritePartitions(),
        ):
            with pytest.raises(AnalysisException):
                write()
        assert alluvium.open(place_of(enabled, f"{database}.ev")).version == 0
        assert enabled.catalog.tableExists("ev") and enabled.catalog.tableExists(f"{database}.ev")
        enabled.sql("drop table ev")
        assert enabled.table("ev").count() == 5, "the view is gone, the table and its files are not"
        assert enabled.catalog.tableExists("ev") and not enabled.catalog.tableExists("global_temp.ev")
    finally:
        enabled.catalog.dropTempView("ev")


def test_where_a_table_is_made_its_name_is_no_view(enabled, database: str):
    make(enabled, "ev", 5)
    enabled.range(3).createOrReplaceTempView("ev")
    enabled.range(3).createOrReplaceTempView("lonely")
    try:
        numbered(enabled, 1).write.format("delta").mode("append").saveAsTable("ev")
        assert enabled.table(f"{database}.ev").count() == 6
        with pytest.raises(InvalidRequest) as caught:
            numbered(enabled, 1).write.format("delta").saveAsTable("ev")
        assert caught.value.code == "table-exists"
        make(enabled, "lonely", 4)
        made = DeltaTable.createIfNotExists(enabled).tableName("ev").addColumn("q", "int").execute()
        assert made.toDF().count() == 6
        assert enabled.table("lonely").count() == 3
        assert enabled.table(f"{database}.lonely").count() == 4
        enabled.catalog.dropTempView("lonely")
        assert enabled.table("lonely").count() == 4
    finally:
        enabled.catalog.dropTempView("ev")
        enabled.catalog.dropTempView("lonely")


def test_global_views_are_no_tables(enabled, database: str):
    enabled.range(3).createOrReplaceGlobalTempView("g")
    try:
        assert enabled.table("global_temp.g").count() == 3
        with pytest.raises(NotFound):
            DeltaTable.forName(enabled, "global_temp.g")
        with pytest.raises(AnalysisException):
            enabled.range(1).write.insertInto("global_temp.g")
        with pytest.raises(InvalidRequest) as caught:
            enabled.range(1).write.format("delta").saveAsTable("global_temp.h")
        assert caught.value.code == "unknown-database"
    finally:
        enabled.catalog.dropGlobalTempView("g")


def test_a_name_that_the_catalog_refuses_writes_nothing(enabled, database: str, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    for make_it in (
        lambda: numbered(enabled, 2).write.format("delta").option("path", str(elsewhere)).saveAsTable("`a tab`"),
        lambda: (
            DeltaTable.create(enabled).tableName("`a tab`").location(str(elsewhere)).addColumn("a", "int").execute()
        ),
    ):
        with pytest.raises(InvalidRequest) as caught:
            make_it()
        assert caught.value.code == "invalid-table-name"
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "drop table `select`",
        "DROP /* all of it */ TABLE IF EXISTS {database}.`select` PURGE",
        "-- away\ndrop\n  table spark_catalog.{database}.`select` ;",
    ],
)
def test_drops_are_read_as_spark_reads_them(enabled, database: str, statement: str):
    make(enabled, "`select`", 2)
    files = Path(place_of(enabled, "`select`").removeprefix("file:"))
    assert files.exists()
    assert enabled.sql(statement.format(database=database)).collect() == []
    assert not files.exists()
    assert not enabled.catalog.tableExists("`select`")


def place_of(spark: SparkSession, name: str) -> str:
    return str(DeltaTable.forName(spark, name).detail().collect()[0]["location"])


def test_the_current_database_gives_names_their_meaning(enabled, database: str, tmp_path: Path):
    make(enabled, "t", 2)
    enabled.sql(f"create database {database}_2 location '{tmp_path}/second'")
    try:
        make(enabled, f"{database}_2.t", 9)
        by_name = DeltaTable.forName(enabled, "t")
        enabled.catalog.setCurrentDatabase(f"{database}_2")
        assert enabled.table("T").count() == DeltaTable.forName(enabled, "t").toDF().count() == 9
        assert by_name.toDF().count() == 2, "a table that was found stays that one"
        enabled.sql("drop table t")
        assert enabled.table(f"{database}.t").count() == 2
    finally:
        enabled.catalog.setCurrentDatabase(database)
        enabled._jsparkSession.sessionState().catalog().dropDatabase(f"{database}_2", True, True)


def test_a_table_of_a_database_delta_comes_before_a_path(enabled, database: str, tmp_path: Path):
    enabled.sql(f"create database delta location '{tmp_path}/named_delta'")
    try:
        make(enabled, "delta.tt", 3)
        path = str(tmp_path / "by path")
        numbered(enabled, 4).write.format("delta").save(path)
        assert enabled.table("delta.tt").count() == DeltaTable.forName(enabled, "delta.tt").toDF().count() == 3
        assert enabled.table(f"delta.`{path}`").count() == 4
        assert DeltaTable.create(enabled).tableName("delta.made").addColumn("a", "int").execute().toDF().count() == 0
        assert enabled.table("delta.made").columns == ["a"]
    finally:
        enabled._jsparkSession.sessionState().catalog().dropDatabase("delta", True, True)


def test_other_catalogs_are_left_to_spark(enabled, database: str):
    make(enabled, "t", 2)
    enabled.conf.set("spark.sql.catalog.jdbc", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    enabled.conf.set("spark.sql.catalog.jdbc.url", "jdbc:derby:memory:names;create=true")
    enabled.conf.set("spark.sql.catalog.jdbc.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    try:
        for name in ("jdbc.t", "jdbc.a.t"):
            with pytest.raises(UnsupportedFeature) as caught:
                DeltaTable.forName(enabled, name)
            assert caught.value.code == "unsupported-catalog"
        for write in (
            lambda: enabled.range(1).writeTo("jdbc.a.t").append(),
            lambda: enabled.range(1).write.insertInto("jdbc.a.t"),
            lambda: enabled.table("jdbc.a.t").count(),
        ):
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
                write()
        enabled.sql("use jdbc")
        with pytest.raises(UnsupportedFeature):
            DeltaTable.forName(enabled, "t")
        with pytest.raises(AnalysisException):
            enabled.table("t").count()
        assert enabled.table(f"spark_catalog.{database}.t").count() == 2
    finally:
        enabled.sql(f"use spark_catalog.{database}")


def test_a_format_need_not_be_said(enabled, database: str, tmp_path: Path):
    make(enabled, "t", 2)
    numbered(enabled, 1).write.mode("append").saveAsTable("t")
    assert enabled.table("t").count() == 3
    enabled.conf.set("spark.sql.sources.default", "delta")
    try:
        numbered(enabled, 2).write.save(str(tmp_path / "unsaid"))
        assert enabled.read.load(str(tmp_path / "unsaid")).count() == 2
        numbered(enabled, 3).write.saveAsTable("unsaid")
        assert DeltaTable.forName(enabled, "unsaid").toDF().count() == 3
    finally:
        enabled.conf.unset("spark.sql.sources.default")


# --- columns by their table's name ---


def test_a_tables_name_stands_before_its_columns(enabled, database: str):
    make(enabled, "tgt", 4)
    make(enabled, "oth", 3)
    joined = enabled.table("tgt").join(enabled.table("oth"), sf.expr("tgt.id = oth.id"))
    assert joined.select("tgt.v", "oth.v").count() == 3
    for name in ("TGT", f"{database}.tgt", f"spark_catalog.{database}.tgt"):
        assert enabled.read.table("tgt").where(f"{name}.id = 1").count() == 1
    assert enabled.read.option("versionAsOf", 0).table("tgt").where("tgt.id = 1").count() == 1
    table = DeltaTable.forName(enabled, "tgt")
    assert table.toDF().where("tgt.id = 1").count() == 1
    made = enabled.sql("select 2L id, 5L v union all select 9L, 90L")
    table.merge(made.alias("s"), "tgt.id = s.id").whenMatchedUpdate(set={"tgt.v": "tgt.v + s.v"}).whenNotMatchedInsert(
        values={f"{database}.tgt.id": "s.id"}
    ).execute()
    assert rows(table) == [(0, 0), (1, 10), (2, 25), (3, 30), (9, None)]
    table.merge(enabled.table("oth"), "tgt.id = oth.id").whenMatchedUpdate(set={"v": "oth.v"}).execute()
    table.update("tgt.id = 1", {f"spark_catalog.{database}.tgt.v": "tgt.v + 1"})
    table.delete(f"{database}.tgt.id = 9")
    assert rows(table) == [(0, 0), (1, 11), (2, 20), (3, 30)]
    history = [(row["operation"], row["operationParameters"].get("predicate")) for row in table.history(4).collect()]
    assert history == [
        ("DELETE", '["(id = 9)"]'),
        ("UPDATE", '["(id = 1)"]'),
        ("MERGE", '["(id = oth.id)"]'),
        ("MERGE", '["(id = s.id)"]'),
    ], "the table's own name is left out"
    with pytest.raises(InvalidRequest) as caught:
        table.alias("z").delete("tgt.id = 2")
    assert caught.value.code == "invalid-expression", "an alias hides the name"


def test_conditions_by_a_tables_name_choose_files(enabled, database: str):
    make(enabled, "tgt", 4)
    numbered(enabled, 100).where("id >= 50").write.format("delta").mode("append").saveAsTable("tgt")
    table = DeltaTable.forName(enabled, "tgt")
    for condition in ("tgt.id = 70", f"spark_catalog.{database}.tgt.id = 70", "id = 70"):
        plain = DeltaTable.forPath(enabled, place_of(enabled, "tgt")).delete("id = 70", dry_run=True)
        assert table.delete(condition, dry_run=True).removed == plain.removed
        scans = alluvium.explain(enabled.table("tgt").where(condition))
        assert [scan.lane for scan in scans] == ["native"]


# --- columns of frames that the table handed out ---


@pytest.fixture
def table(enabled, tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "t")
    numbered(enabled, 5).write.format("delta").save(path)
    return DeltaTable.forPath(enabled, path)


def test_columns_of_to_df_work_in_verbs(enabled, table: DeltaTable):
    t = table.toDF()
    s = enabled.sql("select 2L id, 99L v union all select 50L, 500L")
    merge = table.merge(s, t["id"] == s["id"]).whenMatchedUpdate(t["v"] > 0, {"v": s["v"] + t["v"]})
    merge = merge.whenNotMatchedInsert(values={"id": s["id"], "v": s["v"]})
    assert merge.whenNotMatchedBySourceUpdate(t["id"] == 4, {"v": t["v"] + 1}).explain() is not None
    merge.whenNotMatchedBySourceUpdate(t["id"] == 4, {"v": t["v"] + 1}).execute()
    assert rows(table) == [(0, 0), (1, 10), (2, 119), (3, 30), (4, 41), (50, 500)]
    table.update((t["id"] == 1) | t.id.isin(0), {"v": t["v"] - 1})
    table.delete(t["id"] == 3)
    assert rows(table) == [(0, -1), (1, 9), (2, 119), (4, 41), (50, 500)]
    # By any alias, and as of an aliased frame.
    table.alias("x").delete((t["id"] == 4) & (t.alias("y")["v"] == 41) & (sf.col("x.id") > 0))
    table.delete(table.alias("z").toDF()["id"] == 50)
    assert rows(table) == [(0, -1), (1, 9), (2, 119)]


def test_columns_of_other_frames_stay_unknown(enabled, table: DeltaTable):
    other = enabled.sql("select 1L id")
    for condition in (other["id"] == 1, table.toDF().withColumn("w", sf.col("id") + 1)["w"] == 3):
        with pytest.raises(InvalidRequest) as caught:
            table.delete(condition)
        assert caught.value.code == "invalid-expression"
    assert table.toDF().count() == 5


def test_a_source_read_from_the_table_itself(enabled, table: DeltaTable):
    t = table.toDF()
    own = t.where("id < 2").withColumn("v", sf.lit(-1).cast("bigint"))
    with pytest.raises(InvalidRequest, match="one of the table's and one of the source's") as caught:
        table.merge(own, t["id"] == own["id"]).whenMatchedDelete().execute()
    assert caught.value.code == "invalid-expression"
    merge = table.alias("t").merge(own.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": own["v"] + t["v"]}).execute()
    assert rows(table) == [(0, -1), (1, 9), (2, 20), (3, 30), (4, 40)]


def test_an_insert_takes_columns_of_a_source_read_from_the_table_itself(enabled, table: DeltaTable):
    t = table.toDF()
    new = t.where("id < 2").withColumn("id", sf.col("id") + 100).filter(t["v"] >= 0)
    merge = table.alias("t").merge(new.alias("s"), "t.id = s.id")
    merge = merge.whenNotMatchedInsert(new["v"] > 0, {"id": new["id"], "v": new["v"] + 1})
    merge.whenNotMatchedBySourceUpdate(t["id"] == 4, {"v": t["v"] + 2}).execute()
    assert rows(table) == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 42), (101, 11)]
    other = enabled.sql("select 7L id, 7L v")
    with pytest.raises(InvalidRequest) as caught:
        table.merge(other, t["id"] == other["id"]).whenNotMatchedInsert(values={"id": t["id"]}).execute()
    assert caught.value.code == "invalid-expression", "a row that is inserted has none of the table"


def test_what_is_no_condition_is_refused(enabled, table: DeltaTable):
    source = enabled.sql("select 1L i, 2L w")
    merge = table.alias("t").merge(source, "t.id = i")
    for wrong in ("NULL", "1", "'true'", "id", "cast(null as int)", "array(1)"):
        for call in (
            lambda: table.delete(wrong),  # noqa: B023
            lambda: table.update(wrong, {"v": "0L"}),  # noqa: B023
            lambda: table.merge(source, wrong).whenMatchedDelete().execute(),  # noqa: B023
            lambda: merge.whenMatchedDelete(wrong).execute(),  # noqa: B023
        ):
            with pytest.raises(InvalidRequest, match="not boolean") as caught:
                call()
            assert caught.value.code == "invalid-expression"
    for wrong_column in (sf.lit(None), sf.lit(1)):
        with pytest.raises(InvalidRequest, match="not boolean"):
            table.delete(wrong_column)
    assert table.delete("cast(null as boolean)").attempts == 0
    assert table.delete("id = 1 and null").attempts == 0
    assert table.history().count() == 1


# --- writeTo ---


def test_overwrite_by_a_condition_is_about_the_table(enabled, database: str):
    make(enabled, "w", 3)
    data = enabled.sql("select 1L id, -1L v")
    data.createOrReplaceTempView("data_view")
    try:
        data.alias("d").writeTo("w").overwrite(sf.col("id") == 1)
        assert rows(enabled.table("w")) == [(0, 0), (1, -1), (2, 20)]
        enabled.table("data_view").writeTo("w").overwrite((sf.col("id") == 1) | (sf.col("v") > 15))
        assert rows(enabled.table("w")) == [(0, 0), (1, -1)]
        for wrong in (sf.col("d.id") == 1, data["id"] == 1, sf.col("nope") == 1, sf.lit(None), sf.lit(1)):
            with pytest.raises(InvalidRequest) as caught:
                data.alias("d").writeTo("w").overwrite(wrong)
            assert caught.value.code == "invalid-condition"
        assert rows(enabled.table("w")) == [(0, 0), (1, -1)]
    finally:
        enabled.catalog.dropTempView("data_view")


def test_a_table_to_create_is_described(enabled, database: str, tmp_path: Path):
    for option in ("description", "comment"):
        path = str(tmp_path / option)
        numbered(enabled, 1).write.format("delta").option(option, "of trips").save(path)
        assert alluvium.open(path).metadata.description == "of trips"
        numbered(enabled, 1).write.format("delta").mode("append").option(option, "of others").save(path)
        assert alluvium.open(path).metadata.description == "of trips", "for tables to create only"
        numbered(enabled, 1).write.format("delta").option(option, "of trips").saveAsTable(option)
        shown = DeltaTable.forName(enabled, option)
        assert shown.detail().collect()[0]["description"] == "of trips"
        assert shown.history().collect()[0]["operationParameters"]["description"] == "of trips"
    writer = numbered(enabled, 1).writeTo("made").using("delta").option("description", "by writeTo")
    writer.tableProperty("team", "north").create()
    found = DeltaTable.forName(enabled, "made").detail().collect()[0]
    assert (found["description"], found["properties"]) == ("by writeTo", {"team": "north"})


# --- paths ---


def test_a_point_in_time_behind_a_path(enabled, table: DeltaTable, tmp_path: Path):
    path = str(tmp_path / "t")
    numbered(enabled, 2).write.format("delta").mode("append").save(path)

    def load(point: str, **options: object) -> int:
        return enabled.read.format("delta").options(**options).load(path + point).count()

    assert [load("@v0"), load("@V1"), load("@v0/"), load("")] == [5, 7, 5, 7]
    assert enabled.table(f"delta.`{path}@v0`").count() == 5
    with pytest.raises(NotFound) as caught:
        load("@v9")
    assert caught.value.code == "missing-version"
    for wrong, error, code in (
        ("@v", NotFound, "not-a-table"),
        ("@2024", NotFound, "not-a-table"),
        ("@20241301000000000", InvalidRequest, "invalid-timestamp"),
    ):
        with pytest.raises(error) as refused:
            load(wrong)
        assert refused.value.code == code
    with pytest.raises(InvalidRequest) as both:
        load("@v0", versionAsOf=0)
    assert both.value.code == "version-and-timestamp"
    with pytest.raises(NotFound):
        DeltaTable.forPath(enabled, path + "@v0")
    assert not DeltaTable.isDeltaTable(enabled, path + "@v0")
    # A path may end like that.
    numbered(enabled, 1).write.format("delta").save(path + "@v0")
    assert load("@v0") == 1
    odd = str(tmp_path / "named@99999999999999999")
    numbered(enabled, 3).write.format("delta").save(odd)
    assert enabled.read.format("delta").load(odd).count() == 3
    enabled.conf.set(AT_PATHS, "false")
    try:
        with pytest.raises(NotFound):
            load("@v1")
    finally:
        enabled.conf.unset(AT_PATHS)
