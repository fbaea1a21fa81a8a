"""Rows that tasks number themselves: the same numbers as those of Spark's reader, one file a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.scan import FileConstant, OutputColumn, Physical, RowPosition, Sum
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.scan.numbering import one_file_a_task, skips_within_files
from alluvium.storage.open import open_store

pytestmark = pytest.mark.spark

Make = Callable[..., Any]
SIZES = (13_000, 10_001, 9_000, 24_000)
FILE = Struct((Field("file", t.LONG),))
COUNTS, READER = "monotonically_increasing_id", "_tmp_metadata_row_index"


@pytest.fixture(autouse=True)
def cheap_opening(spark: SparkSession) -> Iterator[None]:
    """Of files so small Spark would give several to a task."""
    spark.conf.set("spark.sql.files.openCostInBytes", "1000")
    yield
    spark.conf.unset("spark.sql.files.openCostInBytes")


def placed(make: Make, masks: list[bytes | None] | None = None) -> Any:
    """Files whose rows hold their own number, and show the one that they are given."""
    tables = [pa.table({"own": np.arange(size, dtype=np.int64), "x": np.arange(size) % 7}) for size in SIZES]
    source = make(tables, [{"file": n} for n in range(len(SIZES))], FILE)
    part = source.plan.parts[0]
    files = part.files
    if masks is not None:
        files = files.set_column(files.schema.get_field_index("mask"), "mask", pa.array(masks, pa.binary()))
    numbers = (
        OutputColumn("row", t.LONG, False, RowPosition()),
        OutputColumn("id", t.LONG, False, Sum((FileConstant("file", t.LONG), RowPosition()))),
    )
    part = replace(part, files=files, output=(*part.output, *numbers))
    schema = Struct((*source.plan.schema.fields, Field("row", t.LONG), Field("id", t.LONG)))
    source.plan = replace(source.plan, parts=(part,), schema=schema)
    return source


def plan_of(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


def wrong(df: DataFrame) -> int:
    return df.where("row <> own or id <> own + file").count()


def test_each_row_gets_its_place(spark: SparkSession, make_source: Make) -> None:
    df = read_native(spark, placed(make_source), reads_whole=True)
    assert COUNTS in plan_of(df)
    assert READER not in plan_of(df)
    assert df.rdd.getNumPartitions() == len(SIZES)
    assert wrong(df) == 0
    # A filter leaves rows out, not numbers.
    found = df.where("x = 3 and own > 8000").groupBy("file").agg(sf.count("*"), sf.min("row"), sf.max("row"))
    wanted = {
        n: (len(kept), kept[0], kept[-1])
        for n, size in enumerate(SIZES)
        if (kept := [i for i in range(8_001, size) if i % 7 == 3])
    }
    assert {r[0]: tuple(r[1:]) for r in found.collect()} == wanted


def test_the_settings_of_the_session_have_no_say(spark: SparkSession, make_source: Make) -> None:
    names = ("maxPartitionNum", "minPartitionNum")
    for name, value in zip(names, ("1", "50"), strict=True):
        spark.conf.set(f"spark.sql.files.{name}", value)
    try:
        df = read_native(spark, placed(make_source), reads_whole=True)
        assert COUNTS in plan_of(df)
        assert (df.rdd.getNumPartitions(), wrong(df)) == (len(SIZES), 0)
    finally:
        for name in names:
            spark.conf.unset(f"spark.sql.files.{name}")


def test_deleted_rows_are_found_by_them(spark: SparkSession, make_source: Make) -> None:
    gone = [None, BitMap64(range(0, SIZES[1], 3)), BitMap64([SIZES[2] - 1]), BitMap64(range(SIZES[3]))]
    masks = [None if bits is None else bits.serialize() for bits in gone]
    df = read_native(spark, placed(make_source, masks), reads_whole=True)
    assert COUNTS in plan_of(df)
    assert READER not in plan_of(df)
    assert wrong(df) == 0
    left = {r["file"]: r["n"] for r in df.groupBy("file").agg(sf.count("*").alias("n")).collect()}
    assert left == {0: SIZES[0], 1: SIZES[1] - len(range(0, SIZES[1], 3)), 2: SIZES[2] - 1}
    assert df.where("file = 1 and own % 3 = 0").count() == 0


def test_only_where_it_pays(spark: SparkSession, make_source: Make) -> None:
    source = placed(make_source)
    part = source.plan.parts[0]

    def reads(**files: object) -> str:
        table = part.files
        for name, values in files.items():
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))
        source.plan = replace(source.plan, parts=(replace(part, files=table),))
        return plan_of(read_native(spark, source, reads_whole=True).select("row"))

    assert COUNTS in reads()
    # Small files, a file that Spark would cut.
    assert READER in reads(size=[999] * len(SIZES))
    assert READER in reads(size=[1 << 40, 1, 1, 1])
    source.plan = replace(source.plan, parts=(replace(part, files=part.files.slice(0, 1)),))
    assert READER in plan_of(read_native(spark, source, reads_whole=True).select("row"))
    # Nobody asks for numbers.
    source.plan = replace(source.plan, parts=(replace(part, output=part.output[:2]),))
    whole = plan_of(read_native(spark, source, reads_whole=True))
    assert COUNTS not in whole
    assert READER not in whole


@pytest.mark.parametrize("name", ["__row_index", "__ROW_Index"])
def test_a_column_of_that_name(spark: SparkSession, make_source: Make, name: str) -> None:
    size = SIZES[0]
    tables = [pa.table({name: pa.array(np.arange(size)[::-1].copy())}) for _ in range(2)]
    source = make_source(tables, [{"file": n} for n in range(2)], FILE)
    part = source.plan.parts[0]
    part = replace(part, output=(*part.output, OutputColumn("row", t.LONG, False, RowPosition())))
    schema = Struct((*source.plan.schema.fields, Field("row", t.LONG)))
    source.plan = replace(source.plan, parts=(part,), schema=schema)
    df = read_native(spark, source, reads_whole=True)
    assert COUNTS in plan_of(df)
    assert df.where(f"row + {name} <> {size - 1}").count() == 0
    assert part.output[0].value == Physical((name,), t.LONG)


@pytest.mark.parametrize("tracked", [False, True])
def test_verbs_count_and_change_the_right_rows(spark: SparkSession, tmp_path: Any, tracked: bool) -> None:
    url = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": str(tracked).lower()}
    made = spark.range(0, 48_000, 1, 4).selectExpr("id", "id % 5 as v", "id div 12000 as p")
    table = alluvium.DeltaTable.create(spark).location(url).addColumns(made.schema)
    for name, value in properties.items():
        table = table.property(name, value)
    table.execute()
    alluvium.write(made, url, mode="append")
    snapshot = load_snapshot(open_store(url))
    assert one_file_a_task(spark, candidates_of(snapshot, snapshot.files).plan_scan().parts) is not None
    table = alluvium.DeltaTable.forPath(spark, url)
    known = alluvium.read(spark, url, rowIds=True).select("id", "_row_id") if tracked else None
    first = {r["id"]: r["_row_id"] for r in known.where("id % 1000 = 17").collect()} if known is not None else {}
    table.delete("id % 10 = 3")
    table.update("id % 10 = 7", {"v": "v + 100"})
    # The files have masks now.
    table.delete("id % 100 = 4")
    source = spark.range(0, 49_000, 50).selectExpr("id", "-1L as v", "9L as p")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(
        set={"v": "s.v"}
    ).whenNotMatchedInsertAll().execute()
    old = made.where("id % 10 <> 3 and id % 100 <> 4").selectExpr(
        "id", "case when id % 10 = 7 then v + 100 when id % 50 = 0 then -1 else v end as v", "p"
    )
    wanted = old.union(source.where("id >= 48000"))
    now = table.toDF()
    assert now.exceptAll(wanted).count() == 0
    assert wanted.exceptAll(now).count() == 0
    if tracked:
        after = alluvium.read(spark, url, rowIds=True).where("id % 1000 = 17").select("id", "_row_id")
        assert {r["id"]: r["_row_id"] for r in after.collect()} == first


SCHEMA = Struct((Field("id", t.LONG), Field("s", t.STRING), Field("day", t.DATE)))


@pytest.mark.parametrize(
    ("where", "skips"),
    [
        ("id % 10 = 3", False),
        ("id = 3", True),
        ("3 > id", True),
        ("cast(id as int) = 3", True),
        ("id % 10 = 3 and s in ('a', 'b')", True),
        ("s like 'a%'", True),
        ("startswith(s, 'a')", True),
        ("not (id = 3)", True),
        ("day = '2024-01-01' and id % 10 = 3", False),
        ("day in ('2024-01-01') or length(s) = 2", False),
        ("s is not null and length(s) = 2", False),
    ],
)
def test_what_the_reader_may_skip_by(where: str, skips: bool) -> None:
    assert skips_within_files(parse_predicate(where, SCHEMA), ("day",)) is skips


def test_nothing_to_skip_by() -> None:
    assert not skips_within_files(None, ())
