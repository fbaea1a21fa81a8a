"""MERGE and UPDATE on tables that evolve, count, default and cast: what stands in the new rows."""

from __future__ import annotations

import uuid

import pytest
from dml_tables import MODES, make, rows_of
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType, TimestampType

import alluvium
from alluvium import DeltaTable, IdentityGenerator
from alluvium.errors import InvalidRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FEED = {"delta.enableChangeDataFeed": "true"}
EVOLVE = "spark.databricks.delta.schema.autoMerge.enabled"


def create(spark, path: str, properties: dict[str, str], *columns: tuple[str, str], **made) -> DeltaTable:
    builder = DeltaTable.create(spark).location(path)
    for name, data_type in columns:
        builder = builder.addColumn(name, data_type, **made.get(name, {}))
    for key, value in properties.items():
        builder = builder.property(key, value)
    return builder.execute().alias("t")


def high_water_mark(path: str) -> int:
    return alluvium.open(path).schema.fields[0].metadata["delta.identity.highWaterMark"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("start", "step"), [(10, 5), (-1, -2)])
def test_inserted_rows_are_numbered(spark, tmp_path, mode, start, step):
    path = str(tmp_path / "t")
    counts = {"generatedAlwaysAs": IdentityGenerator(start=start, step=step)}
    table = create(
        spark, path, MODES[mode] | FEED, ("n", "bigint"), ("id", "int"), ("twice", "bigint"),
        n=counts, twice={"generatedAlwaysAs": "n * 2"},
    )  # fmt: skip
    alluvium.write(spark.sql("select cast(id as int) id from range(3)").coalesce(1), path, mode="append")
    before = {r["id"]: r["n"] for r in table.toDF().collect()}
    source = spark.sql("select * from values (1), (7), (8), (9) as s(id)").repartition(2).alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"id": "s.id + 100"})
    merge.whenNotMatchedInsert("s.id < 9", {"id": "s.id"}).whenNotMatchedInsertAll().execute()
    rows = {r["id"]: r for r in table.toDF().collect()}
    assert {i: rows[i]["n"] for i in (0, 101, 2)} == {0: before[0], 101: before[1], 2: before[2]}
    fresh = [rows[i]["n"] for i in (7, 8, 9)]
    assert all((n - start) % step == 0 and (n - start) // step > 2 for n in fresh)
    assert len({*fresh}) == 3
    assert all(r["twice"] == r["n"] * 2 for r in rows.values())
    feed = alluvium.open(path).changes(2)
    inserted = [r for r in feed.to_pylist() if r["_change_type"] == "insert"]
    assert {r["id"]: r["n"] for r in inserted} == {i: rows[i]["n"] for i in (7, 8, 9)}
    mark = high_water_mark(path)
    assert mark == (max if step > 0 else min)(fresh)
    # A merge that numbers no row leaves the mark where it is, though it writes older rows anew.
    merge.whenNotMatchedInsertAll("s.id > 100").execute()
    assert high_water_mark(path) == mark
    for wrong in (
        table.merge(source, "t.id = s.id + 50").whenNotMatchedInsert(values={"id": "s.id", "n": "1"}),
        table.merge(source.selectExpr("id", "1L as n").alias("s"), "t.id = s.id + 50").whenNotMatchedInsertAll(),
        table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "1"}),
    ):
        with pytest.raises(InvalidRequest) as caught:
            wrong.execute()
        assert (caught.value.code, caught.value.column) == ("numbers-given", "n")


@pytest.mark.parametrize("mode", MODES)
def test_no_number_is_made_twice(spark, tmp_path, mode):
    """By tasks as many as Spark makes them: nobody joins them where they number by how many there are."""
    path, settings = str(tmp_path / "t"), {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "7"}
    before = {key: spark.conf.get(key) for key in settings}
    counts = {"generatedAlwaysAs": IdentityGenerator()}
    table = create(spark, path, MODES[mode], ("n", "bigint"), ("id", "bigint"), n=counts)
    alluvium.write(spark.range(0, 500, 1, 3).toDF("id"), path, mode="append")
    source = spark.range(250, 3000, 1, 5).toDF("id").alias("s")
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"id": "-s.id"})
        merge.whenNotMatchedInsertAll().execute()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    found = table.toDF().selectExpr("count(*) rows", "count(distinct n) numbers", "max(n) last").first()
    assert (found["rows"], found["numbers"]) == (3000, 3000)
    assert high_water_mark(path) == found["last"]


