"""Rows put in order over Spark Connect: ranks and places as Python finds them, Z-order, clustering and sorting of tables."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from row_verbs import KINDS, changes, kept_ids, make_begun, rows

import alluvium
from alluvium import DeltaTable
from alluvium.delta.upkeep.clustering.hilbert import hilbert_places, wide_steps
from alluvium.delta.upkeep.z_values import Ranges
from alluvium.schema.types import BINARY, DOUBLE, LONG, STRING
from alluvium.spark.values.ranks import constant_array, rank_among, rank_key
from alluvium.spark.values.stepped import stepped

pytestmark = pytest.mark.connect


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_begun(tmp_path_factory.mktemp("begun"))


@pytest.mark.parametrize(
    ("data_type", "ddl", "values", "bounds"),
    [
        (LONG, "long", [None, -(2**63), 9, 10, 11, 30, 2**63 - 1], [10, 30]),
        (LONG, "long", [None, *range(-3, 70)], list(range(0, 64, 3))),
        (LONG, "long", [-(2**63), -1, 2**53 + 1, 2**63 - 1], [-(2**63), 2**53, 2**53 + 1, 2**63 - 1]),
        (LONG, "long", [None, 1], []),
        (
            DOUBLE,
            "double",
            [None, -math.inf, -1.0, 0.1 + 0.2, math.nan, 2.0, math.inf],
            [-math.inf, 0.3, 1.5, math.inf],
        ),
        (STRING, "string", [None, "", "a", "b", "ba", "q\"'", "é", "z"], [b"b", b"b\\", b"c", b"\xc3"]),
        (BINARY, "binary", [None, b"", b"\x10", b"\xff"], [b"10", b"F0"]),
    ],
)
def test_ranks_are_found_as_in_python(
    connect: SparkSession, data_type: Any, ddl: str, values: list[Any], bounds: list[Any]
) -> None:
    df = connect.createDataFrame([(v,) for v in values], f"`a.b` {ddl}").coalesce(1)
    key = rank_key(("a.b",), data_type)
    assert key is not None
    ranges = Ranges(bounds, [10 * n + 1 for n in range(len(bounds) + 1)])
    found = [row[0] for row in df.select(rank_among(connect, key, bounds, ranges.starts).alias("r")).collect()]
    ranked = [
        v.hex().upper().encode() if isinstance(v, bytes) else v.encode() if isinstance(v, str) else v for v in values
    ]
    assert found == list(map(ranges.rank, ranked))


@pytest.mark.parametrize("numbers", [[7], [3, 2**31 - 1, 0], [1, 2**62]])
def test_arrays_of_numbers_of_either_size(connect: SparkSession, numbers: list[int]) -> None:
    df = connect.range(len(numbers)).coalesce(1)
    found = df.select(sf.get(constant_array(connect, numbers), sf.col("id").cast("int")).alias("n")).collect()
    assert [row[0] for row in found] == numbers


@pytest.mark.parametrize("columns", [2, 5])
def test_places_along_a_curve(connect: SparkSession, columns: int) -> None:
    points = [((n * 37) % 1024, (n * 101) % 1024, (n * 7) % 1024, n % 1024, (n * 999) % 1024) for n in range(300)]
    df, steps = (
        connect.createDataFrame(points, "a int, b int, c int, d int, e int").coalesce(1),
        wide_steps(columns, 10),
    )
    place = stepped(connect, [sf.col(c) for c in "abcde"[:columns]], 10, steps.table, steps.bits)
    found = [row[0] for row in df.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*points, strict=True))[:columns], 10)


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_their_ids_stay(connect: SparkSession, begun: Path, tmp_path: Path, kind: str, parts: int) -> None:
    shutil.copytree(begun / f"{kind}{parts}", url := str(tmp_path / "t"))
    before, ids, told = rows(url), kept_ids(url, kind), changes(url)
    DeltaTable.forPath(connect, url).optimize().executeZOrderBy("id")
    newest = alluvium.open(url).history(1).to_pylist()[0]
    assert newest["operation"] == "OPTIMIZE" and newest["operationParameters"]["zOrderBy"] == '["id"]'
    assert (rows(url), kept_ids(url, kind), changes(url)) == (before, ids, told)


def grid(connect: SparkSession, url: str) -> None:
    """10,000 points of a plane, mixed."""
    points = [(n // 100, n % 100) for n in range(10_000)]
    random.Random(5).shuffle(points)
    alluvium.write(connect.createDataFrame(points, "a int, b int").coalesce(2), url, mode="append")


def boxes(url: str) -> list[int]:
    """How many points of the plane the values of each file embrace."""
    sizes = []
    for path in alluvium.open(url).files()["path"].to_pylist():
        table = pq.read_table(f"{url}/{path}")
        spans = (pc.min_max(table[name]).as_py() for name in ("a", "b"))
        sizes.append(math.prod(span["max"] - span["min"] + 1 for span in spans))
    return sizes


@pytest.fixture
def small_files(connect: SparkSession) -> Iterator[None]:
    name = "spark.databricks.delta.optimize.maxFileSize"
    connect.conf.set(name, "4000")
    yield
    connect.conf.unset(name)


@pytest.mark.parametrize("way", ["z-order", "clustered", "sorted"])
def test_files_hold_what_lies_together(connect: SparkSession, tmp_path: Path, small_files: None, way: str) -> None:
    grid(connect, url := str(tmp_path / "t"))
    assert boxes(url) == [10_000, 10_000]
    table = DeltaTable.forPath(connect, url)
    if way == "z-order":
        done = table.optimize().executeZOrderBy("a", "b").collect()[0].metrics
    elif way == "sorted":
        done = table.optimize().executeSortBy("a").collect()[0].metrics
    else:
        alluvium.enable(connect)
        try:
            connect.sql(f"ALTER TABLE delta.`{url}` CLUSTER BY (a, b)")
        finally:
            alluvium.disable(connect)
        done = table.optimize().executeCompaction().collect()[0].metrics
    files = done.numFilesAdded
    assert files >= 4 and sorted(alluvium.open(url).to_arrow().to_pylist(), key=lambda row: (row["a"], row["b"])) == [
        {"a": n // 100, "b": n % 100} for n in range(10_000)
    ]
    # Strips of some columns, or pieces of a curve: a plane's worth of points, but for what overlaps.
    assert len(boxes(url)) == files and sum(boxes(url)) < 25_000


def test_a_statement_orders_too(connect: SparkSession, tmp_path: Path) -> None:
    grid(connect, url := str(tmp_path / "t"))
    alluvium.enable(connect)
    try:
        assert connect.sql(f"OPTIMIZE delta.`{url}` ZORDER BY (b)").collect()[0].metrics.numFilesAdded == 1
    finally:
        alluvium.disable(connect)
    path = alluvium.open(url).files()["path"].to_pylist()[0]
    assert pq.read_table(f"{url}/{path}")["b"].to_pylist() == sorted(n % 100 for n in range(10_000))
