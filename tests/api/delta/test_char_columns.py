"""Columns of type char(n) on classic Spark: what is read, what predicates find, which rows verbs change."""

from __future__ import annotations

from pathlib import Path

import pytest
from char_table import EXPECTED, PADDED, SCHEMA, make_table
from made_table import last_entry
from pyspark.sql import DataFrame, SparkSession

import alluvium
from alluvium import DeltaTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Of each kind one.
ASKED = (
    "c = 'a'", "c < 'a '", "c >= 'a      '", "c in ('a', 'abcdef')", "c in ('a', null)", "c between 'a' and 'a    '",
    "c like 'a    '", "c = d", "s.c = 'a  '", "p = 'x'", "p in ('x', 'z')", "p between 'x' and 'y'", "p like 'x'",
)  # fmt: skip


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


def by_id(df: DataFrame) -> list[dict[str, object]]:
    return sorted(df.toArrow().to_pylist(), key=lambda row: row["id"])


def test_both_lanes_read_as_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path / "t")
    frame = alluvium.read(spark, url)
    assert by_id(frame) == by_id(alluvium.read(spark, url, lane="python")) == PADDED
    assert by_id(alluvium.changes(spark, url, 0).select(*SCHEMA.names)) == PADDED
    wanted = {text: EXPECTED[text] for text in ASKED}
    assert {text: ids(frame.where(text)) for text in ASKED} == wanted
    assert {text: ids(alluvium.read(spark, url, where=text)) for text in ASKED} == wanted
    assert {text: ids(alluvium.read(spark, url, where=text, lane="python")) for text in ASKED[:3]} == {
        text: wanted[text] for text in ASKED[:3]
    }


def test_files_are_skipped_by_what_spark_pads(spark: SparkSession, tmp_path: Path) -> None:
    frame = alluvium.read(spark, make_table(tmp_path / "t"))
    files = {text: alluvium.explain(frame.where(text))[0].files for text in ("p = 'y'", "c > 'abc'", "c is null")}
    assert files == {"p = 'y'": 1, "c > 'abc'": 4, "c is null": 1}


def test_rows_as_they_were_written_where_the_session_wants_them(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path / "t")
    spark.conf.set("spark.sql.readSideCharPadding", "false")
    try:
        frame = alluvium.read(spark, url)
        assert ids(frame.where("p like 'x'")) == [1, 4, 8]
        assert ids(frame.where("c like 'a'")) == [1]
        DeltaTable.forPath(spark, url).delete("p like 'x'")
    finally:
        spark.conf.unset("spark.sql.readSideCharPadding")
    assert ids(alluvium.read(spark, url)) == [2, 3, 5, 6, 7]


def test_verbs_find_padded_rows(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path / "t")
    table = DeltaTable.forPath(spark, url)
    table.update("c = 'a'", {"v": "'u'"})
    assert ids(table.toDF().where("v = 'u'")) == EXPECTED["c = 'a'"]
    source = spark.sql("select 'b    ' k")
    table.alias("t").merge(source.alias("s"), "t.c = s.k").whenMatchedUpdate(set={"v": "'m'"}).execute()
    assert ids(table.toDF().where("v = 'm'")) == [6]
    other = spark.sql("select cast('z   ' as string) k")
    table.alias("t").merge(other.alias("s"), "t.p = s.k").whenMatchedDelete().execute()
    assert ids(table.toDF()) == [1, 2, 3, 4, 5, 7, 8]
    table.delete("p = 'x'")
    # By whole files, for a partition column says it of all rows.
    assert not [action for action in last_entry(url) if "add" in action]
    assert ids(table.toDF()) == [2, 3, 7]


@pytest.mark.parametrize(("where", "left"), [("p = 'x'", [2, 3, 6, 7, 9]), ("c = 'a'", [2, 3, 4, 6, 7, 8, 9])])
def test_what_a_condition_replaces(spark: SparkSession, tmp_path: Path, where: str, left: list[int]) -> None:
    url = make_table(tmp_path / "t")
    new = spark.sql("select 9 id, 'a' c, 'x' p")
    alluvium.write(new, url, mode="overwrite", replaceWhere=where)
    assert ids(alluvium.read(spark, url)) == left
    assert alluvium.open(url).count(where) == 1


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_members_under_other_names_and_later_ones(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    url = str(tmp_path / "t")
    columns = {"id": "int", "s": "struct<c:char(3),x:int>", "p": "char(4)"}
    made = DeltaTable.create(spark).location(url).property("delta.columnMapping.mode", mode).partitionedBy("p")
    for name, declared in columns.items():
        made = made.addColumn(name, declared)
    table = made.execute()
    rows = spark.sql("select 1 id, named_struct('c', 'a', 'x', 7) s, 'x' p union all select 2, null, 'y'")
    alluvium.write(rows, url, mode="append")
    table.addColumns({"s.y": "int"})
    expected = [
        {"id": 1, "s": {"c": "a  ", "x": 7, "y": None}, "p": "x   "}, {"id": 2, "s": None, "p": "y   "},
    ]  # fmt: skip
    frame = alluvium.read(spark, url)
    assert by_id(frame) == by_id_open(url) == expected
    assert (ids(frame.where("s.c = 'a  '")), ids(frame.where("p = 'x'"))) == ([1], [1])


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_name_that_reads_as_another_columns(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    # Catalyst prints the column of a call of Java without quotes: `a.b` as b of something called a, `b-c` as a difference.
    url = str(tmp_path / "t")
    made = DeltaTable.create(spark).location(url).property("delta.columnMapping.mode", mode)
    declared = {
        "id": "int",
        "a.b": "char(3)",
        "b": "char(3)",
        "b-c": "char(3)",
        "s": "struct<`b`:char(3),`x.b`:char(3)>",
    }
    for name, of in declared.items():
        made = made.addColumn(name, of)
    table = made.execute()
    member = "named_struct('b', 'm', 'x.b', 'n') s"
    alluvium.write(spark.sql(f"select 1 id, 'x' `a.b`, 'q' b, 'z' `b-c`, {member}"), url, mode="append")
    for column, value in (("`a.b`", "x"), ("b", "q"), ("`b-c`", "z"), ("s.b", "m  "), ("s.`x.b`", "n  ")):
        assert ids(alluvium.read(spark, url).where(f"{column} = '{value}'")) == [1], column
        assert ids(alluvium.read(spark, url).where(f"{column} < '{value}'")) == [], column
    table.delete("`a.b` = 'x'")
    assert ids(alluvium.read(spark, url)) == []


def by_id_open(url: str) -> list[dict[str, object]]:
    return alluvium.open(url).to_arrow().sort_by("id").to_pylist()