@pytest.mark.parametrize("mode", MODES)
def test_numbers_are_made_where_none_are_given(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    counts = {"generatedByDefaultAs": IdentityGenerator()}
    table = create(spark, path, MODES[mode], ("n", "bigint"), ("id", "int"), n=counts)
    source = spark.sql("select * from values (1), (2) as s(id)").alias("s")
    merge = table.merge(source, "t.id = s.id").whenNotMatchedInsert("s.id = 1", {"id": "s.id", "n": "70"})
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    found = {r["id"]: r["n"] for r in table.toDF().collect()}
    # Which number is made goes by the task that made it.
    assert (found[1], found[2] in range(1, 9)) == (70, True)
    # As in the reference, numbers that were given beside made ones count for the mark.
    assert high_water_mark(path) == 70
    with pytest.raises(InvalidRequest, match="cannot be changed"):
        table.update("id = 1", {"n": "2"})


@pytest.mark.parametrize("mode", MODES)
def test_columns_that_clauses_set_are_added(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode]).alias("t")
    source = spark.sql("select 5L id, 1 p, 'n' new, 'unused' other").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"new": "concat(s.new, 1)"})
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert caught.value.code == "unknown-column"
    merge.withSchemaEvolution().execute()
    assert table.toDF().columns == ["id", "p", "v", "new"]
    assert [r["new"] for r in rows_of(table)][4:7] == [None, "n1", None]
    spark.conf.set(EVOLVE, "true")
    try:
        table.merge(source, "t.id = s.id").whenMatchedUpdateAll("s.id = 1000").execute()
    finally:
        spark.conf.unset(EVOLVE)
    # The table has its new column though no row came to it.
    assert (table.toDF().columns[-1], table.history(1).first()["operation"]) == ("other", "MERGE")


@pytest.mark.parametrize(
    ("stored", "comes"),
    [
        ("timestamp", "1L"),
        ("bigint", "timestamp'2024-01-02 03:04:05'"),
        ("boolean", "1.5D"),
        ("double", "true"),
        ("boolean", "cast(1.25 as decimal(5,2))"),
        ("timestamp", "true"),
    ],
)
def test_evolution_refuses_types_that_do_not_go_together(spark, tmp_path, stored, comes):
    """Though they can be cast, under some setting or other: as in the reference, schemas are merged before values are."""
    path = str(tmp_path / "t")
    table = create(spark, path, {}, ("id", "int"), ("a", stored), ("s", f"struct<a:{stored},b:int>"))
    for policy, ansi in (("ANSI", "true"), ("ANSI", "false"), ("LEGACY", "true")):
        spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            for column in (f"{comes} a", f"named_struct('a', {comes}, 'b', 2) s"):
                merge = table.merge(spark.sql(f"select 1 id, {column}").alias("n"), "t.id = n.id")
                name = column.split()[-1]
                for each in (
                    merge.whenMatchedUpdateAll(),
                    merge.whenNotMatchedInsertAll(),
                    merge.whenMatchedUpdate(set={name: f"n.{name}"}),
                ):
                    with pytest.raises(InvalidRequest, match="in the table and") as caught:
                        each.withSchemaEvolution().execute()
                    assert caught.value.code == "schema-mismatch"
        finally:
            spark.conf.unset("spark.sql.storeAssignmentPolicy")
            spark.conf.unset("spark.sql.ansi.enabled")
    assert alluvium.open(path).version == 0


def test_structs_go_by_name_in_updates_and_merges(spark, tmp_path):
    table = create(spark, str(tmp_path / "t"), {}, ("id", "int"), ("s", "struct<a:int,b:int>"))
    alluvium.write(spark.sql("select 1 id, named_struct('a', 0, 'b', 0) s"), str(tmp_path / "t"), mode="append")
    swapped = "named_struct('b', 1, 'a', 2)"
    table.update(set={"s": swapped})
    assert tuple(table.toDF().first()["s"]) == (2, 1)
    table.merge(spark.sql("select 1 id").alias("x"), "t.id = x.id").whenMatchedUpdate(
        set={"s": "named_struct('b', 3, 'a', 4)"}
    ).execute()
    assert tuple(table.toDF().first()["s"]) == (4, 3)
    lacking = table.merge(spark.sql("select 1 id, named_struct('a', 7) s").alias("x"), "t.id = x.id")
    for merge in (lacking.whenMatchedUpdateAll(), lacking.whenMatchedUpdate(set={"s": "x.s"})):
        with pytest.raises(InvalidRequest, match="has no column 's\\.b'"):
            merge.execute()
    for value, column in (("named_struct('a', 1)", "s.b"), ("date'2024-01-01'", "s")):
        with pytest.raises(InvalidRequest) as caught:
            table.update(set={"s": value})
        assert (caught.value.code, caught.value.column) == ("schema-mismatch", column)


