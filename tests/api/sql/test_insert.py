"""INSERT and TRUNCATE by SQL, about tables by name and by path; what delta-spark does is in tests/interop."""

from __future__ import annotations

import copy
import gc
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as s

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.scan.native_lane.index import planned_files, remember_index

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def enabled(spark, tmp_path_factory) -> Iterator[SparkSession]:
    """A session with a database of its own."""
    alluvium.enable(spark)
    name = f"d_{uuid.uuid4().hex[:8]}"
    spark.sql(f"create database {name} location '{tmp_path_factory.mktemp('warehouse')}'")
    spark.catalog.setCurrentDatabase(name)
    yield spark
    spark.catalog.setCurrentDatabase("default")
    spark._jsparkSession.sessionState().catalog().dropDatabase(name, True, True)
    alluvium.disable(spark)


def rows(spark: SparkSession, name: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=str)


def last(spark: SparkSession, name: str) -> tuple[str, dict[str, str]]:
    row = DeltaTable.forName(spark, name).history(1).collect()[0]
    return row["operation"], row["operationParameters"]


class TestColumns:
    @pytest.fixture(scope="class")
    def made(self, enabled) -> str:
        default = s.StructType([s.StructField("d", s.StringType(), True, {"CURRENT_DEFAULT": "'x'"})])
        builder = DeltaTable.create(enabled).tableName("made").addColumn("a", "int")
        builder = builder.addColumn("g", "int", generatedAlwaysAs="a + 1").addColumns(default)
        builder.property("delta.feature.allowColumnDefaults", "supported").execute()
        return "made"

    def test_left_out_columns_are_what_the_table_makes_of_them(self, enabled, made: str):
        answer = enabled.sql(f"INSERT INTO {made} (A) VALUES (1), (2)")
        assert (answer.columns, answer.collect()) == ([], [])
        enabled.sql(f"insert /* a */ into {made} by name select 3L a, null d")
        assert rows(enabled, made) == [(1, 2, "x"), (2, 3, "x"), (3, 4, None)]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("values (10, default, default), (11, default, 'y')", [(10, 11, "x"), (11, 12, "y")]),
            ("select 12, default, default", [(12, 13, "x")]),
            ("select a + 10, default, 'default' from made where a = 3", [(13, 14, "default")]),
        ],
    )
    def test_the_word_default(self, enabled, made: str, query: str, expected: list[tuple]):
        before = rows(enabled, made)
        enabled.sql(f"insert into {made} {query}")
        assert sorted(set(rows(enabled, made)) - set(before)) == expected

    def test_a_column_that_is_called_default(self, enabled, made: str):
        before = rows(enabled, made)
        enabled.sql(f"insert into {made} (a, d) select a, default from (select 15 a, 'column' default)")
        enabled.sql(f"insert into {made} (a, d) select a, default from (select 16 a)")
        assert sorted(set(rows(enabled, made)) - set(before)) == [(15, 16, "column"), (16, 17, "x")]

    def test_default_beside_values_of_a_column_that_the_table_makes(self, enabled, made: str):
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(f"insert into {made} values (20, default, 'x'), (21, 22, 'x')")
        assert caught.value.code == "numbers-given"
        with pytest.raises(AnalysisException, match="DEFAULT"):
            enabled.sql(f"insert into {made} select 1 + default, 2, 'x'")

    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("values (1)", "schema-mismatch"),
            ("values (1, 2, 'x', 4)", "schema-mismatch"),
            ("(a, A) values (1, 2)", "assigned-twice"),
            ("(a, z) values (1, 2)", "unknown-column"),
            ("by name select 1 a, 2 z", "schema-mismatch"),
            ("partition (a = 1) values (1, 'x')", "invalid-partition-column"),
            ("select 1, date'2020-01-01', 'x'", "schema-mismatch"),
        ],
    )
    def test_refusals_write_nothing(self, enabled, made: str, statement: str, code: str):
        version = alluvium.open(DeltaTable.forName(enabled, made).detail().collect()[0]["location"]).version
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(f"insert into {made} {statement}")
        assert caught.value.code == code
        assert alluvium.open(DeltaTable.forName(enabled, made).detail().collect()[0]["location"]).version == version

    def test_structs_go_by_place_unless_by_name(self, enabled):
        enabled.sql("select 1 a, named_struct('x', 1, 'y', 'b') s, array(named_struct('x', 1, 'y', 'b')) l").limit(
            0
        ).write.format("delta").saveAsTable("nested")
        enabled.sql(
            "insert into nested values (1, named_struct('p', 1, 'q', 'b'), array(named_struct('p', 2, 'q', 'c')))"
        )
        enabled.sql("insert into nested by name select named_struct('y', 'd', 'x', 3) s, 2 a")
        with pytest.raises(InvalidRequest):
            enabled.sql("insert into nested values (3, named_struct('x', 1), null)")
        for lacking in ("named_struct('y', 'e') s", "array(named_struct('x', 4)) l"):
            with pytest.raises(InvalidRequest) as caught:
                enabled.sql(f"insert into nested by name select 4 a, {lacking}")
            assert caught.value.getCondition() == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
        assert rows(enabled, "nested") == [(1, (1, "b"), [(2, "c")]), (2, (3, "d"), None)]


