"""Conditions on the ids of rows in DELETE, UPDATE and MERGE."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable

pytestmark = pytest.mark.spark

TRACKED = {"row-tracking.enabled": "true"}
FIELDS = pa.schema([("k", pa.int64()), ("v", pa.string())])


def three(spark, path: Path, **options: str) -> PaimonTable:
    """Ids 0 to 2, 3 to 5, and 6 to 8, of the snapshots 1 to 3; `k` is ten times the id."""
    table = PaimonTable.create(str(path / "t"), FIELDS, options={**TRACKED, **options})
    for first in (0, 3, 6):
        rows = spark.range(first, first + 3).selectExpr("id * 10 as k", "'old' as v").coalesce(1)
        alluvium.write(rows, table.url, mode="append", format="paimon")
    return table


def rows(table: PaimonTable) -> dict[int, tuple[int, str, int]]:
    found = alluvium.open(table.url).to_arrow(["_ROW_ID", "k", "v", "_SEQUENCE_NUMBER"]).to_pylist()
    return {row["_ROW_ID"]: (row["k"], row["v"], row["_SEQUENCE_NUMBER"]) for row in found}


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_are_changed_by_their_ids(spark, tmp_path: Path, vectors: str) -> None:
    table = three(spark, tmp_path, **{"deletion-vectors.enabled": vectors})
    assert table.delete("_ROW_ID = 4").metrics["numDeletedRows"] == "1"
    assert table.update("_row_id in (1, 7) and k > 10", {"v": "'new'"}).metrics["numUpdatedRows"] == "1"
    assert table.update("_SEQUENCE_NUMBER = 1", {"k": "k + _ROW_ID"}).metrics["numUpdatedRows"] == "3"
    expected = {n: (10 * n, "old", 1 + n // 3) for n in range(9) if n != 4}
    expected |= {7: (70, "new", 5)} | {n: (11 * n, "old", 6) for n in range(3)}
    assert rows(table) == expected
    # Only the file that may hold it is read, and where all of its rows go, none.
    assert table.delete("_ROW_ID between 6 and 8", dry_run=True).operation.metrics["numDeletedRows"] == "3"
    assert table.delete("_ROW_ID >= 9").attempts == 0


def test_rows_are_merged_by_their_ids(spark, tmp_path: Path) -> None:
    table = three(spark, tmp_path)
    news = spark.sql("select 4L as _ROW_ID, 400L as k, 'merged' as v union all select 99L, 990L, 'born'")
    merge = table.alias("t").merge(news.alias("s"), "t._ROW_ID = s._ROW_ID")
    done = merge.whenMatchedUpdate(set={"k": "s.k", "v": "s.v"}).whenNotMatchedInsert(values={"k": "s.k", "v": "s.v"})
    assert list(done.execute().collect()[0]) == [2, 1, 0, 1]
    found = rows(table)
    assert found[4] == (400, "merged", 4) and found.pop(9) == (990, "born", 4)
    assert {n: row for n, row in found.items() if n != 4} == {
        n: (10 * n, "old", 1 + n // 3) for n in range(9) if n != 4
    }


def test_columns_of_rows_are_merged_by_their_ids(spark, tmp_path: Path) -> None:
    """What engines that update by row id do: what was read with its ids comes back changed."""
    table = three(spark, tmp_path, **{"data-evolution.enabled": "true"})
    read = alluvium.read(spark, table.url, rowIds=True).where("k % 20 = 0")
    news = read.selectExpr("_ROW_ID", "concat(v, '-', k) as v")
    merge = table.alias("t").merge(news.alias("s"), "t._ROW_ID = s._ROW_ID and t._SEQUENCE_NUMBER < 3")
    assert merge.whenMatchedUpdate(set={"v": "s.v"}).execute().collect()[0][1] == 3
    assert {n: row[:2] for n, row in rows(table).items()} == {
        n: (10 * n, f"old-{10 * n}" if n in (0, 2, 4) else "old") for n in range(9)
    }
    # Over rows whose columns lie in several files.
    news = spark.sql("select 2L as id, 'again' as v")
    merge = table.alias("t").merge(news.alias("s"), "t._ROW_ID = s.id")
    assert merge.whenMatchedUpdate(set={"v": "s.v"}).execute().collect()[0][1] == 1
    assert rows(table)[2][:2] == (20, "again") and rows(table)[0][:2] == (0, "old-0")
    # Of three ranges two were written of.
    assert alluvium.open(table.url).files(where="_ROW_ID = 7").num_rows == 1


@pytest.mark.parametrize("lane", [None, "python"])
def test_rows_whose_columns_lie_in_several_files_are_read_by_their_ids(spark, tmp_path: Path, lane: str | None) -> None:
    table = three(spark, tmp_path, **{"data-evolution.enabled": "true"})
    for number, name in ((7, "a"), (1, "b"), (8, "c")):
        news = spark.sql(f"select {number}L as id, '{name}' as v").alias("s")
        merge = table.alias("t").merge(news, "t._ROW_ID = s.id")
        assert merge.whenMatchedUpdate(set={"v": "s.v"}).execute().collect()[0][1] == 1
    values = {n: {7: "a", 1: "b", 8: "c"}.get(n, "old") for n in range(9)}
    read = alluvium.read(spark, table.url, lane=lane, rowIds=True)
    for where, ids in [
        ("_ROW_ID = 7", [7]),
        ("_ROW_ID in (1, 8)", [1, 8]),
        ("_ROW_ID > 4 and v <> 'old'", [7, 8]),
        ("_ROW_ID < 3 or k = 80", [0, 1, 2, 8]),
        ("_ROW_ID = 4 and _SEQUENCE_NUMBER = 2", [4]),
        ("_ROW_ID = 100", []),
    ]:
        found = {row["_ROW_ID"]: (row.k, row.v) for row in read.where(where).collect()}
        assert found == {n: (10 * n, values[n]) for n in ids}, where
    joined = read.join(spark.sql("select 1L as id union all select 7L"), sf.col("_ROW_ID") == sf.col("id"))
    assert sorted(row.v for row in joined.collect()) == ["a", "b"]


def test_by_sql(spark, tmp_path: Path) -> None:
    table = three(spark, tmp_path)
    alluvium.enable(spark)
    try:
        spark.sql(f"DELETE FROM paimon.`{table.url}` WHERE _ROW_ID = 4")
        spark.sql(f"UPDATE paimon.`{table.url}` SET v = 'new' WHERE _ROW_ID = 5")
        spark.sql(
            f"MERGE INTO paimon.`{table.url}` t USING (SELECT 6L AS id) s ON t._ROW_ID = s.id WHEN MATCHED THEN DELETE"
        )
    finally:
        alluvium.disable(spark)
    found = rows(table)
    assert sorted(found) == [0, 1, 2, 3, 5, 7, 8] and found[5] == (50, "new", 5)


def test_reads_by_ids_without_ids_among_the_columns(spark, tmp_path: Path) -> None:
    table = three(spark, tmp_path)
    for lane in (None, "python"):
        found = alluvium.read(spark, table.url, lane=lane, where="_ROW_ID = 4 or _sequence_number = 3")
        assert found.columns == ["k", "v"] and sorted(row.k for row in found.collect()) == [40, 60, 70, 80]


def test_rows_without_ids_have_none_to_ask_for(spark, tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), FIELDS)
    alluvium.write(spark.range(3).selectExpr("id as k", "'x' as v"), table.url, mode="append", format="paimon")
    with pytest.raises(InvalidRequest) as raised:
        table.delete("_ROW_ID = 1")
    assert raised.value.code == "invalid-expression"
