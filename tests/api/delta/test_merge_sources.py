"""Sources of MERGE: columns that nobody takes, columns of one name, keys that fail, types that no table has."""

from __future__ import annotations

from pathlib import Path

import pytest
from dml_tables import MODES, make, rows_of
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable, IdentityGenerator
from alluvium.errors import InvalidRequest, UnsupportedFeature

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EVOLVE = "spark.databricks.delta.schema.autoMerge.enabled"


def small(spark: SparkSession, path: Path, columns: str = "id int, v string", row: str = "1 id, 'old' v") -> DeltaTable:
    builder = DeltaTable.create(spark).location(str(path))
    for column in columns.split(", "):
        builder = builder.addColumn(*column.split(" ", 1))
    table = builder.execute().alias("t")
    alluvium.write(spark.sql(f"select {row}"), str(path), mode="append")
    return table


def test_a_column_that_a_source_has_twice_is_ambiguous(spark, tmp_path):
    table = small(spark, tmp_path / "t")
    left, right = spark.sql("select 1 id, 'a' v, 0 w"), spark.sql("select 1 other, 'b' v, 1 w")
    merge = table.merge(left.join(right, left.id == right.other).alias("s"), "t.id = s.id")
    for wrong in (
        merge.whenMatchedUpdateAll(),
        merge.whenNotMatchedInsertAll(),
        merge.whenMatchedUpdate(set={"v": "s.v"}),
    ):
        with pytest.raises(InvalidRequest) as caught:
            wrong.execute()
        assert caught.value.code == "invalid-expression"
    # What nobody takes may be there as often as it likes.
    taken_once = table.merge(left.join(right.drop("v"), left.id == right.other).alias("s"), "t.id = s.id")
    taken_once.whenMatchedUpdateAll().execute()
    assert rows_of(table) == [(1, "a")]
    with pytest.raises(InvalidRequest, match="'w' stands twice"):
        taken_once.whenMatchedUpdateAll().withSchemaEvolution().execute()
    merge.whenMatchedDelete().execute()
    assert rows_of(table) == []


def test_case_tells_columns_apart_where_the_session_says_so(spark, tmp_path):
    table = small(spark, tmp_path / "t")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        source = spark.sql("select 1 id, 'a' v, 'B' V").alias("s")
        table.merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rows_of(table) == [(1, "a")]


@pytest.mark.parametrize("mode", MODES)
def test_keys_may_fail_in_rows_that_the_condition_rules_out(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode], rows=4).alias("t")
    source = spark.sql("select * from values ('1', true), ('x', false) as s(k, good)").alias("s")
    merge = table.merge(source, "s.good and t.id = cast(s.k as bigint)").whenMatchedUpdate(set={"v": "'new'"})
    plan = merge.explain()
    assert (plan.source_rows, plan.ranges) == (2, ())
    merge.execute()
    assert [row.v for row in rows_of(table)] == ["v0", "new", "v2", "v3"]


def test_intervals_nobody_takes_are_no_matter_and_those_that_are_taken_become_text(spark, tmp_path):
    table = small(spark, tmp_path / "t")
    source = spark.sql("select 1 id, 'x' v, interval 1 day extra").alias("s")
    table.merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()
    assert rows_of(table) == [(1, "x")]
    table.merge(source, "t.id = s.id + 1").whenNotMatchedInsertAll().execute()
    assert rows_of(table) == [(1, "x"), (1, "x")]
    table.update(set={"id": "2"})
    table.merge(source, "t.id = s.id").whenNotMatchedInsert(values={"v": "s.extra"}).withSchemaEvolution().execute()
    assert "INTERVAL '1' DAY" in [row.v for row in table.toDF().collect()]
    with pytest.raises(UnsupportedFeature, match="interval day"):
        table.merge(source, "t.id = s.id").whenNotMatchedInsertAll().withSchemaEvolution().execute()