class TestWhatGoes:
    @pytest.fixture
    def parts(self, enabled) -> Iterator[str]:
        name = f"parts_{uuid.uuid4().hex[:8]}"
        frame = enabled.sql("select * from values (1, 'x', 1), (2, 'y', 2), (3, 'x', 2) as t(a, p, q)")
        frame.write.format("delta").partitionBy("p", "q").saveAsTable(name)
        yield name
        enabled.sql(f"drop table {name}")

    def test_static_partitions(self, enabled, parts: str):
        enabled.sql(f"insert into {parts} partition (P = 'x', q = 1) values (4)")
        enabled.sql(f"insert overwrite {parts} partition (p = 'x', q) select 5, 7")
        assert rows(enabled, parts) == [(2, "y", 2), (5, "x", 7)]
        assert last(enabled, parts)[1]["predicate"] == "(p <=> 'x')"
        enabled.sql(f"insert into {parts} partition (p = null, q = '3') (a) select 6")
        enabled.sql(f"insert overwrite {parts} partition (p = null, q = 3) values (7)")
        assert rows(enabled, parts) == [(2, "y", 2), (5, "x", 7), (7, None, 3)]

    def test_dynamic_partitions(self, enabled, parts: str):
        enabled.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            enabled.sql(f"insert overwrite {parts} partition (p, q) values (8, 'x', 1)")
            assert rows(enabled, parts) == [(2, "y", 2), (3, "x", 2), (8, "x", 1)]
            enabled.sql(f"insert overwrite {parts} partition (p = 'y', q) values (9, 2)")
            enabled.conf.set("spark.databricks.delta.dynamicPartitionOverwrite.enabled", "false")
            with pytest.raises(InvalidRequest):
                enabled.sql(f"insert overwrite {parts} values (10, 'x', 1)")
        finally:
            enabled.conf.unset("spark.sql.sources.partitionOverwriteMode")
            enabled.conf.unset("spark.databricks.delta.dynamicPartitionOverwrite.enabled")
        assert rows(enabled, parts) == [(3, "x", 2), (8, "x", 1), (9, "y", 2)]

    def test_replace_where_reads_its_own_target(self, enabled, parts: str):
        enabled.sql(
            f"insert into {parts} replace where p = 'x' and a < 3 select a + 1, p, q + 1 from {parts} where a = 1"
        )
        assert rows(enabled, parts) == [(2, "x", 2), (2, "y", 2), (3, "x", 2)]
        with pytest.raises(InvalidRequest):
            enabled.sql(f"insert into {parts} replace where p = 'x' values (1, 'y', 1)")
        enabled.sql(f"insert overwrite {parts} select a * 10, p, q from {parts}")
        assert [row[0] for row in rows(enabled, parts)] == [20, 20, 30]

    def test_truncate_keeps_the_history(self, enabled, parts: str):
        with pytest.raises(UnsupportedFeature):
            enabled.sql(f"truncate table {parts} partition (p = 'x')")
        answer = enabled.sql(f"TRUNCATE TABLE {parts}")
        assert (answer.columns, rows(enabled, parts)) == ([], [])
        assert last(enabled, parts) == ("TRUNCATE", {})
        assert len(enabled.sql(f"select * from {parts} version as of 0").collect()) == 3


