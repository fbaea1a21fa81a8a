"""Deleted rows on the native lane: the bitmap, and the filter on it, over real Parquet files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.bitmaps.roaring import bits_of
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.deleted_rows import deleted_rows_field
from alluvium.spark.scan.native_lane.describe import describe_scans
from alluvium.spark.scan.native_lane.masks import is_deleted
from alluvium.spark.scan.native_lane.native import read_native

Make = Callable[..., Any]


def mask(rows: Iterable[int]) -> bytes:
    return bytes(BitMap64(rows).serialize())


def test_the_name_of_the_column_is_free() -> None:
    assert deleted_rows_field(["a"]).name == "__deleted_rows"
    assert deleted_rows_field(["__DELETED_ROWS", "__deleted_rows_"]).name == "__deleted_rows__"


@dataclass
class LateMasks:
    """Masks by path, given late, as a format does that keeps them in files of their own."""

    masks: dict[str, bytes]
    asked: list[list[str]]

    def load_masks(self, files: pa.Table) -> pa.Table:
        names = files["path"].to_pylist()
        self.asked.append(names)
        found = pa.array([self.masks[name] for name in names], pa.binary())
        return files.set_column(files.schema.get_field_index("mask"), "mask", found)


def masked(source: Any, deleted: list[Iterable[int]]) -> LateMasks:
    """Gives the source's files their deleted rows."""
    part = source.plan.parts[0]
    masks = LateMasks(dict(zip(part.files["path"].to_pylist(), map(mask, deleted), strict=True)), [])
    source.plan = replace(source.plan, parts=(replace(part, masks=masks),))
    return masks


def numbers(start: int, count: int) -> pa.Table:
    values = range(start, start + count)
    return pa.table({"id": pa.array(values, pa.int64()), "s": [f"s{v % 7}" for v in values]})


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


def plan_text(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["CODEGEN_ONLY", "NO_CODEGEN"])
def test_every_row_of_a_bitmap(spark: SparkSession, mode: str) -> None:
    """In generated code and without, up to rows far behind the bitmap's end."""
    rows = {0, 5, 6, 11, 12, 40, 41, 63, 64, 127}
    spark.conf.set("spark.sql.codegen.factoryMode", mode)
    spark.conf.set("spark.sql.codegen.wholeStage", str(mode == "CODEGEN_ONLY").lower())
    try:
        for listed in (rows, set()):
            numbers = spark.range(0, 1000, 1, 1).withColumn("bits", sf.lit(bits_of(mask(listed))))
            far = spark.range(1).select(
                sf.lit((1 << 40) + 5).cast("long").alias("id"), sf.lit(bits_of(mask(listed))).alias("bits")
            )
            found = numbers.union(far).where(is_deleted(spark, "bits", sf.col("id"))).select("id")
            assert {r.id for r in found.collect()} == listed
    finally:
        spark.conf.unset("spark.sql.codegen.factoryMode")
        spark.conf.unset("spark.sql.codegen.wholeStage")


@pytest.mark.spark
def test_only_the_rows_that_masks_list(spark: SparkSession, make_source: Make) -> None:
    """The other way round, as a feed of changes needs it; a file without a mask has no such row."""
    source = make_source([numbers(0, 3000), numbers(3000, 3000), numbers(6000, 3000)])
    masked(source, [{0, 1500, 2999}, set(), set(range(3000))])
    part = replace(source.plan.parts[0], keeps_masked=True)
    source.plan = replace(source.plan, parts=(part,))
    df = read_native(spark, source)
    assert ids(df) == [0, 1500, 2999, *range(6000, 9000)]
    assert ids(df.where("id between 1000 and 7000")) == [1500, 2999, *range(6000, 7001)]
    source.plan = replace(source.plan, parts=(replace(part, masks=None),))
    assert read_native(spark, source).count() == 0


@pytest.mark.spark
def test_deleted_rows_are_gone(spark: SparkSession, make_source: Make) -> None:
    """Over several row groups (of 1000 rows) a file, from no deleted row to all of them."""
    draw = random.Random(4)
    deleted: list[Iterable[int]] = [
        {0, 1, 999, 1000, 3499},
        set(),
        set(range(3500)),
        set(draw.sample(range(3500), 700)),
        {17, 99_999},
    ]
    source = make_source([numbers(3500 * n, 3500) for n in range(5)])
    masked(source, deleted)
    expected = sorted(3500 * n + i for n, gone in enumerate(deleted) for i in range(3500) if i not in set(gone))
    df = read_native(spark, source)
    assert df.schema.simpleString() == "struct<id:bigint,s:string>"
    assert ids(df) == expected
    assert df.count() == len(expected)
    assert df.agg(sf.sum("id"), sf.count(sf.lit(1))).first() == (sum(expected), len(expected))
    assert df.groupBy("s").count().agg(sf.sum("count")).first()[0] == len(expected)
    assert len(df.limit(10).collect()) == 10


