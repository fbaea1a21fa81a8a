"""Rows into Paimon tables by name: `writeTo`, `insertInto` and `saveAsTable`, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

import alluvium
from alluvium.api.names.warehouses import find_named, url_of
from alluvium.errors import AlluviumError, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema.table_schema import TableSchema

pytestmark = pytest.mark.spark

_ROWS = [(1, "a", 1), (2, "a", 2), (3, "b", 3)]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    alluvium.enable(spark, catalogs={"lake": str(tmp_path_factory.mktemp("warehouse"))})
    spark.sql("CREATE DATABASE lake.w")
    yield spark
    alluvium.disable(spark)


@pytest.fixture(params=["", "'primary-key' = 'p,k', 'bucket' = '1'"], ids=["append", "keys"])
def table(lake: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    properties = f" TBLPROPERTIES ({request.param})" if request.param else ""
    lake.sql(f"CREATE TABLE lake.w.t (k INT, p STRING, v BIGINT) PARTITIONED BY (p){properties}")
    lake.sql("INSERT INTO lake.w.t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    yield "lake.w.t"
    lake.sql("DROP TABLE lake.w.t")


def made(lake: SparkSession, rows: list[tuple[object, ...]], schema: str = "k int, p string, v bigint") -> DataFrame:
    return lake.createDataFrame(rows, schema)


def held(lake: SparkSession, table: str = "lake.w.t") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.table(table).select("k", "p", "v").collect())


def schema_of(lake: SparkSession, table: str) -> TableSchema:
    named = find_named(lake, ["lake", "w", table])
    assert named is not None
    return PaimonTable.forPath(url_of(lake, named)).schema


def test_columns_go_by_name_and_types_are_cast(lake: SparkSession, table: str) -> None:
    made(lake, [(10, 4, "c")], "V int, k bigint, p string").writeTo(table).append()
    made(lake, [(11, 5, "c")], "v bigint, k int, p string").write.mode("append").saveAsTable(table)
    made(lake, [(6, "d")], "k int, p string").writeTo(table).append()
    assert held(lake) == [*_ROWS, (4, "c", 10), (5, "c", 11), (6, "d", None)]
    extra = made(lake, [(7, "d", 1, 2)], "k int, p string, v bigint, z int")
    for write in (lambda: extra.writeTo(table).append(), lambda: extra.write.mode("append").saveAsTable(table)):
        with pytest.raises(InvalidRequest) as refused:
            write()
        assert refused.value.code == "schema-mismatch"
    extra.writeTo(table).option("mergeSchema", "true").append()
    assert lake.table(table).columns == ["k", "p", "v", "z"]


def test_insert_into_goes_by_place(lake: SparkSession, table: str) -> None:
    made(lake, [(4, "c", 4)], "v int, k string, p int").write.insertInto(table)
    assert held(lake) == [*_ROWS, (4, "c", 4)]
    with pytest.raises(InvalidRequest, match="not enough columns"):
        made(lake, [(4, "c")], "k int, p string").write.insertInto(table)
    with pytest.raises(InvalidRequest, match="partitionBy"):
        made(lake, _ROWS).write.partitionBy("p").insertInto(table)
    lake.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        made(lake, [(9, "a", 9)]).write.insertInto(table, overwrite=True)
    finally:
        lake.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert held(lake) == [(3, "b", 3), (4, "c", 4), (9, "a", 9)]
    made(lake, [(5, "e", 5)]).write.mode("overwrite").insertInto(table)
    assert held(lake) == [(5, "e", 5)]


def test_overwrites_by_condition_and_by_partition(lake: SparkSession, table: str) -> None:
    made(lake, [(7, "a", 7), (8, "d", 8)]).writeTo(table).overwritePartitions()
    assert held(lake) == [(3, "b", 3), (7, "a", 7), (8, "d", 8)]
    made(lake, [(9, "a", 9)]).writeTo(table).overwrite(sf.col("p") == "a")
    assert held(lake) == [(3, "b", 3), (8, "d", 8), (9, "a", 9)]
    for condition in (sf.col("p") == "b", sf.col("k") == 3):
        with pytest.raises(AlluviumError):  # a row that is not there; a column that no partition is named by
            made(lake, [(9, "a", 9)]).writeTo(table).overwrite(condition)
    made(lake, []).writeTo(table).overwritePartitions()
    assert held(lake) == [(3, "b", 3), (8, "d", 8), (9, "a", 9)]
    lake.table(table).where("k = 3").withColumn("v", sf.col("v") + 1).writeTo(table).overwrite(sf.lit(True))
    assert held(lake) == [(3, "b", 4)]


def test_modes_of_a_table_that_is_there(lake: SparkSession, table: str) -> None:
    rows, before = made(lake, [(5, "e", 5)]), held(lake)
    for write in (lambda: rows.write.saveAsTable(table), lambda: rows.writeTo(table).create()):
        with pytest.raises(InvalidRequest) as refused:
            write()
        assert refused.value.code == "table-exists"
    rows.write.mode("ignore").saveAsTable(table)
    with pytest.raises(InvalidRequest) as refused:
        rows.write.mode("append").partitionBy("k").saveAsTable(table)
    assert refused.value.code == "partition-mismatch"
    with pytest.raises(InvalidRequest) as refused:
        rows.write.format("parquet").mode("append").saveAsTable(table)
    assert refused.value.code == "format-of-table"
    assert held(lake) == before


def test_a_table_is_replaced_by_one_that_is_described_alike_alone(lake: SparkSession, table: str) -> None:
    rows, before = made(lake, [(5, "e", 5)]), held(lake)
    options = dict(schema_of(lake, "t").options)
    if schema_of(lake, "t").primary_keys:
        options["primary-key"] = "p,k"
    others: list[Callable[[], None]] = [
        lambda: rows.write.mode("overwrite").saveAsTable(table),
        lambda: rows.writeTo(table).replace(),
        lambda: (
            rows.writeTo(table).partitionedBy("p").tableProperty("snapshot.num-retained.max", "20").createOrReplace()
        ),
        lambda: lake.sql(f"CREATE OR REPLACE TABLE {table} AS SELECT 1 AS k").collect() and None,
        lambda: lake.sql(f"CREATE OR REPLACE TABLE {table} (k INT)").collect() and None,
    ]
    for write in others:
        with pytest.raises(UnsupportedFeature) as refused:
            write()
        assert refused.value.code == "unsupported-statement" and held(lake) == before
    rows.write.mode("overwrite").partitionBy("p").options(**options).saveAsTable(table)
    assert held(lake) == [(5, "e", 5)]
    writer = made(lake, [(6, "e", 6)]).writeTo(table).partitionedBy("p")
    for key, value in options.items():
        writer.tableProperty(key, value)
    writer.replace()
    assert held(lake) == [(6, "e", 6)]


def test_a_database_that_is_not_there_is_not_made_by_the_way(lake: SparkSession) -> None:
    rows = made(lake, [(5, "e", 5)])
    for write in (
        lambda: rows.writeTo("lake.nodb.t").create(),
        lambda: rows.writeTo("lake.nodb.t").createOrReplace(),
        lambda: rows.write.mode("append").saveAsTable("lake.nodb.t"),
        lambda: lake.sql("CREATE TABLE lake.nodb.t AS SELECT 1 AS k"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            write()
        assert refused.value.code == "unknown-database"
    assert "nodb" not in [row[0] for row in lake.sql("SHOW DATABASES IN lake").collect()]


def test_a_name_of_no_warehouse_makes_no_paimon_table(lake: SparkSession) -> None:
    writer = made(lake, [(5, "e", 5)])
    for write in (
        lambda: writer.writeTo("default.none_of_a_warehouse").using("paimon").create(),
        lambda: writer.writeTo("none_of_a_warehouse").using("Paimon").createOrReplace(),
        lambda: writer.write.format("paimon").saveAsTable("default.none_of_a_warehouse"),
    ):
        with pytest.raises(UnsupportedFeature) as refused:
            write()
        assert refused.value.code == "unsupported-catalog"
    assert not lake.catalog.tableExists("default.none_of_a_warehouse")


def test_tables_are_made(lake: SparkSession) -> None:
    known = StructType([StructField("k", LongType(), nullable=False)])
    rows = lake.createDataFrame([(5,)], known).selectExpr("k", "'e' p", "k v")
    rows.write.format("paimon").partitionBy("p").option("primary-key", "p,k").option("bucket", 2).saveAsTable(
        "lake.w.n"
    )
    rows.writeTo("lake.w.o").using("paimon").tableProperty("comment", "told").partitionedBy("p").create()
    rows.limit(0).write.mode("overwrite").saveAsTable("lake.w.q")
    rows.write.mode("append").saveAsTable("lake.w.r")
    try:
        n, o = schema_of(lake, "n"), schema_of(lake, "o")
        assert (n.partition_keys, n.primary_keys, n.options["bucket"]) == (("p",), ("p", "k"), "2")
        assert [f.name for f in n.fields if not f.type.nullable] == ["k", "p"]
        assert (o.partition_keys, o.comment) == (("p",), "told")
        assert all(f.type.nullable for f in o.fields), "what a query knows of nulls is no rule of the table"
        assert [held(lake, f"lake.w.{name}") for name in "noqr"] == [[(5, "e", 5)], [(5, "e", 5)], [], [(5, "e", 5)]]
        lake.sql("USE lake.w")
        made(lake, [(6, "f", 6)]).writeTo("o").append()
        assert held(lake, "lake.w.o") == [(5, "e", 5), (6, "f", 6)]
    finally:
        lake.sql("USE spark_catalog.default")
        for name in "noqr":
            lake.sql(f"DROP TABLE lake.w.{name}")


def test_of_a_table_that_cannot_be_made_nothing_stays(lake: SparkSession) -> None:
    rows = made(lake, _ROWS)
    failing = rows.withColumn("v", sf.raise_error(sf.lit("no value")).cast("bigint"))
    refused: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: failing.write.saveAsTable("lake.w.x"), Exception),
        (lambda: lake.sql("CREATE TABLE lake.w.x AS SELECT raise_error('no value') AS k"), Exception),
        (lambda: rows.write.option("primary-key", "none").saveAsTable("lake.w.x"), InvalidRequest),
        (lambda: rows.write.option("nothing", "1").saveAsTable("lake.w.x"), InvalidRequest),
        (lambda: rows.write.option("path", "/tmp/x").saveAsTable("lake.w.x"), UnsupportedFeature),
        (lambda: rows.write.option("branch", "b").saveAsTable("lake.w.x"), InvalidRequest),
        (lambda: rows.write.format("delta").saveAsTable("lake.w.x"), InvalidRequest),
        (lambda: rows.write.clusterBy("k").saveAsTable("lake.w.x"), UnsupportedFeature),
        (lambda: rows.write.bucketBy(2, "k").saveAsTable("lake.w.x"), UnsupportedFeature),
        (lambda: rows.writeTo("lake.w.x").using("parquet").create(), InvalidRequest),
        (lambda: rows.writeTo("lake.w.x").clusterBy("k").create(), UnsupportedFeature),
        (lambda: rows.writeTo("lake.w.x").replace(), NotFound),
        (lambda: rows.writeTo("lake.w.x").append(), AnalysisException),
        (lambda: rows.writeTo("lake.w.x").overwritePartitions(), AnalysisException),
        (lambda: rows.write.insertInto("lake.w.x"), AnalysisException),
        (lambda: lake.sql("CREATE TABLE lake.w.x USING delta AS SELECT 1 AS k"), UnsupportedFeature),
        (lambda: rows.write.format("paimon").saveAsTable("elsewhere"), UnsupportedFeature),
    ]
    for write, kind in refused:
        with pytest.raises(kind):
            write()
        assert [row[1] for row in lake.sql("SHOW TABLES IN lake.w").collect()] == []
    assert not lake.catalog.tableExists("elsewhere")


def test_branches_and_system_tables(lake: SparkSession, table: str) -> None:
    rows = made(lake, [(5, "e", 5)])
    lake.sql("CALL lake.sys.create_tag('w.t', 'first')")
    lake.sql("CALL lake.sys.create_branch(table => 'w.t', branch => 'b', tag => 'first')")
    rows.writeTo("lake.w.`t$branch_b`").append()
    made(lake, [(6, "f", 6)]).write.insertInto("lake.w.`t$branch_b`")
    made(lake, [(7, "g", 7)]).write.mode("append").saveAsTable("lake.w.`t$branch_b`")
    assert held(lake, "lake.w.`t$branch_b`") == [*_ROWS, (5, "e", 5), (6, "f", 6), (7, "g", 7)]
    assert held(lake) == _ROWS
    for name in ("lake.w.`t$snapshots`", "lake.w.`none$branch_b`"):
        refused: list[Callable[[], object]] = [
            lambda: rows.write.saveAsTable(name),  # noqa: B023
            lambda: rows.writeTo(name).createOrReplace(),  # noqa: B023
            lambda: rows.write.mode("overwrite").saveAsTable(name),  # noqa: B023
        ]
        if "snapshots" in name:
            refused += [
                lambda: rows.write.mode("append").saveAsTable(name),  # noqa: B023
                lambda: rows.writeTo(name).append(),  # noqa: B023
                lambda: rows.writeTo(name).overwrite(sf.lit(True)),  # noqa: B023
                lambda: rows.write.insertInto(name),  # noqa: B023
            ]
        for write in refused:
            with pytest.raises(InvalidRequest) as caught:
                write()
            assert caught.value.code == "invalid-name"


def test_a_temporary_view_hides_a_table_from_inserts(lake: SparkSession, table: str) -> None:
    rows = made(lake, [(5, "e", 5)])
    lake.sql("USE lake.w")
    lake.range(1).createOrReplaceTempView("t")
    try:
        for write in (
            lambda: rows.writeTo("t").append(),
            lambda: rows.write.insertInto("t"),
            lambda: lake.sql("INSERT INTO t VALUES (5, 'e', 5)"),
        ):
            with pytest.raises(AnalysisException):
                write()
        with pytest.raises((AnalysisException, Py4JJavaError)):  # Spark's own words for a view of this kind
            lake.sql("DELETE FROM t")
    finally:
        lake.catalog.dropTempView("t")
        lake.sql("USE spark_catalog.default")
    assert held(lake) == _ROWS


def test_paths(lake: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    url = str(tmp_path_factory.mktemp("paths") / "t")
    rows, name = made(lake, [(1, "a", 1)]), f"paimon.`{url}`"
    with pytest.raises(UnsupportedFeature):
        rows.write.format("paimon").saveAsTable(name)
    rows.write.format("paimon").save(url)
    rows.writeTo(name).append()
    rows.write.insertInto(name)
    rows.write.format("paimon").mode("append").saveAsTable(name)
    assert held(lake, name) == [(1, "a", 1)] * 4