class TestStatements:
    @pytest.fixture(scope="class")
    def tables(self, enabled) -> None:
        for name in ("s", "t", "u"):
            enabled.sql("select 1 a, 'one' b").limit(int(name == "s")).write.format("delta").saveAsTable(name)
        enabled.sql("create table plain (a int, b string) using parquet")

    def test_queries_before_and_within(self, enabled, tables):
        enabled.sql("with x as (select :n a) insert into t select a, 'with' from x", {"n": 10})
        enabled.sql("insert into t with x as (select ? a, '?' b) select * from x", [11])
        enabled.sql("insert into t (b, a) values (:b, :a)", {"b": "'); drop table t", "a": 12})
        enabled.sql("insert into identifier(:t) from s select a, b", {"t": "t"})
        expected = [(1, "one"), (10, "with"), (11, "?"), (12, "'); drop table t")]
        assert rows(enabled, "t") == sorted(expected, key=str)

    def test_several_tables_from_one_source(self, enabled, tables, tmp_path: Path):
        path = f"{tmp_path}/by path"
        enabled.sql("select 1 a, 'x' b").limit(0).write.format("delta").save(path)
        enabled.sql(f"from s insert into u select a + 1, b insert overwrite delta.`{path}` select a + 2, b")
        enabled.sql("from u insert into u select a + 10, b insert into plain select a, b")
        assert rows(enabled, "u") == sorted([(2, "one"), (12, "one")], key=str)
        assert rows(enabled, f"delta.`{path}`") == [(3, "one")]
        assert rows(enabled, "plain") == [(2, "one")]

    def test_other_tables_are_sparks(self, enabled, tables, tmp_path: Path):
        enabled.sql("insert overwrite plain select * from s")
        enabled.sql(f"insert overwrite directory '{tmp_path}/d' using parquet select * from s")
        assert rows(enabled, "plain") == [(1, "one")]
        assert enabled.read.parquet(f"{tmp_path}/d").count() == 1
        enabled.sql("truncate table plain")
        assert rows(enabled, "plain") == []
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            enabled.sql("insert into nowhere values (1)")
        with pytest.raises(ParseException):
            enabled.sql("insert into t valuess (1)")

    def test_schema_evolution(self, enabled, tables):
        enabled.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
        try:
            enabled.sql("insert into s by name select 2 a, 'more' c")
        finally:
            enabled.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
        assert rows(enabled, "s") == [(1, "one", None), (2, None, "more")]


class TestPaimon:
    def test_rows_go_in_and_all_go(self, enabled, tmp_path: Path):
        path = f"{tmp_path}/a paimon table"
        frame = enabled.sql("select * from values (1, 'x', 'p'), (2, 'y', 'q') as t(a, b, p)")
        alluvium.write(frame, path, format="paimon", partition_by="p")
        name = f"paimon.`{path}`"
        enabled.sql(f"insert into {name} (p, a) values ('q', '3'), ('r', '4')")
        enabled.sql(f"insert overwrite {name} partition (p = 'p') select a, 'new' from {name} where a = 1")
        expected = [(1, "new", "p"), (2, "y", "q"), (3, None, "q"), (4, None, "r")]
        assert rows(enabled, name) == expected
        enabled.sql(f"insert into {name} replace where p = 'q' values (5, 'z', 'q')")
        assert [row[0] for row in rows(enabled, name)] == [1, 4, 5]
        enabled.sql(f"TRUNCATE TABLE {name}")
        assert rows(enabled, name) == []
        assert len(enabled.read.format("paimon").option("versionAsOf", 1).load(path).collect()) == 2