@pytest.mark.spark
def test_filters_are_pushed_to_parquet_and_do_not_shift_rows(spark: SparkSession, make_source: Make) -> None:
    """Row groups that Parquet's statistics rule out must not shift the index of the rows behind them."""
    source = make_source([numbers(0, 5000), numbers(5000, 5000)])
    masked(source, [{4000, 4002}, {0, 4999}])
    df = read_native(spark, source).where("id between 3999 and 4003 or id >= 9998")
    assert ids(df) == [3999, 4001, 4003, 9998]
    text = plan_text(df)
    assert "PushedFilters: [Or(" in text
    assert ids(read_native(spark, source).where("id = 4002 or id = 4001")) == [4001]
    assert "ColumnarToRow" in text
    scan = df._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    assert scan.supportsColumnar()
    metrics = read_native(spark, source).where("id >= 9000")
    assert metrics.count() == 999


@pytest.mark.spark
def test_splits_of_a_file(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 40_000)])
    gone = set(range(0, 40_000, 3))
    masked(source, [gone])
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        df = read_native(spark, source)
        assert df.rdd.getNumPartitions() > 3
        assert ids(df) == sorted(set(range(40_000)) - gone)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


@pytest.mark.spark
@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_both_readers(spark: SparkSession, make_source: Make, vectorised: str) -> None:
    source = make_source([numbers(0, 2500)])
    masked(source, [{0, 1200, 2499}])
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
    try:
        assert ids(read_native(spark, source).where("id > 1000")) == [n for n in range(1001, 2499) if n != 1200]
    finally:
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")


@pytest.mark.spark
def test_a_deleted_row_cannot_fail_a_query(spark: SparkSession, make_source: Make) -> None:
    """The user's condition is evaluated for rows only that are there: it may not hold for others."""
    source = make_source([pa.table({"id": [1, 2, 3], "n": ["1", "not a number", "3"]})])
    masked(source, [{1}])
    spark.conf.set("spark.sql.ansi.enabled", "true")
    assert ids(read_native(spark, source).where("cast(n as int) > 1 and 1 / (id - 2) > 0")) == [3]


@pytest.mark.spark
def test_partition_columns_and_late_masks(spark: SparkSession, make_source: Make) -> None:
    kinds = Struct((Field("kind", t.STRING),))
    partitions = [{"kind": "a"}, {"kind": "b"}, {"kind": None}, {"kind": "a"}]
    source = make_source([numbers(n * 10, 10) for n in range(4)], partitions, kinds)
    masks = masked(source, [{0}, {1}, {2}, {3}])
    df = read_native(spark, source)
    assert masks.asked == []
    assert ids(df.where("kind = 'a'")) == [*range(1, 10), 30, 31, 32, *range(34, 40)]
    assert masks.asked == [["part 0%.parquet", "part 3%.parquet"]]
    # Only Spark can evaluate this; its answer, too, comes before masks are read.
    masks.asked.clear()
    assert ids(df.where("hash(kind) = hash('b')")) == [10, *range(12, 20)]
    assert masks.asked == [["part 1%.parquet"]]
    small = spark.createDataFrame([("b", 1)], "kind string, x int").where("x = 1")
    assert df.join(sf.broadcast(small), "kind").count() == 9
    assert df.groupBy("kind").count().count() == 3


@pytest.mark.spark
def test_names_that_are_in_the_way(spark: SparkSession, make_source: Make) -> None:
    """A table may have columns named like what Spark and we add."""
    rows = {"__deleted_rows": ["x", "y", "z"], "_metadata": [7, 8, 9], "row_index": [2, 1, 0]}
    source = make_source([pa.table(rows)])
    masked(source, [{0}])
    df = read_native(spark, source)
    assert df.columns == list(rows)
    assert sorted(tuple(r) for r in df.collect()) == [("y", 8, 1), ("z", 9, 0)]
    assert df.where("__deleted_rows = 'y'").count() == 1


@pytest.mark.spark
def test_no_filter_is_inferred_on_the_column(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10)])
    masked(source, [{0}])
    text = plan_text(read_native(spark, source).where("id > 3"))
    assert "isnotnull(__deleted_rows" not in text
    assert "PartitionFilters: []" in text
    assert "IsNotNull(id)" in text