@pytest.mark.parametrize("widening", ["false", "true"])
def test_a_merge_casts_where_the_table_does_not_allow_wider_types(spark, tmp_path, widening):
    builder = DeltaTable.create(spark).location(str(tmp_path / "t")).property("delta.enableTypeWidening", widening)
    for name, data_type in (("id", "int"), ("small", "tinyint"), ("s", "struct<x:smallint>")):
        builder = builder.addColumn(name, data_type)
    table = builder.execute().alias("t")
    source = spark.sql("select 1 id, 5 small, named_struct('x', 6, 'y', 7) s").alias("s")
    table.merge(source, "t.id = s.id").whenNotMatchedInsertAll().withSchemaEvolution().execute()
    found = table.toDF()
    narrow, middle = ("int", "int") if widening == "true" else ("tinyint", "smallint")
    assert found.schema.simpleString() == f"struct<id:int,small:{narrow},s:struct<x:{middle},y:int>>"
    assert found.selectExpr("id", "small", "s.x", "s.y").first() == (1, 5, 6, 7)


@pytest.mark.parametrize("mode", MODES)
def test_default_of_a_column_that_the_table_makes_is_what_it_makes(spark, tmp_path, mode):
    builder = DeltaTable.create(spark).location(str(tmp_path / "t"))
    builder = builder.addColumn("n", "bigint", generatedByDefaultAs=IdentityGenerator(start=100)).addColumn("id", "int")
    builder = builder.addColumn("twice", "int", generatedAlwaysAs="id * 2")
    for key, value in MODES[mode].items():
        builder = builder.property(key, value)
    table = builder.execute().alias("t")
    source = spark.sql("select 1 id").alias("s")
    given = {"n": "default", "twice": "DEFAULT", "id": "s.id"}
    table.merge(source, "t.id = s.id").whenNotMatchedInsert(values=given).execute()
    (row,) = table.toDF().collect()
    assert (row.n >= 100, row.id, row.twice) == (True, 1, 2)
    table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"id": "5", "twice": "default"}).execute()
    table.update("id = 5", {"twice": "default", "id": "6"})
    assert table.toDF().selectExpr("id", "twice").first() == (6, 12)
    with pytest.raises(InvalidRequest) as caught:
        table.merge(source, "t.id = s.id + 5").whenMatchedUpdate(set={"n": "default"}).execute()
    assert caught.value.code == "numbers-given"


def test_days_that_python_does_not_have_are_keys_as_well(spark, tmp_path):
    path = str(tmp_path / "t")
    far, early = "cast('+12000-01-01' as date)", "cast('-0400-01-01' as date)"
    rows = f"select date'2020-01-01' d, 1 v union all select {far}, 2 union all select {early}, 3"
    alluvium.write(spark.sql(rows).coalesce(1), path)
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.sql(f"select {far} d, 20 v union all select {early}, 30 union all select null, 40").alias("s")
    table.merge(source, "t.d = s.d").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [row.v for row in table.toDF().orderBy("v").select("v").collect()] == [1, 20, 30, 40]
    near = spark.sql("select date'2020-01-01' d, 10 v").alias("s")
    table.merge(near, "t.d = s.d").whenMatchedUpdateAll().execute()
    assert [row.v for row in table.toDF().orderBy("v").select("v").collect()] == [10, 20, 30, 40]


