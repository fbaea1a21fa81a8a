"""Rows that wait for a bucket: written as they come, seen once a compaction has divided them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("p", pa.string())])
Row = tuple[Any, ...]


def make(path: Path, **options: str) -> PaimonTable:
    return PaimonTable.create(str(path / "t"), SCHEMA, ["p"], ["k", "p"], {"bucket": "-2", **options})


def write(spark: SparkSession, path: Path, *rows: Row, mode: str = "append", **options: str) -> None:
    df = spark.createDataFrame(list(rows), "k long, n long, p string").coalesce(1)
    alluvium.write(df, str(path / "t"), mode=mode, format="paimon", **options)


def rows(path: Path) -> list[Row]:
    return sorted(tuple(row.values()) for row in alluvium.open(str(path / "t")).to_arrow().to_pylist())


def files(path: Path) -> list[Row]:
    found = alluvium.open(str(path / "t")).system("files").to_pylist()
    return sorted((f["partition"], f["bucket"], f["level"], f["record_count"]) for f in found)


def kinds(path: Path) -> list[str]:
    return alluvium.open(str(path / "t")).system("snapshots")["commit_kind"].to_pylist()


def test_rows_wait_until_they_are_divided(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, **{"postpone.target-row-num-per-bucket": "2", "changelog-producer": "input"})
    write(spark, tmp_path, (1, 1, "a"), (1, 2, "a"), (2, 1, "a"), (3, 1, "b"))
    write(spark, tmp_path, (2, 2, "a"), (5, 1, "a"))
    assert (rows(tmp_path), files(tmp_path)) == ([], [])
    table.compact("p = 'a'")
    # Five rows of the first partition: three buckets. The second waits on.
    assert rows(tmp_path) == [(1, 2, "a"), (2, 2, "a"), (5, 1, "a")]
    assert {f[1] for f in files(tmp_path)} <= {0, 1, 2} and kinds(tmp_path) == ["APPEND", "APPEND", "COMPACT"]
    told = alluvium.open(str(tmp_path / "t")).changes(2, 3, mode="changelog").to_pylist()
    assert sorted((r["k"], r["n"]) for r in told) == [(1, 1), (1, 2), (2, 1), (2, 2), (5, 1)]
    with pytest.raises(UnsupportedFeature) as caught:
        table.rescale(1)
    assert caught.value.code == "unsupported-rescale"
    assert table.delete("k = 1").attempts == 1
    assert len(rows(tmp_path)) == 3
    table.compact()
    assert rows(tmp_path) == [(2, 2, "a"), (3, 1, "b"), (5, 1, "a")]
    table.rescale(1)
    assert (len(rows(tmp_path)), {f[1] for f in files(tmp_path)}, kinds(tmp_path)[-1]) == (3, {0}, "OVERWRITE")
    # A compaction with nothing waiting is that of any other table.
    table.compact()
    assert {f[2] for f in files(tmp_path)} == {5}


def test_a_compaction_divides_what_waits_of_a_table_that_has_buckets_by_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = make(tmp_path)
    write(spark, tmp_path, (1, 1, "a"), (2, 1, "a"), (3, 1, "b"))
    table.create_tag("waiting")
    table.compact(spark=spark)
    table.alter([SchemaChange.set_option("bucket", "2")])
    table.rollback_to_as_latest(tag="waiting")
    assert rows(tmp_path) == []
    table.compact(spark=spark)
    assert rows(tmp_path) == [(1, 1, "a"), (2, 1, "a"), (3, 1, "b")]
    write(spark, tmp_path, (1, 2, "a"), (4, 1, "a"))
    assert rows(tmp_path) == [(1, 2, "a"), (2, 1, "a"), (3, 1, "b"), (4, 1, "a")]
    assert {f[1] for f in files(tmp_path)} <= {0, 1}


def test_files_that_spark_has_no_reader_of(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, **{"file.format": "avro", "postpone.default-bucket-num": "2"})
    write(spark, tmp_path, (1, 1, "a"), (2, 1, "a"), (1, 2, "b"))
    write(spark, tmp_path, (1, 5, "a"))
    table.compact()
    assert rows(tmp_path) == [(1, 2, "b"), (1, 5, "a"), (2, 1, "a")]
    write(spark, tmp_path, (1, 6, "a"))
    # Of which key a row waits is known all the same.
    with pytest.raises(UnsupportedFeature) as caught:
        table.update("k = 1 and p = 'a'", {"n": "n + 1"})
    assert caught.value.code == "hidden-rows"
    table.compact()
    # And what lies in buckets by then.
    table.compact()
    assert rows(tmp_path) == [(1, 2, "b"), (1, 6, "a"), (2, 1, "a")]
    assert {f[2] for f in files(tmp_path)} == {5}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"deletion-vectors.enabled": "true"}, [(1, 7, "a"), (2, 2, "a")]),
        ({"merge-engine": "first-row"}, [(1, 1, "a"), (2, 2, "a")]),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, [(1, 13, "a"), (2, 2, "a")]),
    ],
    ids=["vectors", "first-row", "sums"],
)
def test_engines(spark: SparkSession, tmp_path: Path, options: dict[str, str], left: list[Row]) -> None:
    table = make(tmp_path, **options)
    for batch in ([(1, 1, "a"), (1, 5, "a")], [(1, 7, "a"), (2, 2, "a")]):
        write(spark, tmp_path, *batch)
        table.compact()
    assert rows(tmp_path) == left


def test_rows_that_wait_are_not_hidden_by_rows_made_without_them(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path)
    write(spark, tmp_path, (1, 1, "a"), (2, 2, "a"))
    table.compact()
    write(spark, tmp_path, (1, 10, "a"))
    read, source = alluvium.read(spark, str(tmp_path / "t")), spark.createDataFrame([(1, 5)], "k long, n long")
    merge = table.alias("t").merge(source.alias("s"), "t.k = s.k").whenMatchedUpdate(set={"n": "s.n"})
    for verb in (
        lambda: table.update("k = 1", {"n": "n + 1"}),
        lambda: table.delete("n < 5"),
        merge.execute,
        lambda: alluvium.write(read, str(tmp_path / "t"), mode="append", format="paimon"),
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            verb()
        assert caught.value.code == "hidden-rows" and kinds(tmp_path)[-1] == "APPEND"
    old = alluvium.read(spark, str(tmp_path / "t")).select("k", "n", "p")
    table.compact()
    for mode in ("overwrite", "append"):
        with pytest.raises(CommitConflict) as late:
            alluvium.write(old, str(tmp_path / "t"), mode=mode, format="paimon")
        assert late.value.code == "concurrent-append" and kinds(tmp_path)[-1] == "COMPACT"
    write(spark, tmp_path, (1, 10, "a"))
    # No other key is in the way.
    table.update("k = 2", {"n": "n + 1"})
    table.compact()
    table.update("k = 1", {"n": "n + 1"})
    table.compact()
    assert rows(tmp_path) == [(1, 11, "a"), (2, 3, "a")]


def test_overwrites_take_rows_that_wait(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path)
    write(spark, tmp_path, (1, 1, "a"), (1, 1, "b"))
    write(spark, tmp_path, (2, 1, "a"), mode="overwrite", partitionOverwriteMode="dynamic")
    table.compact()
    assert rows(tmp_path) == [(1, 1, "b"), (2, 1, "a")]