def test_a_directory_of_files_is_no_table(enabled, tmp_path):
    with pytest.raises(UnsupportedFeature, match="makes files, not a delta table"):
        enabled.sql(f"insert overwrite directory '{tmp_path}' using delta select 1 a")
    enabled.sql(f"insert overwrite directory '{tmp_path}/files' using parquet select 1 a")
    assert enabled.read.parquet(f"{tmp_path}/files").collect() == [(1,)]


class TestSeveral:
    @pytest.fixture
    def pair(self, enabled) -> Iterator[SparkSession]:
        enabled.sql("create table one using delta as select 1 id, 'a' v")
        enabled.sql("create table two (id int, v string) using delta")
        yield enabled
        enabled.sql("drop table one")
        enabled.sql("drop table two")

    def test_each_sees_what_those_before_it_wrote(self, pair):
        pair.sql(
            "from one insert overwrite one select id + 10, v insert into two select * insert into one select 0, 'z'"
        )
        assert (rows(pair, "one"), rows(pair, "two")) == ([(0, "z"), (11, "a")], [(11, "a")])

    def test_nothing_is_written_where_one_is_wrong(self, pair):
        with pytest.raises(InvalidRequest):
            pair.sql("from one insert into two select * insert overwrite one select id")
        assert rows(pair, "two") == []


def test_columns_that_must_be_given(enabled):
    enabled.sql("create table required (a int, b int not null) using delta")
    for text in ("insert into required (a) values (1)", "insert into required by name select 1 a"):
        with pytest.raises(InvalidRequest, match="'b', which must not be null, is not given"):
            enabled.sql(text)
    enabled.sql("insert into required (b) values (1)")
    assert rows(enabled, "required") == [(None, 1)]


def test_replace_on(enabled):
    if enabled.version < "4.2":
        pytest.skip("Spark's parser knows REPLACE ON from 4.2 on")
    enabled.sql("create table met using delta as select id, 'old' v from range(4)")
    enabled.sql(
        "insert into met as x replace on x.id = s.id and x.id > 1 (values (1L, 'new'), (2L, 'new') as n(id, v)) as s"
    )
    assert rows(enabled, "met") == [(0, "old"), (1, "new"), (1, "old"), (2, "new"), (3, "old")]
    with pytest.raises(InvalidRequest, match="called like those of the table"):
        enabled.sql("insert into met as x replace on x.id = s.k (select 1L k, 'new' v) as s")


