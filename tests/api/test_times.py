"""Times as text: in the session's zone where there is a session, as in delta-spark; in UTC where there is none."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import alluvium
from alluvium.api.options import has_point, parse_bound, parse_timestamp_ms, point_in_path
from alluvium.errors import InvalidRequest

#: 2024-01-01 10:00 and a day later, in UTC: 05:00 in New York.
FIRST, SECOND = 1_704_103_200, 1_704_189_600
NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024-01-01 10:00:00", "UTC", FIRST),
        ("2024-01-01 05:00:00", NEW_YORK, FIRST),
        ("2024-01-01T05", NEW_YORK, FIRST),
        (" 2024-1-1 5:0:0 ", NEW_YORK, FIRST),
        ("2024-01-01 10:00:00Z", NEW_YORK, FIRST),
        ("2024-01-01 11:00:00 +01:00", NEW_YORK, FIRST),
        ("2024-01-01 11:00:00 Europe/Berlin", NEW_YORK, FIRST),
        # Python's own parser has known the short form since 3.11.
        *([("20240101T050000", NEW_YORK, FIRST)] if sys.version_info >= (3, 11) else []),
        ("2024-01-01", "+14:00", FIRST - 24 * 3600),
    ],
)
def test_texts(text: str, zone: str, expected: int):
    assert parse_timestamp_ms(text, zone=zone) == expected * 1000
    assert parse_bound(text, "start", zone).timestamp_ms == expected * 1000


def test_objects_are_no_texts():
    naive = dt.datetime(2024, 1, 1, 10)
    assert parse_timestamp_ms(naive, zone=NEW_YORK) == FIRST * 1000
    for wrong in ("nonsense", "", "2024-13-01", 12):
        with pytest.raises(InvalidRequest) as caught:
            parse_timestamp_ms(wrong, zone=NEW_YORK)
        assert caught.value.code == "invalid-timestamp"


def test_points_in_paths():
    assert point_in_path("s3://b/t@v12", "UTC") == ("s3://b/t", 12, None)
    assert point_in_path("/a@v1/t@V2//", "UTC") == ("/a@v1/t", 2, None)
    assert point_in_path("/t@20240101050000123", NEW_YORK) == ("/t", None, FIRST * 1000 + 123)
    for path in ("/t", "/t@v", "/t@v-1", "/t@2024", "/t@v1/x", "@v1"):
        assert not has_point(path)


@pytest.fixture
def york(spark, tmp_path: Path) -> Iterator[str]:
    """The path of a table with two versions whose times are known; the session is in New York."""
    path = str(tmp_path / "t")
    alluvium.write(spark.range(1), path, **{"delta.enableChangeDataFeed": "true"})
    alluvium.write(spark.range(2), path, mode="append")
    for version, seconds in enumerate((FIRST, SECOND)):
        os.utime(f"{path}/_delta_log/{version:020}.json", (seconds, seconds))
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    alluvium.enable(spark)
    yield path
    alluvium.disable(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.spark
def test_all_texts_mean_one_moment(spark, york: str):
    def count(point: str = "", **options: object) -> int:
        return spark.read.format("delta").options(**options).load(york + point).count()

    # Nine o'clock in New York is after the first commit; in UTC it would be before it.
    early, late = "2024-01-01 09:00:00", "2024-01-02 05:00:00"
    assert [count(timestampAsOf=early), count(timestampAsOf=late)] == [1, 3]
    assert [count("@20240101090000000"), count("@20240102050000000")] == [1, 3]
    assert alluvium.read(spark, york, timestamp=early).count() == 1
    assert alluvium.read(spark, york, timestamp=dt.datetime(2024, 1, 1, 14)).count() == 1
    feed = {"readChangeFeed": "true"}
    assert count(**feed, startingTimestamp=early) == 2
    assert count(**feed, startingVersion=0, endingTimestamp=early) == 1
    assert alluvium.changes(spark, york, "2024-01-01 05:00:00", early).count() == 1
    with pytest.raises(alluvium.errors.NotFound) as caught:
        count(timestampAsOf="2024-01-01 04:00:00")
    assert caught.value.code == "missing-version"
    # Without Spark there is no zone but UTC.
    assert alluvium.open(york, timestamp="2024-01-01 10:00:00").version == 0
    with pytest.raises(alluvium.errors.NotFound):
        alluvium.open(york, timestamp=early)
    alluvium.DeltaTable.forPath(spark, york).restoreToTimestamp(early)
    assert count() == 1
