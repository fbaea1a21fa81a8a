"""Columns that are called as what the library puts beside rows while it works: they stay what they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark

Rows = list[tuple[int, int]]


def make(path: Path, name: str) -> str:
    for number in range(2):
        ids = list(range(10 * number, 10 * number + 10))
        rows = pa.table({"id": ids, name: [7 * n for n in ids]})
        alluvium.write(rows, url := str(path / "t"), mode="append")
    return url


def rows(url: str, name: str) -> Rows:
    return sorted((row["id"], row[name]) for row in alluvium.open(url).to_arrow().to_pylist())


@pytest.mark.parametrize("name", ["__alluvium_place", "__ALLUVIUM_Place", "__alluvium_rank0", "__alluvium_file"])
@pytest.mark.parametrize("way", ["z-order", "sort"])
def test_rows_that_are_put_in_order(spark, tmp_path: Path, name: str, way: str) -> None:
    """The column was overwritten with the rows' places."""
    url = make(tmp_path, name)
    optimize = DeltaTable.forPath(spark, url).optimize()
    _ = optimize.executeZOrderBy("id") if way == "z-order" else optimize.executeSortBy("id")
    assert rows(url, name) == [(n, 7 * n) for n in range(20)] and alluvium.open(url).files().num_rows == 1


def test_rows_are_sorted_by_a_column_with_a_dot(spark, tmp_path: Path) -> None:
    data = pa.table({"id": list(range(10)), "a.b": [n * 7 % 10 for n in range(10)]})
    alluvium.write(data, url := str(tmp_path / "t"), mode="append", **{"delta.columnMapping.mode": "name"})
    alluvium.write(data, url, mode="append")
    DeltaTable.forPath(spark, url).optimize().executeSortBy("a.b")
    assert [row["a.b"] for row in alluvium.open(url).to_arrow().to_pylist()] == [n // 2 for n in range(20)]


@pytest.mark.parametrize("verb", ["merge", "replace"])
def test_rows_that_are_numbered(spark, tmp_path: Path, verb: str) -> None:
    """Values of the column did not come; a MERGE did not find it."""
    name = "__alluvium_number"
    url = make(tmp_path, name)
    source = spark.createDataFrame([(3, 1), (40, 2)], f"id long, {name} long")
    if verb == "merge":
        merge = DeltaTable.forPath(spark, url).alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    else:
        alluvium.write(source, url, mode="overwrite", replaceUsing="id")
    assert rows(url, name) == [*((n, 1 if n == 3 else 7 * n) for n in range(20)), (40, 2)]
