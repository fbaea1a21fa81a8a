"""Tables that stay in the order of some columns."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from dml_tables import last

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAX = "spark.databricks.delta.optimize.maxFileSize"


def rows_of_files(path: str, columns: list[str]) -> list[list[tuple]]:
    """The rows of each file as they stand in it, the file of the least row first."""
    found = []
    for name in alluvium.open(path).files()["path"].to_pylist():
        table = pq.ParquetFile(f"{path}/{name}").read(columns)
        found.append(list(zip(*(table[c].to_pylist() for c in columns), strict=True)))
    return sorted(found)


def test_every_write_and_compaction_keeps_the_order(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.range(2000).selectExpr("id * 7919 % 503 as a", "cast(id * 31 % 97 as string) as b", "id % 2 as p")
    alluvium.write(rows.repartition(3), path, sort_by=["a", "b"], partition_by="p")
    assert alluvium.open(path).properties["alluvium.sortBy"] == "a,b"
    alluvium.write(rows.limit(100).coalesce(1), path, mode="append")
    table = DeltaTable.forPath(spark, path)
    table.update("a = 5", {"a": "400"})
    assert all(file == sorted(file) for file in rows_of_files(path, ["a", "b"]))
    table.optimize().executeCompaction()
    files = rows_of_files(path, ["a", "b"])
    assert (len(files), all(file == sorted(file) for file in files)) == (2, True)
    assert last(path, "commitInfo")[0]["operationParameters"]["sortBy"] == '["a","b"]'
    # An option is for one write.
    alluvium.write(rows.where("p = 0").coalesce(1), path, mode="append", sort_by="b")
    (added,) = last(path, "add")
    texts = [
        row[0] for row in zip(*[pq.ParquetFile(f"{path}/{added['path']}").read(["b"])["b"].to_pylist()], strict=True)
    ]
    assert texts == sorted(texts)


@pytest.mark.parametrize("columns", [("x",), ("t", "x")])
def test_files_follow_each_other(spark, tmp_path, columns):
    path = str(tmp_path / "t")
    rows = spark.range(20_000).selectExpr(
        "if(id % 50 = 0, null, cast(id * 7919 % 10007 as double)) as x",
        "concat('t', id % 3) as t",
        "sha2(cast(id as string), 256) f",
    )
    alluvium.write(rows.repartition(4), path)
    size = sum(alluvium.open(path).files()["size"].to_pylist())
    spark.conf.set(MAX, str(size // 6))
    table = DeltaTable.forPath(spark, path)
    try:
        answer = table.optimize().executeSortBy(*columns, measure=True).first()
    finally:
        spark.conf.unset(MAX)
    assert 4 <= answer["metrics"]["numFilesAdded"] <= 7
    assert answer["lookUps"][0]["after"] < 4 == answer["lookUps"][0]["before"]
    key = lambda row: tuple((v is not None, v) for v in row)  # noqa: E731
    files = sorted(rows_of_files_or_none(path, list(columns)), key=lambda file: key(file[0]))
    everything = [row for file in files for row in file]
    assert everything == sorted(everything, key=key)
    assert pc.sum(alluvium.open(path).files()["num_rows"]).as_py() == 20_000


@pytest.mark.parametrize(
    "value",
    [
        "cast(100000000000000000000 + id % 700 as decimal(38, 0))",
        "concat(if(id % 2 = 0, 'a', repeat('x', 300)), id % 3)",
    ],
    ids=["numbers that are one to a double", "texts that are told apart by their ends alone"],
)
def test_files_follow_each_other_by_whole_values(spark, tmp_path, value):
    path, columns = str(tmp_path / "t"), ["v", "x"]
    rows = spark.range(6000).selectExpr(f"{value} as v", "id * 7919 % 10007 as x")
    alluvium.write(rows.repartition(2), path)
    spark.conf.set(MAX, str(sum(alluvium.open(path).files()["size"].to_pylist()) // 5))
    try:
        DeltaTable.forPath(spark, path).optimize().executeSortBy(*columns)
    finally:
        spark.conf.unset(MAX)
    files = rows_of_files(path, columns)
    everything = [row for file in files for row in file]
    assert len(files) > 2
    assert everything == sorted(everything)


def test_by_partition_columns_alone_files_are_only_put_together(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.range(4000).selectExpr("id", "sha2(cast(id as string), 256) f", "id % 2 as p")
    alluvium.write(rows.repartition(3), path, partition_by="p")
    # A partition is more than one file holds.
    spark.conf.set(MAX, str(sum(alluvium.open(path).files()["size"].to_pylist()) // 5))
    try:
        DeltaTable.forPath(spark, path).optimize().executeSortBy("p")
    finally:
        spark.conf.unset(MAX)
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == list(range(4000))


def rows_of_files_or_none(path: str, columns: list[str]) -> list[list[tuple]]:
    tables = [
        pq.ParquetFile(f"{path}/{name}").read(columns) for name in alluvium.open(path).files()["path"].to_pylist()
    ]
    return [list(zip(*(table[c].to_pylist() for c in columns), strict=True)) for table in tables]


def test_what_does_not_fit_is_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.sql("select 1 a, map('k', 1) m")
    for name in ("zz", "m"):
        with pytest.raises(InvalidRequest) as raised:
            alluvium.write(rows, path, sort_by=name)
        assert (raised.value.code, raised.value.column) == ("invalid-sort-column", name)
    alluvium.write(rows, path)
    with pytest.raises(InvalidRequest) as raised:
        DeltaTable.forPath(spark, path).optimize().executeSortBy("m")
    assert raised.value.code == "invalid-sort-column"
    other = DeltaTable.create(spark).location(str(tmp_path / "c")).addColumn("a", "int").clusterBy("a").execute()
    with pytest.raises(InvalidRequest) as raised:
        other.optimize().executeSortBy("a")
    assert raised.value.code == "contradicting-options"