@pytest.mark.parametrize("mode", MODES)
def test_values_that_do_not_fit_are_refused_in_our_words(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    for value in ("'x'", "3000000000L", "v"):
        with pytest.raises(InvalidRequest) as caught:
            table.update("id = 3", {"p": value})
        assert caught.value.code == "invalid-data"
    assert table.history(1).first()["version"] == 1


def test_defaults_and_subqueries_as_values(spark, tmp_path):
    path = str(tmp_path / "t")
    table = create(
        spark, path, {"delta.feature.allowColumnDefaults": "supported"}, ("id", "int"), ("v", "string"), ("w", "int")
    )
    alluvium.write(spark.sql("select 1 id, 'x' v, 2 w"), path, mode="append")
    table.update(set={"v": "DEFAULT", "w": "(select max(id) from range(7)) + 1"})
    assert tuple(table.toDF().first()) == (1, None, 7)
    table.update("id in (select 1)", {"v": "'y'"})
    assert tuple(table.toDF().first()) == (1, "y", 7)


def test_fields_may_be_set_in_inserts(spark, tmp_path):
    table = create(spark, str(tmp_path / "t"), {}, ("id", "int"), ("s", "struct<a:int,b:int>"))
    source = spark.sql("select 1 id").alias("x")
    table.merge(source, "t.id = x.id").whenNotMatchedInsert(values={"id": "x.id", "s.b": "7"}).execute()
    assert tuple(table.toDF().first()["s"]) == (None, 7)


def test_fields_that_a_source_lacks_keep_their_values_where_the_schema_evolves(spark, tmp_path):
    table = create(spark, str(tmp_path / "t"), {}, ("id", "int"), ("s", "struct<a:int,b:struct<c:int,d:int>>"))
    rows = spark.sql("select 1 id, named_struct('a', 1, 'b', named_struct('c', 2, 'd', 3)) s")
    alluvium.write(rows, str(tmp_path / "t"), mode="append")
    news = spark.sql("select 1 id, named_struct('B', named_struct('C', 20), 'e', 5) s union all select 2, null")
    merge = table.merge(news.alias("n"), "t.id = n.id").withSchemaEvolution().whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll().execute()
    found = {r["id"]: r["s"] and r["s"].asDict(recursive=True) for r in table.toDF().collect()}
    assert found == {1: {"a": 1, "b": {"c": 20, "d": 3}, "e": 5}, 2: None}


def test_the_feed_tells_the_values_that_the_table_has(spark, tmp_path):
    """Rows of one merge, in the table and in the feed: where a value is another each time, it is computed once."""
    said = sf.udf(lambda: str(uuid.uuid4()), "string").asNondeterministic()
    path = str(tmp_path / "t")
    table = create(spark, path, {**FEED, **MODES["mask"]}, ("id", "int"), ("v", "string"))
    alluvium.write(spark.sql("select 1 id, 'old' v"), path, mode="append")
    source = spark.sql("select * from values (1), (2), (3) as s(id)").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": said()})
    merge.whenNotMatchedInsert(values={"id": "s.id", "v": said()}).execute()
    told = alluvium.open(path).changes(2, where="_change_type in ('insert', 'update_postimage')")
    assert sorted(zip(*told.select(["id", "v"]).to_pydict().values(), strict=True)) == rows_of(table)


@pytest.mark.parametrize("mode", MODES)
def test_one_merge_has_one_time(spark, tmp_path, mode):
    """Defaults and expressions of the statement, in rows that change and in new ones, in the table and in its feed."""
    path = str(tmp_path / "t")
    when = StructField("w", TimestampType(), True, {"CURRENT_DEFAULT": "current_timestamp()"})
    builder = DeltaTable.create(spark).location(path).addColumn("id", "int").addColumns(StructType([when]))
    for key, value in {**FEED, **MODES[mode], "delta.feature.allowColumnDefaults": "supported"}.items():
        builder = builder.property(key, value)
    table = builder.execute().alias("t")
    alluvium.write(
        spark.sql("select 1 id, timestamp'2020-01-01' w union all select 2, null").coalesce(1), path, mode="append"
    )
    source = spark.sql("select * from values (1), (2), (3), (4) as s(id)").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate("s.id = 1", {"w": "default"})
    merge = merge.whenMatchedUpdate(set={"w": "current_timestamp()"})
    merge = merge.whenNotMatchedInsert("s.id = 3", {"id": "s.id"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "w": "now()"}).execute()
    told = alluvium.open(path).changes(2, where="_change_type in ('insert', 'update_postimage')")
    rows = alluvium.open(path).to_arrow()
    assert len({*rows["w"].to_pylist(), *told["w"].to_pylist()}) == 1
    assert (rows.num_rows, told.num_rows, told["w"].null_count) == (4, 4, 0)
