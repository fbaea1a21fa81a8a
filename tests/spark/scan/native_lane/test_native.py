"""The native lane over real Parquet files."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import CorruptTable, NotFound, UnsupportedFeature
from alluvium.plan.scan import (
    Coalesce,
    FileConstant,
    KeyMerge,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPlan,
    Sum,
)
from alluvium.schema import types as t
from alluvium.schema.types import Decimal, Field, Struct
from alluvium.spark.scan.native_lane.native import even_split, read_native

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
DAYS = Struct((Field("day", t.DATE), Field("kind", t.STRING)))


def numbers(start: int, count: int) -> pa.Table:
    values = range(start, start + count)
    return pa.table({"id": pa.array(values, pa.int64()), "s": [f"s{v % 7}" for v in values]})


def days(make: Make, count: int = 6) -> Any:
    partitions = [
        {"day": datetime.date(2024, 1, 1 + n // 2), "kind": "ab"[n % 2] if n != 5 else None} for n in range(count)
    ]
    return make([numbers(n * 10, 10) for n in range(count)], partitions, DAYS)


def scanned_files(df: DataFrame) -> int:
    """How many files the plan of the DataFrame reads."""
    plan = df._jdf.queryExecution().executedPlan()
    scans = [plan.collectLeaves().apply(i) for i in range(plan.collectLeaves().size())]
    return sum(scan.selectedPartitions().totalNumberOfFiles() for scan in scans)


def test_filters_that_only_spark_understands_meet_many_groups(spark: SparkSession, make_source: Make) -> None:
    df = read_native(spark, days(make_source, 40))
    # Each is asked of every group's constants, by a loop in the JVM.
    assert df.where("soundex(kind) = 'A000' and hash(day) = hash(date'2024-01-13')").count() == 10
    assert df.where("soundex(kind) = 'A000'").count() == 200


def test_rows_and_schema_are_those_of_the_files(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10), numbers(10, 5)])
    df = read_native(spark, source)
    assert df.schema.simpleString() == "struct<id:bigint,s:string>"
    assert sorted(tuple(r) for r in df.collect()) == [(v, f"s{v % 7}") for v in range(15)]
    assert sorted(df.inputFiles()) == sorted(spark.read.parquet(f"{source.root}").inputFiles())


def test_partition_values_are_typed_and_filters_on_them_are_exact(spark: SparkSession, make_source: Make) -> None:
    source = days(make_source)
    df = read_native(spark, source)
    assert df.count() == 60
    assert df.where("kind is null").select("id").count() == 10
    assert {r.day for r in df.select("day").distinct().collect()} == {datetime.date(2024, 1, d) for d in (1, 2, 3)}
    # Spark drops partition filters from the plan: also those that nobody can print as SQL must hold.
    hashed = df.where("hash(kind) % 2 = 0 and day > '2024-01-01'")
    assert hashed.count() == df.cache().where("hash(kind) % 2 = 0 and day > '2024-01-01'").count()
    df.unpersist()
    assert df.where("upper(kind) = 'B' and id % 10 = 3").count() == 2


def test_files_are_pruned_by_the_source(spark: SparkSession, make_source: Make) -> None:
    source = days(make_source)
    one = read_native(spark, source).where("kind = 'a' and id >= 0")
    assert one.count() == 30
    assert scanned_files(one) == 3
    assert str(source.asked[-1]).count("kind") >= 1


def test_dynamic_partition_pruning(spark: SparkSession, make_source: Make) -> None:
    source = days(make_source)
    small = spark.createDataFrame([("b", 1), ("z", 2)], "kind string, x int").where("x = 1")
    joined = read_native(spark, source).join(sf.broadcast(small), "kind")
    assert joined.count() == 20
    assert "dynamicpruning" in joined._jdf.queryExecution().optimizedPlan().toString()


def test_renames_constants_positions_and_sums(spark: SparkSession, make_source: Make) -> None:
    first = Struct((Field("first", t.LONG),))
    source = make_source([numbers(0, 10), numbers(10, 5)], [{"first": 0}, {"first": 100}], first)
    part = source.plan.parts[0]
    output = (
        OutputColumn("Row Id", t.LONG, True, Sum((FileConstant("first", t.LONG), RowPosition()))),
        OutputColumn("né`w", t.LONG, True, Physical(("id",), t.LONG)),
        OutputColumn("price", Decimal(5, 2), True, Literal(decimal.Decimal("1.50"), Decimal(5, 2))),
        OutputColumn("s", t.STRING, True, Coalesce((Literal(None, t.STRING), Physical(("s",), t.STRING)))),
    )
    source.plan = replace(
        source.plan,
        parts=(replace(part, output=output),),
        schema=Struct(tuple(Field(c.name, c.type) for c in output)),
    )
    df = read_native(spark, source)
    assert df.columns == ["Row Id", "né`w", "price", "s"]
    rows = sorted(tuple(r) for r in df.collect())
    assert rows[:2] == [(0, 0, decimal.Decimal("1.50"), "s0"), (1, 1, decimal.Decimal("1.50"), "s1")]
    assert rows[-1] == (104, 14, decimal.Decimal("1.50"), "s0")
    assert df.where("`né``w` = 12").collect()[0]["Row Id"] == 102
    # The filter reached the source under the table's name.
    assert "né`w" in str(source.asked[-1])


def test_metadata_columns(spark: SparkSession, make_source: Make) -> None:
    df = read_native(spark, make_source([numbers(0, 10), numbers(10, 5)]))
    rows = df.select("id", "_metadata.file_path", "_metadata.row_index", "_metadata.file_size").collect()
    assert {r.row_index for r in rows} == set(range(10))
    assert len({r.file_path for r in rows}) == 2
    assert all(r.file_size > 0 for r in rows)


def test_parts_are_united_and_no_part_is_no_row(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10), numbers(10, 5)])
    part = source.plan.parts[0]
    two = tuple(replace(part, key=str(n), files=part.files.slice(n, 1)) for n in range(2))
    source.plan = replace(source.plan, parts=two)
    assert read_native(spark, source).where("id > 7").count() == 7
    source.plan = ScanPlan(source.plan.root, (), source.plan.schema)
    empty = read_native(spark, source)
    assert (empty.count(), empty.columns) == (0, ["id", "s"])


def test_equal_versions_are_one_relation(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10)])
    first, second = read_native(spark, source), read_native(spark, source)
    other = make_source([numbers(0, 10)])
    other.identity = ("other", "1")
    first.cache()
    try:
        assert second.storageLevel.useMemory
        assert not read_native(spark, other).storageLevel.useMemory
    finally:
        first.unpersist()
    assert first.sameSemantics(second)
    assert first.join(second.withColumnRenamed("s", "s2"), "id").count() == 10


def test_size_decides_broadcasts(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10)])
    df = read_native(spark, source)
    joined = df.join(spark.range(100), "id")
    assert df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() == source.size_bytes
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()


def test_temporary_view_and_self_join_in_sql(spark: SparkSession, make_source: Make) -> None:
    read_native(spark, days(make_source)).createOrReplaceTempView("alluvium_days")
    text = "select count(*) from alluvium_days a join alluvium_days b on a.id = b.id where a.kind = 'a' and b.id < 30"
    assert spark.sql(text).first()[0] == 20
    text = "select max(id) from alluvium_days where kind = (select min(kind) from alluvium_days)"
    assert spark.sql(text).first()[0] == 49


@pytest.mark.parametrize("error", [CorruptTable("broken", code="x", path="p"), UnsupportedFeature("no")])
def test_errors_while_planning_are_raised_as_they_are(spark: SparkSession, make_source: Make, error: Exception) -> None:
    source = make_source([numbers(0, 10)])
    df = read_native(spark, source).where("id > 3")
    source.failure = error
    for action in (df.count, df.collect, df.toArrow, lambda: df.join(df.groupBy("id").count(), "id").collect()):
        with pytest.raises(type(error)) as raised:
            action()
        assert raised.value is error
    spark.newSession()  # installs PySpark's own hook anew
    with pytest.raises(type(error)):
        df.where("id < 5").count()


def test_answers_are_kept_for_equal_filters(spark: SparkSession, make_source: Make) -> None:
    source = days(make_source)
    df = read_native(spark, source)
    for _ in range(3):
        assert df.where("kind = 'a'").count() == 30
    assert sum(where is not None for where in source.asked) == 1


def test_unreadable_parts_are_refused(spark: SparkSession, make_source: Make) -> None:
    source = make_source([numbers(0, 10)])
    part = source.plan.parts[0]
    for unreadable in (
        replace(part, merge=KeyMerge("g", ("id",), (), None, "patch")),
        replace(part, file_format="orc"),
    ):
        source.plan = replace(source.plan, parts=(unreadable,))
        with pytest.raises(UnsupportedFeature):
            read_native(spark, source)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_constants_of_all_types(spark: SparkSession, make_source: Make, zone: str) -> None:
    moment = datetime.datetime(2024, 3, 10, 2, 30, 0, 123456)
    constants = {
        "c_string": "ü,='\\", "c_long": -(2**62), "c_int": 5, "c_short": -3, "c_byte": 7, "c_double": float("nan"),
        "c_float": 0.5, "c_bool": True, "c_binary": b"\x00\xff", "c_date": datetime.date(1, 1, 1),
        "c_ntz": moment, "c_ts": moment.replace(tzinfo=datetime.timezone.utc),
        "c_decimal": decimal.Decimal("-12345678901234567890.12"), "c_null": None,
    }  # fmt: skip
    kinds = [t.STRING, t.LONG, t.INTEGER, t.SHORT, t.BYTE, t.DOUBLE, t.FLOAT, t.BOOLEAN, t.BINARY, t.DATE]
    kinds += [t.TIMESTAMP_NTZ, t.TIMESTAMP, Decimal(38, 2), t.STRING]
    schema = Struct(tuple(Field(name, kind) for name, kind in zip(constants, kinds, strict=True)))
    source = make_source([numbers(0, 2), numbers(2, 3)], [constants, dict.fromkeys(constants)], schema)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = read_native(spark, source)
        table = df.where("c_long is not null").select(*constants).limit(1).toArrow()
        assert df.where("c_long is null").count() == 3
        assert df.where("c_ts = timestamp'2024-03-10T02:30:00.123456Z'").count() == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    row = table.to_pylist()[0]
    assert str(row.pop("c_double")) == "nan"
    assert row == {k: v for k, v in constants.items() if k != "c_double"}


MIB = 1 << 20


@pytest.mark.parametrize(
    ("weight", "cores", "tasks"), [(300, 2, 4), (100, 2, 2), (256, 2, 2), (257, 2, 4), (10_000, 16, 80), (1, 4, 4)]
)
def test_tasks_come_out_even(weight: int, cores: int, tasks: int) -> None:
    size = even_split(weight * MIB, cores, 128 * MIB)
    assert size <= 128 * MIB
    assert -(-weight * MIB // size) == tasks


def test_an_even_scan_reads_the_same_rows(spark: SparkSession, make_source: Make) -> None:
    source = days(make_source)
    assert sorted(read_native(spark, source, is_even=True).collect()) == sorted(read_native(spark, source).collect())


def test_a_missing_file_outside_of_the_table_is_our_error(
    spark: SparkSession, make_source: Make, tmp_path: Path
) -> None:
    """As a shallow clone's, whose files lie in the table that it was made from."""
    source = make_source([numbers(0, 10), numbers(10, 5)])
    (part,) = source.plan.parts
    inside, other = (source.root / name for name in part.files["path"].to_pylist())
    elsewhere = tmp_path / "else where%"
    elsewhere.mkdir()
    outside = other.rename(elsewhere / "x y.parquet")
    index = part.files.schema.get_field_index("path")
    files = part.files.set_column(index, "path", pa.array([inside.name, str(outside)]))
    source.plan = replace(source.plan, parts=(replace(part, files=files),))
    df = read_native(spark, source)
    assert df.count() == 15
    outside.unlink()
    with pytest.raises(NotFound) as raised:
        read_native(spark, source).collect()
    assert raised.value.code == "missing-file"
    assert str(raised.value.path).endswith("/else where%/x y.parquet")
    assert str(raised.value.url).endswith(source.root.name)
