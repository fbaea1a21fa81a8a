"""MERGE into tables with data evolution: which columns are written, of which rows, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alluvium
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable

pytestmark = pytest.mark.spark

FIELDS = pa.schema({
    "p": pa.string(), "id": pa.int32(), "a": pa.string(), "b": pa.decimal128(10, 2), "c": pa.list_(pa.int32()),
})  # fmt: skip
SCHEMA = "p string, id int, a string, b decimal(10, 2), c array<int>"
EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def ours(url: str) -> list[dict[str, Any]]:
    return alluvium.open(url).to_arrow(["p", "id", "a", "b", "c", "_ROW_ID"]).to_pylist()


def by_id(url: str) -> dict[int, tuple[Any, ...]]:
    return {row["_ROW_ID"]: (row["p"], row["id"], row["a"], str(row["b"]), row["c"]) for row in ours(url)}


def files(url: str) -> list[tuple[int, int, list[str] | None]]:
    """The first id of each live file, how many rows it has, and its columns."""
    entries = alluvium.open(url)._snapshot.entries
    columns = [entries[name].to_pylist() for name in ("first_row_id", "row_count", "write_cols")]
    return sorted(zip(*columns, strict=True), key=repr)


def test_merges_that_meet_nothing(spark, tmp_path: Path) -> None:
    """Of a table without rows; of one with others; and where no clause holds."""
    url = str(tmp_path / "t")
    table = PaimonTable.create(url, FIELDS, ["p"], (), EVOLVES).alias("t")
    for number in range(2):
        news = spark.createDataFrame([("x", number, "n", None, None)], SCHEMA).alias("s")
        merge = table.merge(news, "t.id = s.id").whenMatchedUpdate("t.id > 7", {"a": "s.a"})
        for count in (1, 0):
            assert list(merge.whenNotMatchedInsertAll().execute().collect()[0]) == [count, 0, 0, count]
    assert by_id(url) == {n: ("x", n, "n", "None", None) for n in range(2)} and alluvium.open(url).version == 2


def test_rows_of_one_range_come_into_one_file(spark, tmp_path: Path) -> None:
    """Whatever the session says of files, and in whichever order a join leaves rows."""
    url = str(tmp_path / "t")
    table = PaimonTable.create(url, FIELDS, (), (), {**EVOLVES, "target-file-size": "1 kb"}).alias("t")
    for first in range(0, 4000, 1000):
        rows = spark.range(first, first + 1000).selectExpr(
            "'x' p",
            "cast(id as int) id",
            "concat('a', id) a",
            "cast(id as decimal(10, 2)) b",
            "array(cast(id as int)) c",
        )
        alluvium.write(rows.coalesce(1), url, mode="append", format="paimon")
    before, known = by_id(url), files(url)
    news = spark.range(4000).selectExpr("id", "-id as b").where("id % 3 = 0 and id > 900").repartition(7)
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "10")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        merge = table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"b": "s.b"})
        assert merge.execute().collect()[0][1] == 1033
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    hit = {n for n, row in before.items() if row[1] % 3 == 0 and row[1] > 900}
    assert by_id(url) == {n: (*row[:3], f"{-row[1] if n in hit else row[1]}.00", row[4]) for n, row in before.items()}
    assert [f for f in files(url) if f not in known] == [(first, 1000, ["b"]) for first in range(0, 4000, 1000)]


def test_what_java_does_not_do_is_refused(spark, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = PaimonTable.create(url, FIELDS, ["p"], (), EVOLVES).alias("t")
    rows = spark.createDataFrame([("x", k, f"a{k}", None, None) for k in range(3)], SCHEMA)
    alluvium.write(rows.coalesce(1), url, mode="append", format="paimon")
    version, before = alluvium.open(url).version, by_id(url)
    news = spark.createDataFrame([("y", 1, "n")], "p string, id int, a string").alias("s")
    twice = news.union(news).alias("s")
    for wrong in (
        lambda: table.delete("id = 1"),
        lambda: table.update("id = 1", {"a": "'x'"}),
        lambda: table.merge(news, "t.id = s.id").whenMatchedDelete().execute(),
        lambda: table.merge(news, "t.id = s.id").whenNotMatchedBySourceUpdate(None, {"a": "'x'"}).execute(),
    ):
        with pytest.raises(UnsupportedFeature) as refused:
            wrong()
        assert refused.value.code == "unsupported-row-change", refused.value
    for code, wrong in {
        "key-changed": lambda: table.merge(news, "t.id = s.id").whenMatchedUpdate(set={"p": "s.p"}).execute(),
        "multiple-matches": lambda: table.merge(twice, "t.id = s.id").whenMatchedUpdate(set={"a": "s.a"}).execute(),
    }.items():
        with pytest.raises(InvalidRequest) as invalid:
            wrong()
        assert invalid.value.code == code
    assert alluvium.open(url).version == version and by_id(url) == before
    # A partition that stays what it is may be named, be it alone.
    there = news.selectExpr("'x' p", "id").alias("s")
    assert table.merge(there, "t.id = s.id").whenMatchedUpdate(set={"p": "s.p"}).execute().collect()[0][0] == 0
    assert alluvium.open(url).version == version
    same = news.selectExpr("'x' p", "id", "a").alias("s")
    values = {"p": "s.p", "a": "s.a"}
    merge = table.merge(same, "t.id = s.id").whenMatchedUpdate(set=values)
    preview, told = merge.execute(dry_run=True), str(merge.explain())
    assert preview.removed == () and preview.operation.metrics["numTargetRowsUpdated"] == "1"
    assert "patches: files stay" in told and alluvium.open(url).version == version
    merge.execute()
    assert by_id(url) == before | {1: ("x", 1, "n", "None", None)}
    merge = table.merge(same, "t.id = s.id and t.p = 'y'").whenMatchedUpdate(set=values)
    assert merge.execute().collect()[0][1] == 0 and alluvium.open(url).version == version + 1


def test_files_of_columns_come_together(spark, tmp_path: Path) -> None:
    """By tasks that each write one file, whatever the session says of files; partitions that a condition names alone."""
    url = str(tmp_path / "t")
    options = {
        **EVOLVES,
        "compaction.min.file-num": "2",
        "target-file-size": "20 mb",
        "source.split.open-file-cost": "4 mb",
    }
    table = PaimonTable.create(url, FIELDS, ["p"], (), options).alias("t")
    for first in range(0, 900, 100):
        rows = spark.range(first, first + 100).selectExpr(
            "if(id < 500, 'x', 'y') p", "cast(id as int) id", "concat('a', id) a", "cast(null as decimal(10, 2)) b",
            "array(cast(id as int)) c",
        )  # fmt: skip
        alluvium.write(rows.coalesce(1), url, mode="append", format="paimon")
    news = spark.range(0, 900, 50).selectExpr("id", "-id as b").alias("s")
    table.merge(news, "t.id = s.id").whenMatchedUpdate(set={"b": "s.b"}).execute()
    before = by_id(url)
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "10")
    try:
        assert table.compact("p = 'y'").attempts == 1
        # Of each two ranges, which have two files each, one: the third makes them large enough.
        assert [f for f in files(url) if f[0] >= 500] == [(500, 300, None), (800, 100, None)]
        assert len([f for f in files(url) if f[0] < 500]) == 10
        assert table.compact().attempts == 1
        assert files(url) == [(0, 300, None), (300, 200, None), (500, 400, None)]
        # What has become small by that is a neighbour once more, as in Java.
        assert table.compact().attempts == 1 and table.compact().attempts == 0
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert files(url) == [(0, 500, None), (500, 400, None)]
    assert by_id(url) == before and len(before) == 900
    for wrong in ({"order_strategy": "zorder", "order_by": ["id"]}, {"where": "id = 3"}):
        with pytest.raises(UnsupportedFeature):
            table.compact(**wrong)