def test_explain_asks_the_session_whether_the_schema_evolves(spark, tmp_path):
    table = small(spark, tmp_path / "t")
    merge = table.merge(spark.sql("select 1 id, 'new' added").alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    with pytest.raises(InvalidRequest):
        merge.explain()
    spark.conf.set(EVOLVE, "true")
    try:
        assert merge.explain().source_rows == 1
    finally:
        spark.conf.unset(EVOLVE)


@pytest.mark.parametrize("mode", MODES)
def test_binary_partition_columns(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    values = {1: b"a", 2: "é".encode(), 3: b"/=%\\n", 4: None, 5: None}
    rows = spark.sql(
        "select * from values (1, X'61'), (2, X'C3A9'), (3, X'2F3D255C6E'), (4, null), (5, X'') as v(id, b)"
    )
    alluvium.write(rows.coalesce(1), path, partition_by=["b"], **MODES[mode])
    assert {r["id"]: r["b"] for r in alluvium.open(path).to_arrow().to_pylist()} == values
    frame = alluvium.read(spark, path)
    assert {row.id: None if row.b is None else bytes(row.b) for row in frame.collect()} == values
    assert [row.id for row in frame.where("b = X'C3A9'").collect()] == [2]
    assert sorted(row.id for row in frame.where("b is null").collect()) == [4, 5]
    table = DeltaTable.forPath(spark, path).alias("t")
    table.update("b = X'61'", {"id": "9"})
    source = spark.sql("select X'2F3D255C6E' b, 30 id").alias("s")
    table.merge(source, "t.b = s.b").whenMatchedUpdateAll().execute()
    table.delete("b is null and id = 4")
    assert sorted(row.id for row in alluvium.read(spark, path).collect()) == [2, 5, 9, 30]
    # The reference would store other bytes.
    for value in ("X'FF41'", "X'0061'"):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(spark.sql(f"select 1 id, {value} b"), path, mode="append")
        assert (caught.value.code, caught.value.column) == ("unrepresentable-partition-value", "b")


@pytest.mark.parametrize("named", ["source's alias", "no alias", "table's alias"])
def test_a_column_of_the_source_is_not_taken_for_one_of_the_table_because_it_prints_alike(spark, tmp_path, named):
    """`s.t.v` is the field `v` of a column `t`, and no word about the table's `t.v`: files are chosen by the condition."""
    table = small(spark, tmp_path / "t")
    alluvium.write(spark.sql("select 11 id, 'other' v"), str(tmp_path / "t"), mode="append")
    source = spark.sql("select n id, named_struct('v', 'other') t from values (1), (2) as x(n)")
    if named == "source's alias":
        source, condition = source.alias("s"), "t.id = s.id and s.t.v = 'other'"
        merge = table.merge(source, condition)
    elif named == "no alias":
        merge = table.merge(source, (sf.expr("t.id") == source["id"]) & (source["t"]["v"] == "other"))
    else:
        source = source.selectExpr("id as key", "t.v as v").alias("t")
        merge = table.merge(source, (sf.expr("t.id") == source["key"]) & (source["v"] == "other"))
    key = "key" if named == "table's alias" else "id"
    merge = merge.whenMatchedUpdate(set={"v": sf.lit("met")})
    merge.whenNotMatchedInsert(values={"id": source[key], "v": sf.lit("new")}).execute()
    assert rows_of(table) == [(1, "met"), (2, "new"), (11, "other")]


def test_keys_with_a_collation_match_in_whatever_file_they_are(spark, tmp_path):
    """The least of some texts is another one by a collation than by their bytes, by which statistics are."""
    path = tmp_path / "t"
    for key in ("abc", "xyz", "Mno"):
        alluvium.write(spark.sql(f"select '{key}' k, 0 v"), str(path), mode="append")
    first = path / f"_delta_log/{0:020d}.json"
    plain = r"\"name\":\"k\",\"type\":\"string\",\"nullable\":true,\"metadata\":{"
    collated = plain + r"\"__COLLATIONS\":{\"k\":\"spark.UTF8_LCASE\"}"
    assert plain in first.read_text()
    first.write_text(first.read_text().replace(plain, collated))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()
    source = spark.sql(
        "select cast(k as string collate utf8_lcase) k, 1 v from values ('ABC'), ('MNO'), ('XYZ') as t(k)"
    )
    merge = DeltaTable.forPath(spark, str(path)).alias("t").merge(source.alias("s"), "t.k = s.k")
    merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()
    assert sorted((r["k"], r["v"]) for r in alluvium.open(path).to_arrow().to_pylist()) == [
        ("Mno", 1), ("abc", 1), ("xyz", 1),
    ]  # fmt: skip
    fresh = spark.sql("select cast('xYz' as string collate utf8_lcase) k, 7 v")
    alluvium.write(fresh, str(path), mode="overwrite", replaceUsing="k")
    assert sorted((r["k"], r["v"]) for r in alluvium.open(path).to_arrow().to_pylist()) == [
        ("Mno", 1), ("abc", 1), ("xYz", 7),
    ]  # fmt: skip