class TestViewsOfFrames:
    """As in delta-spark: what is inserted into a view of a frame of a table goes into the table."""

    @pytest.fixture
    def made(self, enabled) -> Iterator[str]:
        enabled.sql("create table framed using delta as select id, cast(id as string) s from range(3)")
        yield "framed"
        enabled.catalog.dropTempView("frame_shown")
        enabled.sql("drop table framed")

    @pytest.fixture(params=["by name", "by path", "an older version"])
    def view(self, request, enabled, made: str) -> str:
        frames = {
            "by name": lambda: enabled.table(made),
            "by path": lambda: enabled.read.format("delta").load(
                DeltaTable.forName(enabled, made).detail().head()["location"]
            ),
            "an older version": lambda: enabled.read.format("delta").option("versionAsOf", 0).table(made),
        }
        frame = frames[request.param]()
        enabled.sql(f"insert into {made} values (3, '3')")
        frame.createOrReplaceTempView("frame_shown")
        return "frame_shown"

    def test_rows_go_into_the_table(self, enabled, made: str, view: str):
        enabled.sql(f"insert into {view} values (4, 'x')")
        enabled.range(1).selectExpr("5L id", "'y' s").write.insertInto(view)
        assert [row[0] for row in rows(enabled, made)] == [0, 1, 2, 3, 4, 5]
        assert DeltaTable.forName(enabled, made).history(1).head()["version"] == 3

    def test_a_view_outlives_other_frames_of_its_version(self, enabled, made: str):
        """Indexes that are equal are found by one text: the last of them to be made must not take the others with it."""
        path = DeltaTable.forName(enabled, made).detail().head()["location"]
        enabled.read.format("delta").load(path).createOrReplaceTempView("frame_shown")
        index = planned_files(
            str(
                enabled.table("frame_shown")
                ._jdf.queryExecution()
                .analyzed()
                .collectLeaves()
                .head()
                .relation()
                .location()
                .toString()
            )
        )
        assert index is not None
        twin = copy.copy(index)
        remember_index(twin)
        del twin
        gc.collect()
        enabled.sql("insert into frame_shown values (4, 'x')")
        assert enabled.table(made).count() == 4

    def test_an_overwrite_is_a_commit(self, enabled, made: str, view: str):
        enabled.sql(f"insert overwrite {view} select 9, 'only'")
        assert rows(enabled, made) == [(9, "only")]
        assert last(enabled, made)[0] == "WRITE"
        assert enabled.read.option("versionAsOf", 1).table(made).count() == 4

    def test_nothing_goes_past_the_log(self, enabled, made: str):
        """Where Spark would write files by itself, it is not told of one place for them."""
        enabled.table(made).createOrReplaceTempView("frame_shown")
        of_spark = enabled.range(1).selectExpr("5L id", "'y' s")._jdf.write().mode("overwrite")
        with pytest.raises(AnalysisException):
            of_spark.insertInto("frame_shown")
        assert [row[0] for row in rows(enabled, made)] == [0, 1, 2]

    @pytest.mark.parametrize(
        ("make", "condition"),
        [
            (lambda t: t.where("id > 1"), "DELTA_UNEXPECTED_PARTIAL_SCAN"),
            (lambda t: t.sparkSession.read.format("delta").option("versionAsOf", 0).table("framed"), "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"),
        ],
    )  # fmt: skip
    def test_rows_of_other_views_are_not_changed(self, enabled, made: str, make, condition: str):
        enabled.sql(f"insert into {made} values (3, '3')")
        make(enabled.table(made)).createOrReplaceTempView("frame_shown")
        for statement in ("delete from frame_shown where id = 2", "update frame_shown set s = 'z'"):
            with pytest.raises(InvalidRequest) as caught:
                enabled.sql(statement)
            assert caught.value.getCondition() == condition  # type: ignore[attr-defined]
        assert len(rows(enabled, made)) == 4

    def test_rows_of_a_frame_by_path_are_changed(self, enabled, made: str):
        path = DeltaTable.forName(enabled, made).detail().head()["location"]
        enabled.read.format("delta").load(path).createOrReplaceTempView("frame_shown")
        enabled.sql("update frame_shown set s = 'u' where id = 1")
        enabled.sql("delete from frame_shown where id = 0")
        enabled.sql(
            "merge into frame_shown using (select 7L id, 'm' s) m on frame_shown.id = m.id when not matched then insert *"
        )
        assert rows(enabled, made) == [(1, "u"), (2, "2"), (7, "m")]


