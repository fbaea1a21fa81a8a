"""Paimon tables through Spark: changes, system tables, explanations; what `alluvium.open` gives is what they give."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten, write_readings
from pyspark.sql import SparkSession
from sketch_tables import write_visits

import alluvium
from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature

pytestmark = pytest.mark.spark

SYSTEM_TABLES = (
    "snapshots", "schemas", "options", "tags", "branches", "files", "manifests", "partitions", "buckets", "consumers",
    "statistics", "aggregation_fields", "table_indexes", "file_key_ranges", "audit_log", "binlog", "ro",
)  # fmt: skip


def shown(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.fixture
def readings(tmp_path: Path) -> str:
    write_readings(tmp_path / "readings")
    return str(tmp_path / "readings")


@pytest.fixture
def collected(tmp_path: Path) -> str:
    """A table that only Python workers can merge."""
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.list_(pa.int32()))])
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "collect"}
    table = HandWritten(tmp_path / "collected", schema, keys=("k",), **options)
    table.commit([{"k": 1, "v": [1]}, {"k": 2, "v": [2]}])
    table.commit([{"k": 2, "v": [3]}, {"k": 3, "v": None}])
    return str(tmp_path / "collected")


def test_sketches_are_united_by_python_workers(spark: SparkSession, tmp_path: Path) -> None:
    write_visits(tmp_path / "visits")
    url = str(tmp_path / "visits")
    frame = alluvium.read(spark, url)
    assert shown(frame.toArrow()) == shown(alluvium.open(url).to_arrow())
    # Other columns of the table need no sketches.
    assert sorted(row.page for row in frame.select("page").collect()) == ["help", "home"]


def test_a_damaged_sketch_names_its_column(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.binary())])
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "hll_sketch"}
    table = HandWritten(tmp_path / "damaged", schema, keys=("k",), **options)
    table.commit([{"k": 1, "v": b"no sketch"}])
    table.commit([{"k": 1, "v": b"no sketch"}])
    frame = alluvium.read(spark, str(tmp_path / "damaged"))
    with pytest.raises(CorruptTable, match=r"column 'v': .*no HyperLogLog sketch.*table: .*/damaged"):
        frame.collect()


def test_a_row_that_came_again_is_no_difference(spark: SparkSession, tmp_path: Path) -> None:
    """Values are compared, not whether they were inserted or updated."""
    table = HandWritten(tmp_path / "t", pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())]), ["k"])
    table.commit([{"k": 1, "v": None}, {"k": 2, "v": 2}])
    # A file that both states have is left out, as by Java: so here it goes.
    table.commit([{"k": 1, "v": None}, {"k": 2, "v": 3}], ["+U", "+U"], overwrites=True)
    url = str(tmp_path / "t")
    frame = alluvium.changes(spark, url, 1, 2, mode="diff")
    assert shown(frame.toArrow()) == shown(alluvium.open(url).changes(1, 2, mode="diff"))
    assert [(row._row_kind, row.k, row.v) for row in frame.collect()] == [("+U", 2, 3)]


@pytest.mark.parametrize("mode", ["auto", "delta", "diff", "binlog"])
def test_changes(mode: str, spark: SparkSession, readings: str, collected: str) -> None:
    for url, ranges in ((readings, ((0, 3), (1, 3), (1, "noon"), (1, 1))), (collected, ((0, 2), (1, None)))):
        for start, end in ranges:
            frame = alluvium.changes(spark, url, start, end, mode=mode)
            expected = alluvium.open(url).changes(start, end, mode=mode)
            assert frame.columns == expected.column_names
            assert shown(frame.toArrow()) == shown(expected), (url, start, end)


def test_changes_from_a_time_filtered(spark: SparkSession, readings: str) -> None:
    start = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=1_700_000_000_000 + 60_000)
    frame = alluvium.changes(spark, readings, start)
    assert shown(frame.toArrow()) == shown(alluvium.open(readings).changes(1))
    assert [row.sensor for row in frame.where("_row_kind = '-D'").collect()] == ["b"]


def test_what_is_not_there_is_said(spark: SparkSession, readings: str, tmp_path: Path) -> None:
    for given, code in (((1, 9), "snapshot-not-found"), (("dawn", 3), "tag-not-found"), ((3, 1), "invalid-range")):
        with pytest.raises((NotFound, InvalidRequest)) as caught:
            alluvium.changes(spark, readings, *given)
        assert caught.value.code == code
    for given, code in (
        ({"system": "fils"}, "unknown-system-table"),
        ({"system": "row_tracking"}, "row-tracking-disabled"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.read(spark, readings, **given)
        assert caught.value.code == code
    with pytest.raises(InvalidRequest):
        alluvium.changes(spark, readings, 1, 3, mode="both")
    with pytest.raises(InvalidRequest):
        alluvium.read(spark, readings, readChangeFeed=True, startingVersion=1)
    alluvium.write(spark.range(3), str(tmp_path / "delta"))
    for call in (
        lambda: alluvium.read(spark, str(tmp_path / "delta"), system="files"),
        lambda: alluvium.changes(spark, str(tmp_path / "delta"), 0, mode="diff"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.code == "not-a-paimon-table"


def test_system_tables(spark: SparkSession, readings: str, collected: str) -> None:
    for url in (readings, collected):
        for name in SYSTEM_TABLES:
            frame = alluvium.read(spark, url, system=name)
            expected = alluvium.open(url).system(name)
            assert frame.columns == expected.column_names
            assert shown(frame.toArrow()) == shown(expected), name
    assert alluvium.read(
        spark, readings, system="tags", where="tag_name = 'noon'", columns=["snapshot_id"]
    ).collect() == [(2,)]


def test_a_state_of_the_past_by_every_lane(spark: SparkSession, readings: str) -> None:
    for given in ({"version": 1}, {"tag": "noon"}, {"options": {"scan.snapshot-id": 2}}):
        expected = shown(alluvium.open(readings, **given).to_arrow())
        for lane in ("native", "python"):
            assert shown(alluvium.read(spark, readings, lane=lane, **given).toArrow()) == expected


def test_a_state_of_the_past_by_options_of_a_reader(spark: SparkSession, readings: str) -> None:
    at_ms = 1_700_000_000_000 + 60_000
    alluvium.enable(spark)
    try:
        for name, value, same in (
            ("scan.snapshot-id", 1, {"version": 1}),
            ("scan.tag-name", "noon", {"tag": "noon"}),
            ("scan.timestamp-millis", at_ms, {"options": {"scan.timestamp-millis": at_ms}}),
            ("scan.version", "noon", {"tag": "noon"}),
        ):
            expected = shown(alluvium.open(readings, **same).to_arrow())
            reader = spark.read.option(name, value)
            assert shown(reader.format("paimon").load(readings).toArrow()) == expected, name
            assert shown(reader.table(f"paimon.`{readings}`").toArrow()) == expected, name
        for options in ({"scan.snapshot-id": 9}, {"scan.mode": "compacted-full"}, {"incremental-between": "1,2"}):
            with pytest.raises((NotFound, InvalidRequest, UnsupportedFeature)):
                spark.read.format("paimon").options(**options).load(readings)
    finally:
        alluvium.disable(spark)


def test_explanations(spark: SparkSession, readings: str) -> None:
    of_url = alluvium.explain(readings, "sensor = 'c'")
    assert (of_url.lane, of_url.files, of_url.version) == ("portable", 1, "3")
    assert "files merge by key" in of_url.why + alluvium.explain(readings).why
    (scan, *_) = alluvium.explain(alluvium.read(spark, readings).where("sensor = 'c'"))
    assert (scan.lane, scan.version) == ("native", "3")
