"""What the specification demands of the values of columns, when rows are written."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from made_table import field_metadata, last_entry, make_table
from pyspark.sql import DataFrame, SparkSession

import alluvium
from alluvium.errors import CommitConflict, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.schema.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, Array, Field, JsonValue, Map, Struct

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AB = Struct((Field("a", INTEGER), Field("b", STRING)))


def identity(start: int = 1, step: int = 1, explicit: bool = False, mark: int | None = None) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": explicit,
    }
    return found if mark is None else {**found, "delta.identity.highWaterMark": mark}


def numbered(metadata: dict[str, JsonValue]) -> Struct:
    return Struct((Field("x", INTEGER), Field("id", LONG, True, metadata)))


def append(spark: SparkSession, table: str, sql: str, **options: str) -> alluvium.Committed:
    return alluvium.write(spark.sql(sql), table, mode="append", **options)


def rows(table: str) -> list[dict[str, object]]:
    return sorted(alluvium.open(table).to_arrow().to_pylist(), key=repr)


def refused(spark: SparkSession, table: str, sql: str) -> InvalidRequest:
    """The error of a write that leaves no trace: no commit, no file."""
    before = (alluvium.open(table).version, sorted(Path(table).rglob("*.parquet")))
    with pytest.raises(InvalidRequest) as caught:
        append(spark, table, sql)
    assert (alluvium.open(table).version, sorted(Path(table).rglob("*.parquet"))) == before
    return caught.value


# -- CHECK constraints and invariants ---------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", [3, 7])
def test_rows_must_satisfy_check_constraints(spark: SparkSession, tmp_path: Path, writer: int) -> None:
    """ "Rows in a table must satisfy CHECK constraints. In other words, evaluating the SQL expressions of CHECK
    constraints must return `true` for each row in a table." "Otherwise, the write operation must fail and the table must
    stay unchanged."
    """
    properties = {"delta.constraints.pos": "a > 0", "delta.constraints.b": "length(b) < 3 or a > 100"}
    table = make_table(tmp_path / "t", AB, properties, writer=writer)
    append(spark, table, "select 1 a, 'x' b")
    append(spark, table, "select 101 a, 'long' b")
    error = refused(spark, table, "select explode(array(1, -1, 0, -7)) a, 'x' b")
    assert error.code == "constraint-violated"
    assert error.column == "a"
    assert "'pos' (a > 0)" in error.message
    # Null is not true.
    assert "a = null" in refused(spark, table, "select cast(null as int) a, 'x' b").message
    # Values of the columns that the constraint names, and of no others.
    assert "b = long, a = 7" in refused(spark, table, "select 7 a, 'long' b").message
    with pytest.raises(InvalidRequest):
        alluvium.write(spark.sql("select -1 a, 'x' b"), table, mode="overwrite")
    assert rows(table) == [{"a": 1, "b": "x"}, {"a": 101, "b": "long"}]


def test_the_error_shows_up_to_five_different_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", AB, {"delta.constraints.pos": "a >= 3"})
    message = refused(spark, table, "select cast(id % 8 as int) a, 'x' b from range(0, 100, 1, 2)").message
    assert message.count(" a = ") == 3
    message = refused(spark, table, "select cast(-id as int) a, 'x' b from range(0, 100, 1, 2)").message
    assert message.count(" a = ") == 5
    assert len({line.rsplit(" ", 1)[-1] for line in message.splitlines()}) == 5


def test_rows_of_a_query_that_changes_are_shown_as_the_job_saw_them(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", AB, {"delta.constraints.pos": "a < 0"})
    message = refused(spark, table, "select cast(1 + rand() * 1000000000 as int) a, 'x' b").message
    assert " a = " in message
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_constraint_that_names_no_column_cannot_be_enforced(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", AB, {"delta.constraints.broken": "nobody > 1"})
    with pytest.raises(UnsupportedFeature, match=r"'broken'.* names nobody, which is not a column"):
        append(spark, table, "select 1 a, 'x' b")
    assert rows(table) == []


@pytest.mark.parametrize("sql", ["a", "a > 'x' and map('k', a) > 1"])
def test_a_constraint_that_spark_cannot_evaluate_is_named(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    table = make_table(tmp_path / "t", AB, {"delta.constraints.broken": sql})
    error = refused(spark, table, "select 1 a, 'x' b")
    assert error.code == "invalid-constraint"
    assert "broken" in error.message


def test_a_text_that_the_query_raises_is_not_taken_for_ours(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", AB, {"delta.constraints.pos": "a > 0"})
    lie = "raise_error('alluvium-check 99 {} end-of-check')"
    assert refused(spark, table, f"select if(id >= 0, {lie}, 1) a, 'x' b from range(1)").code == "invalid-data"


def test_sql_that_is_more_than_a_condition_is_never_run(spark: SparkSession, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    reach = f"reflect('java.nio.file.Files', 'createFile', '{marker}') is not null"
    for i, sql in enumerate([reach, "a in (select 1)", "a > 0) or (true"]):
        table = make_table(tmp_path / f"t{i}", AB, {"delta.constraints.c": sql})
        with pytest.raises(UnsupportedFeature):
            append(spark, table, "select 1 a, 'x' b")
    assert not marker.exists()


def test_not_null_is_enforced_at_any_depth(spark: SparkSession, tmp_path: Path) -> None:
    member = Struct((Field("x", INTEGER, False), Field("y", INTEGER)))
    schema = Struct(
        (Field("k", INTEGER, False), Field("s", member), Field("ar", Array(member)), Field("m", Map(STRING, member)))
    )
    table = make_table(tmp_path / "t", schema)
    s, ar, m = "named_struct('x', 1, 'y', 2)", "array(named_struct('x', 1, 'y', 2), null)", "map('k', null)"
    good = f"select 1 k, {s} s, {ar} ar, cast({m} as map<string,struct<x:int,y:int>>) m"
    append(spark, table, good)
    # As the reference: a member is required even where its struct is null.
    for replaced, by, column in (
        ("1 k", "cast(null as int) k", "k"),
        (f"{s} s", "cast(null as struct<x:int,y:int>) s", "s.x"),
        (f"{s} s", "named_struct('x', cast(null as int), 'y', 1) s", "s.x"),
        (f"{ar} ar", "array(named_struct('x', cast(null as int), 'y', 1)) ar", "ar"),
        ("'k', null", "'k', named_struct('x', cast(null as int), 'y', 1)", "m"),
    ):
        error = refused(spark, table, good.replace(replaced, by))
        assert (error.code, error.column) == ("not-null-violated", column)
    assert refused(spark, table, good.replace("1 k, ", "")).column == "k"


# -- generated columns and defaults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", [4, 7])
def test_generated_columns_are_computed_or_checked(spark: SparkSession, tmp_path: Path, writer: int) -> None:
    """ "Writers MUST enforce that any data writing to the table satisfy the condition
    `(<value> <=> <generation expression>) IS TRUE`."
    """
    schema = Struct(
        (
            Field("ts", TIMESTAMP),
            Field("d", DATE, True, {"delta.generationExpression": "CAST(ts AS DATE)"}),
            Field("s", Struct((Field("x", INTEGER), Field("y", STRING)))),
            Field("g", LONG, True, {"delta.generationExpression": "s.x + 1"}),
        )
    )
    table = make_table(tmp_path / "t", schema, partition_by=["d"], writer=writer)
    moment, s = "timestamp'2024-01-02 03:04:05' ts", "named_struct('y', 'a', 'x', 4) s"
    append(spark, table, f"select {s}, {moment}")
    append(spark, table, f"select {moment}, {s}, date'2024-01-02' d, 5L g")
    append(spark, table, "select cast(null as timestamp) ts, cast(null as date) d")
    found = rows(table)
    assert [(str(row["d"]), row["g"]) for row in found] == [("None", None), ("2024-01-02", 5), ("2024-01-02", 5)]
    adds = [action["add"] for action in last_entry(table) if "add" in action]
    assert [add["partitionValues"] for add in adds] == [{"d": None}]
    for wrong, column in (("date'2024-01-03' d", "d"), ("cast(null as date) d", "d"), ("7L g", "g")):
        error = refused(spark, table, f"select {moment}, {s}, {wrong}")
        assert error.code == "generated-column-violated"
        assert f"generated column {column}" in error.message
    assert "s.x = 4" in refused(spark, table, f"select {moment}, {s}, 7L g").message


def test_generated_columns_follow_the_session_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    schema = Struct(
        (Field("ts", TIMESTAMP), Field("d", DATE, True, {"delta.generationExpression": "cast(ts as date)"}))
    )
    table = make_table(tmp_path / "t", schema)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        append(spark, table, "select timestamp'2024-01-02 03:04:05' ts")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert str(rows(table)[0]["d"]) == "2024-01-02"


def test_rows_that_lack_a_column_get_its_default(spark: SparkSession, tmp_path: Path) -> None:
    """ "for each such requested row that lacks any explicit value (including NULL) for columns with default values, the
    writing system will assign the result of evaluating the default value expression"
    """
    schema = Struct(
        (
            Field("a", INTEGER),
            Field("b", INTEGER, True, {"CURRENT_DEFAULT": "7.5"}),
            Field("c", STRING, False, {"CURRENT_DEFAULT": "concat('x', 'y')"}),
            Field("t", TIMESTAMP, True, {"CURRENT_DEFAULT": "current_timestamp()"}),
            Field("g", STRING, True, {"delta.generationExpression": "upper(c)"}),
        )
    )
    table = make_table(tmp_path / "t", schema, {"delta.constraints.b": "b is null or b = 7"})
    append(spark, table, "select 1 a")
    append(spark, table, "select 2 a, cast(null as int) b, 'z' c, cast(null as timestamp) t")
    first, second = rows(table)
    assert first.pop("t") is not None
    assert first == {"a": 1, "b": 7, "c": "xy", "g": "XY"}
    assert second == {"a": 2, "b": None, "c": "z", "t": None, "g": "Z"}
    alluvium.write(spark.sql("select 3 a"), table, mode="overwrite")
    assert [row["b"] for row in rows(table)] == [7]


# -- identity columns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", [6, 7])
def test_identity_values_are_made_and_the_mark_follows(spark: SparkSession, tmp_path: Path, writer: int) -> None:
    """ "The new value does not already exist in the column." "`delta.identity.highWaterMark` should be updated to the new
    highest value when the write operation commits."
    """
    table = make_table(tmp_path / "t", numbered(identity(10, 3)), writer=writer)
    append(spark, table, "select cast(id as int) x from range(0, 10, 1, 3)")
    # As the reference: tests/interop.
    assert sorted(row["id"] for row in rows(table)) == [10, 13, 16, 19, 22, 25, 28, 31, 34, 43]
    assert field_metadata(table, "id") == identity(10, 3, mark=43)
    alluvium.write(spark.sql("select cast(id as int) x from range(0, 3, 1, 1)"), table, mode="overwrite")
    assert sorted(row["id"] for row in rows(table)) == [46, 49, 52]
    assert field_metadata(table, "id") == identity(10, 3, mark=52)
    assert last_entry(table)[0]["commitInfo"]["tags"] == {"delta.identity.schemaUpdate": "true"}
    version = alluvium.open(table).version
    # As the reference: a write of no rows is a version, and moves no mark.
    assert append(spark, table, "select 1 x where false").version == version + 1
    assert field_metadata(table, "id") == identity(10, 3, mark=52)


def test_the_mark_of_negative_steps_is_the_least(spark: SparkSession, tmp_path: Path) -> None:
    """ "When `delta.identity.step` is positive (negative), this should be the largest (smallest) value in the column." """
    table = make_table(tmp_path / "t", numbered(identity(-5, -2)))
    append(spark, table, "select cast(id as int) x from range(0, 4, 1, 2)")
    assert sorted(row["id"] for row in rows(table)) == [-11, -9, -7, -5]
    assert field_metadata(table, "id") == identity(-5, -2, mark=-11)


def test_users_give_values_only_where_they_may(spark: SparkSession, tmp_path: Path) -> None:
    """ "Users should not be allowed to provide their own values for Identity columns." """
    always = make_table(tmp_path / "always", numbered(identity()))
    assert refused(spark, always, "select 1L ID, 1 x").code == "numbers-given"
    by_default = make_table(tmp_path / "by default", numbered(identity(explicit=True)))
    append(spark, by_default, "select 77L id, 1 x")
    append(spark, by_default, "select cast(null as bigint) id, 2 x")
    # As the reference: values that are given do not move the mark.
    assert not any("metaData" in action for action in last_entry(by_default))
    append(spark, by_default, "select 3 x")
    assert [row["id"] for row in rows(by_default)] == [77, None, 1]


def test_overflow_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    """ "Overflow when calculating generated Identity values should be detected and such writes should not be
    allowed."
    """
    table = make_table(tmp_path / "t", numbered(identity(2**63 - 2)))
    assert refused(spark, table, "select cast(id as int) x from range(0, 3, 1, 1)").code == "numbers-exhausted"
    append(spark, table, "select cast(id as int) x from range(0, 2, 1, 1)")
    assert refused(spark, table, "select 1 x").code == "numbers-exhausted"


def test_statistics_of_the_numbers_are_kept_only_if_the_column_is_indexed(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", numbered(identity()), {"delta.dataSkippingNumIndexedCols": "1"})
    append(spark, table, "select cast(id as int) x from range(0, 6, 1, 2)")
    stats = [json.loads(action["add"]["stats"]) for action in last_entry(table) if "add" in action]
    assert [sorted(s["maxValues"]) for s in stats] == [["x"], ["x"]]
    assert field_metadata(table, "id")["delta.identity.highWaterMark"] == 6


def slowly(spark: SparkSession, started: threading.Event, go_on: threading.Event, columns: str) -> DataFrame:
    """Rows of a query whose planning waits for another writer: the table has been opened, nothing is written."""
    real = spark.sql(columns)
    inner = real.select

    def wait(*arguments: Any) -> DataFrame:
        started.set()
        assert go_on.wait(60)
        return inner(*arguments)

    real.select = wait  # type: ignore[method-assign]
    return real


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts"),
    [
        ("select 1 x", "select 2 x", True),
        ("select -5L id, 1 x", "select 2 x", False),
        ("select 1 x", "select -5L id, 2 x", False),
    ],
)
def test_two_writers_that_make_numbers_conflict(
    spark: SparkSession, tmp_path: Path, ours: str, theirs: str, conflicts: bool
) -> None:
    """As the reference: tests/interop. Never the same number twice."""
    table = make_table(tmp_path / "t", numbered(identity(explicit=True)))
    started, go_on = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def write() -> None:
        try:
            alluvium.write(slowly(spark, started, go_on, ours), table, mode="append")
        except CommitConflict as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert started.wait(60)
    append(spark, table, theirs)
    go_on.set()
    thread.join()
    assert [type(error) for error in errors] == ([CommitConflict] if conflicts else [])
    assert len(rows(table)) == (1 if conflicts else 2)
    if conflicts:
        assert errors[0].code == "metadata-changed"  # type: ignore[attr-defined]
        append(spark, table, ours)
    append(spark, table, "select 9 x")
    numbers = [row["id"] for row in rows(table)]
    assert len(set(numbers)) == len(numbers) == 3


# -- lengths of text --------------------------------------------------------------------------------------------------


def test_texts_that_are_too_long_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    key = "__CHAR_VARCHAR_TYPE_STRING"
    schema = Struct(
        (
            Field("c", STRING, True, {key: "char(3)"}),
            Field("a", Array(STRING), True, {key: "array<varchar(2)>"}),
            Field("p", STRING, True, {key: "varchar(1)"}),
        )
    )
    table = make_table(tmp_path / "t", schema, partition_by=["p"])
    append(spark, table, "select 'ab' c, array('xy', null) a, 'p' p")
    # Written as it is, read as char(3) is: as in the reference.
    (written,) = Path(table).rglob("*.parquet")
    assert pq.ParquetFile(written).read(["c"]).to_pylist() == [{"c": "ab"}]
    assert rows(table) == [{"c": "ab ", "a": ["xy", None], "p": "p"}]
    assert alluvium.read(spark, table).first()["c"] == "ab "
    for wrong in ("'abcd' c, array('x') a, 'p' p", "'ab ' c, array('xyz') a, 'p' p", "'ab' c, array('x') a, 'pp' p"):
        assert refused(spark, table, f"select {wrong}").code == "text-too-long"
    broken = make_table(tmp_path / "broken", Struct((Field("c", STRING, True, {key: "char("}),)))
    with pytest.raises(CorruptTable):
        append(spark, broken, "select 'x' c")
