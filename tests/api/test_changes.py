"""The change feed by its front doors with Spark; what it holds is tested in `tests/delta/changes`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from change_table import EXTRA, START_MS, STEP_MS, ChangeTable, write_accounts

import alluvium
from alluvium.errors import InvalidRequest, NotFound

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