@pytest.mark.spark
def test_a_large_file(spark: SparkSession, make_source: Make, tmp_path: Any) -> None:
    source = make_source([numbers(0, 1)])
    path = source.root / source.plan.parts[0].files["path"][0].as_py()
    count = 1_000_000
    pq.write_table(numbers(0, count), path, row_group_size=100_000)
    part = source.plan.parts[0]
    size = pa.array([path.stat().st_size], pa.int64())
    files = part.files.set_column(part.files.schema.get_field_index("size"), "size", size)
    source.plan = replace(source.plan, parts=(replace(part, files=files),))
    gone = set(random.Random(1).sample(range(count), 200_000))
    masked(source, [gone])
    found = read_native(spark, source).agg(sf.sum("id"), sf.count("*")).first()
    assert found == (count * (count - 1) // 2 - sum(gone), count - len(gone))


@pytest.mark.spark
def test_metadata_of_files_with_masks(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 5), numbers(5, 5)])
    masked(source, [{0}, {1, 4}])
    df = read_native(spark, source)
    found = df.select("id", "_metadata.row_index", "_metadata.file_name").where("id > 3").collect()
    names = [f"part%20{n}%25.parquet" for n in range(2)]
    assert sorted(tuple(r) for r in found) == [(4, 4, names[0]), *((n, n - 5, names[1]) for n in (5, 7, 8))]


@pytest.mark.spark
def test_metadata_where_some_files_have_masks(spark: SparkSession, make_source: Make) -> None:
    """`_metadata` is a column of every file source, and stays one where only some files have deleted rows."""
    source = two_parts(make_source)
    df = read_native(spark, source)
    assert df.columns == ["id", "s"]
    fields = ["file_path", "file_name", "file_size", "file_block_start", "file_block_length", "row_index"]
    columns = ["id", *(f"_metadata.{name}" for name in [*fields, "file_modification_time"])]
    names = source.plan.parts[0].files["path"].to_pylist() + source.plan.parts[1].files["path"].to_pylist()
    plain = spark.read.parquet(*(str(source.root / name) for name in names))
    expected = {tuple(r) for r in plain.select(*columns).collect() if r.id not in (11, 13)}
    assert len(expected) == 18
    assert {tuple(r) for r in df.select(*columns).collect()} == expected
    assert df.select("_metadata").schema == plain.select("_metadata").schema
    found = df.where("_metadata.row_index = 2 and id < 1000").select(df.metadataColumn("_metadata")["row_index"], "id")
    assert sorted(tuple(r) for r in found.collect()) == [(2, 2), (2, 12)]
    assert sorted(r.n for r in df.groupBy("_metadata.file_name").agg(sf.count("*").alias("n")).collect()) == [8, 10]
    if spark.version.startswith("4.0."):
        return  # It forgets the column of any Parquet files behind a select and a join.
    joined = df.alias("a").join(df.alias("b"), sf.expr("a.id + 1 = b.id"))
    places = joined.select("a._metadata.row_index", "b._metadata.row_index")
    assert {tuple(r) for r in places.collect()} == {(n % 10, (n + 1) % 10) for n in (*range(10), *range(14, 19))}


@pytest.mark.spark
def test_masks_are_read_only_for_files_that_have_some(spark: SparkSession, make_source: Make) -> None:
    """Files with and without are one relation; those without cost no look-up of masks."""
    source = two_parts(make_source)
    masks = source.plan.parts[1].masks
    df = read_native(spark, source)
    assert plan_text(df).count("FileScan") == 1
    assert ids(df) == [n for n in range(20) if n not in (11, 13)]
    assert masks.asked == [["part 1%.parquet"]]
    (scan,) = describe_scans(df.where("id > 3"))
    assert (scan.files, scan.filters) == (2, ("(id IS NOT NULL)", "(id > 3L)"))


@pytest.mark.spark
def test_more_columns_than_spark_reads_in_batches(spark: SparkSession, make_source: Make) -> None:
    """From 100 columns on (`spark.sql.codegen.maxFields`) Spark's reader goes row by row, and so do its numbers."""
    count = 120
    tables = [
        pa.table({f"c{c}": pa.array(range(n * 1500 + c, n * 1500 + c + 1500), pa.int64()) for c in range(count)})
        for n in range(2)
    ]
    source = make_source(tables)
    gone = {0, 999, 1000, 1499}
    masked(source, [gone, {7}])
    df = read_native(spark, source)
    scan = df._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    assert not scan.supportsColumnar()
    found = df.where("c119 > 500").collect()
    assert {r.c0 for r in found} == {n for n in range(382, 3000) if n not in gone and n != 1507}
    assert all(r.c119 == r.c0 + 119 for r in found)


def two_parts(make_source: Make) -> Any:
    """A file without and one with deleted rows (11 and 13)."""
    source = make_source([numbers(0, 10), numbers(10, 10)])
    masks = masked(source, [set(), {1, 3}])
    (part,) = source.plan.parts
    plain = replace(part, files=part.files.slice(0, 1), masks=None)
    source.plan = replace(
        source.plan, parts=(plain, replace(part, key="masked", files=part.files.slice(1), masks=masks))
    )
    return source