class TestConditions:
    """What delta-spark raises, statement by statement (played on 4.4)."""

    @pytest.fixture(scope="class", autouse=True)
    def tables(self, enabled) -> None:
        enabled.sql("create table cond (id bigint, d decimal(4, 2), part int) using delta partitioned by (part)")
        enabled.sql(
            "create table lists (a array<int>, m map<string, int>, s struct<x: int>, v varchar(3), i int) using delta"
        )
        enabled.sql("create table numbered (id bigint generated always as identity, v int) using delta")
        enabled.sql("create temporary function plus_one(x bigint) returns bigint return x + 1")

    @pytest.mark.parametrize(
        ("statement", "condition"),
        [
            ("insert into cond by name select 1 id, 2 nope", "DELTA_MISSING_COLUMN"),
            ("insert into cond values (1, 12345.5, 1)", "CAST_OVERFLOW_IN_TABLE_INSERT"),
            ("update cond set id = plus_one(id)", "UNSUPPORTED_SQL_UDF_USAGE"),
            ("delete from cond where plus_one(id) = 3", "UNSUPPORTED_SQL_UDF_USAGE"),
            ("merge into cond t using (select 5L id) m on t.id = m.id when not matched then insert (id) values (plus_one(5))", "UNSUPPORTED_SQL_UDF_USAGE"),
            ("alter table lists alter column a type array<bigint>", "CANNOT_UPDATE_FIELD.ARRAY_TYPE"),
            ("alter table lists alter column m type map<string, bigint>", "CANNOT_UPDATE_FIELD.MAP_TYPE"),
            ("alter table lists alter column s type struct<x: bigint>", "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
            ("alter table lists alter column v type varchar(2)", "NOT_SUPPORTED_CHANGE_COLUMN"),
            ("alter table lists alter column i type smallint", "NOT_SUPPORTED_CHANGE_COLUMN"),
            ("alter table lists alter column i type bigint", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
            ("alter table numbered alter column id drop default", "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"),
            ("alter table numbered alter column id type string", "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"),
            ("alter table cond set tblproperties ('delta.universalFormat.enabledFormats' = 'iceberg')", "DELTA_UNIVERSAL_FORMAT_VIOLATION"),
            ("create table collated (a int, s struct<t: string collate utf8_lcase>) using delta", "DELTA_UNSUPPORTED_DATA_TYPES"),
            ("describe history delta.`/no/such/table`", "DELTA_TABLE_ONLY_OPERATION"),
            ("reorg table delta.`/no/such/table` apply (purge)", "DELTA_ONLY_OPERATION"),
        ],
    )  # fmt: skip
    def test_of_statements(self, enabled, statement: str, condition: str):
        with pytest.raises(PySparkException) as caught:
            enabled.sql(statement)
        assert caught.value.getCondition() == condition

    @pytest.mark.parametrize(
        "statement",
        [
            "insert into cond (id) values ('1')",
            "insert into cond (id) values (1.5)",
            "update cond set id = '1'",
            "merge into cond using (select '1' id) s on cond.id = s.id when matched then update set id = s.id",
        ],
    )
    def test_of_strict_assignment(self, enabled, statement: str):
        enabled.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
        try:
            with pytest.raises(AnalysisException) as caught:
                enabled.sql(statement)
        finally:
            enabled.conf.unset("spark.sql.storeAssignmentPolicy")
        assert caught.value.getCondition() == "CANNOT_UP_CAST_DATATYPE"

    def test_of_rows_that_take_the_place_of_all(self, enabled):
        enabled.sql("insert into cond values (1, 1, 1)")
        unplaced = enabled.range(1)
        with pytest.raises(AnalysisException) as caught:
            unplaced.write.format("delta").mode("overwrite").saveAsTable("cond")
        assert caught.value.getCondition() == "DELTA_PARTITION_COLUMN_NOT_FOUND"
        assert enabled.table("cond").count() == 1
        unplaced.write.format("delta").mode("append").saveAsTable("cond")
        assert enabled.table("cond").where("part is null").count() == 1

    def test_of_rows_in_other_partitions(self, enabled):
        other = enabled.range(1).write.format("delta").mode("append")
        for writer in (
            lambda: other.partitionBy("id"),
            lambda: enabled.range(1).write.format("delta").mode("append").clusterBy("id"),
        ):
            with pytest.raises(IllegalArgumentException) as caught:
                writer().saveAsTable("cond")
            assert caught.value.getCondition() is None

    def test_of_too_few_columns(self, enabled):
        with pytest.raises(AnalysisException) as caught:
            enabled.range(1).write.insertInto("cond")
        assert caught.value.getCondition() == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
