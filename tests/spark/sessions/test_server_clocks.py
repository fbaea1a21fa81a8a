"""Zones of which a server's edition says what ours does, and others; by SQL alone, as over Spark Connect."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from alluvium.expr.columnar import ahead_s
from alluvium.expr.late_times import Numbers
from alluvium.spark.sessions import server_clocks
from alluvium.spark.sessions.readings import reading_zone
from alluvium.spark.sessions.server_clocks import shares_clock

pytestmark = pytest.mark.spark

Clock = Callable[[Numbers, dt.tzinfo], Numbers]


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
    begin, end = (calendar.timegm(one.timetuple()) for one in (since, until))

    def clock(instants: Numbers, zone: dt.tzinfo) -> Numbers:
        is_other = (begin <= instants) & (instants < end)
        return ahead_s(instants, zone) + is_other * int(by.total_seconds())

    return clock


@pytest.mark.parametrize(
    ("since", "until"),
    [
        # For good, for a summer, and for the hour by which a change comes later.
        (dt.datetime(2022, 10, 30), dt.datetime(2100, 1, 1)),
        (dt.datetime(1981, 4, 1), dt.datetime(1981, 9, 1)),
        (dt.datetime(2024, 3, 31, 0), dt.datetime(2024, 3, 31, 1)),
    ],
)
@pytest.mark.parametrize(
    ("name", "by"), [("Europe/Berlin", dt.timedelta(hours=1)), ("Asia/Tokyo", dt.timedelta(minutes=-30))]
)
def test_an_edition_that_says_something_else(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, since: dt.datetime, until: dt.datetime,
    by: dt.timedelta,
) -> None:  # fmt: skip
    monkeypatch.setattr(server_clocks, "ahead_s", shifted(by, since, until))
    assert not shares_clock(spark, name)


def test_conditions_are_not_read_then(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert reading_zone(spark, ["n = 5"]) == "Europe/Berlin"
        server_clocks._known.clear()
        other = shifted(dt.timedelta(hours=1), dt.datetime(2022, 1, 1), dt.datetime(2023, 1, 1))
        monkeypatch.setattr(server_clocks, "ahead_s", other)
        assert reading_zone(spark, ["n = 5"]) is None
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
