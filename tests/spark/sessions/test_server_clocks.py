"""Zones of which a server's edition says what ours does, and others; by SQL alone, as over Spark Connect."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from alluvium.expr.columnar import Datum, local_time
from alluvium.spark.sessions import server_clocks
from alluvium.spark.sessions.readings import reading_zone
from alluvium.spark.sessions.server_clocks import shares_clock

pytestmark = pytest.mark.spark

Clock = Callable[[Datum, dt.tzinfo], Datum]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    server_clocks._known.clear()
    yield
    server_clocks._known.clear()


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "+05:30", "PST"]
)
def test_zones_that_have_been_quiet(spark: SparkSession, name: str) -> None:
    assert shares_clock(spark, name)
    assert not shares_clock(spark, "Europe/Nowhere")


def shifted(by: dt.timedelta, since: dt.datetime, until: dt.datetime) -> Clock:
    """A clock that goes otherwise for some time."""

    def clock(instants: Datum, zone: dt.tzinfo) -> Datum:
        shown = local_time(instants, zone)
        ends = [pa.scalar(end.replace(tzinfo=dt.timezone.utc), instants.type) for end in (since, until)]
        is_other = pc.and_(pc.greater_equal(instants, ends[0]), pc.less(instants, ends[1]))
        return pc.if_else(is_other, pc.add(shown, pa.scalar(by, pa.duration("us"))), shown)

    return clock


@pytest.mark.parametrize("by", [dt.timedelta(hours=1), dt.timedelta(minutes=-30)])
@pytest.mark.parametrize(
    ("since", "until"),
    [
        # For good, for a summer, and for the hour by which a change comes later.
        (dt.datetime(2022, 10, 30), dt.datetime(2100, 1, 1)),
        (dt.datetime(1981, 4, 1), dt.datetime(1981, 9, 1)),
        (dt.datetime(2024, 3, 31, 0), dt.datetime(2024, 3, 31, 1)),
    ],
)
@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Tokyo"])
def test_an_edition_that_says_something_else(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, since: dt.datetime, until: dt.datetime,
    by: dt.timedelta,
) -> None:  # fmt: skip
    monkeypatch.setattr(server_clocks, "local_time", shifted(by, since, until))
    assert not shares_clock(spark, name)


def test_conditions_are_not_read_then(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert reading_zone(spark, ["n = 5"]) == "Europe/Berlin"
        server_clocks._known.clear()
        other = shifted(dt.timedelta(hours=1), dt.datetime(2022, 1, 1), dt.datetime(2023, 1, 1))
        monkeypatch.setattr(server_clocks, "local_time", other)
        assert reading_zone(spark, ["n = 5"]) is None
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
