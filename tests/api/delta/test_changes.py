"""The change feed by its front doors with Spark; what it holds is tested in `tests/delta/changes`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from change_table import (
    EXTRA,
    START_MS,
    STEP_MS,
    VECTORS,
    ChangeTable,
    metadata,
    protocol,
    vector,
    write_accounts,
)
from mapped_table import mapped, numbered

import alluvium
from alluvium.errors import InvalidRequest, NotFound
from alluvium.schema.types import INTEGER, LONG, STRING, Field, Struct

pytestmark = pytest.mark.spark

_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"

ALL = [
    (1, "v1", "insert", 1), (2, "new", "update_postimage", 2), (2, "v2", "insert", 1),
    (2, "v2", "update_preimage", 2), (3, "v3", "delete", 3), (3, "v3", "insert", 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("changes") / "a table %20 ü"
    write_accounts(str(root))
    return str(root)


@pytest.fixture
def enabled(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


def rows(df) -> list[tuple]:
    return sorted(tuple(r) for r in df.drop("_commit_timestamp").collect())


def time_of(version: int, plus: float = 0) -> dt.datetime:
    return dt.datetime.fromtimestamp((START_MS + version * STEP_MS) / 1000 + plus, dt.timezone.utc)


def test_all_changes(spark, url: str) -> None:
    df = alluvium.changes(spark, url, 0)
    assert [(f.name, f.dataType.simpleString()) for f in df.schema.fields[-3:]] == [
        (EXTRA[0], "string"), (EXTRA[1], "bigint"), (EXTRA[2], "timestamp"),
    ]  # fmt: skip
    assert df.columns == ["id", "v", *EXTRA]
    assert rows(df) == ALL
    times = {r[0]: r[1] for r in df.select("_commit_version", "_commit_timestamp").distinct().collect()}
    assert {v: t.astimezone(dt.timezone.utc) for v, t in times.items()} == {n: time_of(n) for n in (1, 2, 3)}


def test_ranges(spark, url: str) -> None:
    assert rows(alluvium.changes(spark, url, 2, 2)) == [ALL[1], ALL[3]]
    assert rows(alluvium.changes(spark, url, time_of(1, 1), time_of(2, 1).isoformat())) == [ALL[1], ALL[3]]
    assert rows(alluvium.changes(spark, url, 3, 99)) == [ALL[4]]
    with pytest.raises(NotFound):
        alluvium.changes(spark, url, 4)
    with pytest.raises(InvalidRequest):
        alluvium.changes(spark, url, 2, 1)


def test_predicates(spark, url: str) -> None:
    df = alluvium.changes(spark, url, 0)
    assert rows(df.where("_commit_version > 2")) == [ALL[4]]
    assert rows(df.where("_change_type in ('delete', 'insert') and id > 1")) == [ALL[2], ALL[4], ALL[5]]
    assert rows(df.where(f"_commit_timestamp = timestamp'{time_of(2):%Y-%m-%d %H:%M:%S}Z'")) == [ALL[1], ALL[3]]
    counts = {r[0]: r[1] for r in df.groupBy("_change_type").count().collect()}
    assert counts == {"insert": 3, "update_preimage": 1, "update_postimage": 1, "delete": 1}
    read = alluvium.explain(df.where("_commit_version = 3"))
    assert sum(e.files for e in read) == 1


@pytest.mark.parametrize("name", ["readChangeFeed", "readchangedata"])
def test_options_of_the_reader(enabled, url: str, name: str) -> None:
    reader = enabled.read.format("delta").option(name, "true")
    assert rows(reader.option("startingVersion", 1).option("endingVersion", "1").load(url)) == [ALL[0], ALL[2], ALL[5]]
    by_time = enabled.read.format("delta").option(name, True).option("startingTimestamp", str(time_of(3)))
    assert rows(by_time.load(url)) == [ALL[4]]
    ended = by_time.option("endingTimestamp", str(time_of(3)))
    assert rows(ended.load(url)) == [ALL[4]]


def test_of_a_version_and_a_time_the_version_counts_as_in_delta_spark(spark, url: str) -> None:
    options = {"readChangeFeed": "true", "startingVersion": 3, "startingTimestamp": str(time_of(1))}
    assert rows(alluvium.read(spark, url, **options)) == [ALL[4]]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"readChangeFeed": "true"}, "no-start-of-changes"),
        ({"readChangeFeed": "perhaps", "startingVersion": 1}, "invalid-option"),
        ({"readChangeFeed": "true", "startingVersion": 1, "versionAsOf": 1}, "changes-as-of"),
        ({"readChangeFeed": "true", "startingVersion": "latest"}, "invalid-version"),
        ({"readChangeFeed": "true", "startingTimestamp": "hello"}, "invalid-timestamp"),
    ],
)
def test_options_that_make_no_sense(spark, url: str, options: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        alluvium.read(spark, url, **options)
    assert caught.value.code == code


def test_without_the_option_rows_are_read(spark, url: str) -> None:
    df = alluvium.read(spark, url, readChangeFeed="false", startingVersion=1)
    assert sorted(tuple(r) for r in df.collect()) == [(1, "v1"), (2, "new")]


def test_settings_of_the_session(spark, url: str) -> None:
    spark.conf.set(_OUT_OF_RANGE, "true")
    try:
        assert rows(alluvium.changes(spark, url, 4)) == []
    finally:
        spark.conf.unset(_OUT_OF_RANGE)
    spark.conf.set(_SCHEMA_MODE, "newest")
    try:
        with pytest.raises(InvalidRequest):
            alluvium.changes(spark, url, 1)
    finally:
        spark.conf.unset(_SCHEMA_MODE)


def test_a_missing_cdc_file_is_our_own_error(spark, tmp_path: Path) -> None:
    write_accounts(str(tmp_path))
    for path in (tmp_path / "_change_data").iterdir():
        path.unlink()
    with pytest.raises(NotFound) as caught:
        alluvium.changes(spark, str(tmp_path), 2).collect()
    assert caught.value.code == "missing-file"
    assert ChangeTable(tmp_path).url in str(caught.value)


def test_a_range_over_another_partitioning(spark, tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.rows("b.parquet", id=[2])
    again = metadata(partition_by=["v"])
    table.commit(again, table.remove("a.parquet"), table.add("b.parquet", partitionValues={"v": "x"}))
    df = alluvium.changes(spark, table.url, 0)
    assert rows(df) == [(1, "v1", "delete", 1), (1, "v1", "insert", 0), (2, "x", "insert", 1)]
    assert rows(df.where("v = 'x' and _commit_version = 1")) == [(2, "x", "insert", 1)]


def test_a_range_over_a_widened_type(spark, tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    narrow, wide = (Struct((Field("id", kind), Field("v", STRING))) for kind in (INTEGER, LONG))
    widening = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening", "changeDataFeed"]}
    table.commit(protocol(3, 7, **widening), metadata(narrow))
    table.rows("a.parquet", id=pa.array([1], pa.int32()), v=["x"])
    table.commit(table.add("a.parquet"))
    table.commit(metadata(wide), table.add("b.parquet", [1 << 40]))
    df = alluvium.changes(spark, table.url, 0)
    assert rows(df) == [(1, "x", "insert", 1), (1 << 40, f"v{1 << 40}", "insert", 2)]
    assert rows(df.where("id = 1")) == [(1, "x", "insert", 1)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(spark, tmp_path: Path, mode: str) -> None:
    table = ChangeTable(tmp_path)
    schema = Struct((mapped("id", LONG, "col-1", 1), mapped("v", STRING, "col-2", 2)))
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mode}
    table.commit(protocol(2, 5), metadata(schema, ["v"], properties))
    pq.write_table(numbered(pa.table({"col-1": [1]}), {"col-1": 1}), tmp_path / "a.parquet")
    table.commit(table.add("a.parquet", partitionValues={"col-2": "x"}))
    recorded = numbered(pa.table({"col-1": [1], "_change_type": ["delete"]}), {"col-1": 1})
    pq.write_table(recorded, tmp_path / "c.parquet")
    size = (tmp_path / "c.parquet").stat().st_size
    table.commit({"cdc": {
        "path": "c.parquet", "partitionValues": {"col-2": "x"}, "size": size, "dataChange": False,
    }})  # fmt: skip
    df = alluvium.changes(spark, table.url, 0)
    assert rows(df) == [(1, "x", "delete", 2), (1, "x", "insert", 1)]
    assert rows(df.where("v = 'x' and _change_type = 'delete' and id = 1")) == [(1, "x", "delete", 2)]


def test_files_that_go_with_their_vectors(spark, tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(VECTORS, metadata(), table.add("a.parquet", range(3), deletionVector=vector([0])))
    table.commit(table.remove("a.parquet", deletionVector=vector([0])), table.add("b.parquet", [7]))
    df = alluvium.changes(spark, table.url, 1)
    assert rows(df) == [(1, "v1", "delete", 1), (2, "v2", "delete", 1), (7, "v7", "insert", 1)]
    assert rows(df.where("id = 2 and _commit_version = 1")) == [(2, "v2", "delete", 1)]


def test_a_hundred_versions_are_one_scan(spark, tmp_path: Path) -> None:
    table = ChangeTable(tmp_path)
    table.commit(protocol(), metadata())
    for n in range(1, 101):
        table.commit(table.add(f"{n}.parquet", [n]))
    df = alluvium.changes(spark, table.url, 0)
    assert len(alluvium.explain(df)) == 1
    assert df.count() == 100
    assert rows(df.where("_commit_version between 50 and 51")) == [(n, f"v{n}", "insert", n) for n in (50, 51)]
    assert rows(df.where("_commit_version % 50 = 0")) == [(n, f"v{n}", "insert", n) for n in (100, 50)][::-1]
