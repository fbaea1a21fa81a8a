"""Zones of which the JVM's edition says what ours does, and others."""

from __future__ import annotations

import calendar
import datetime as dt
import re
import zoneinfo
from collections.abc import Iterator

import numpy as np
import pytest
from pyspark.sql import SparkSession

from alluvium.expr.columnar import ahead_s
from alluvium.expr.late_times import Numbers
from alluvium.spark.jvm import clocks
from alluvium.spark.jvm.clocks import shares_clock
from alluvium.spark.jvm.gateway import java_of

pytestmark = pytest.mark.spark

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Tokyo"]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    clocks._known.clear()
    yield
    clocks._known.clear()


@pytest.mark.parametrize("name", [*ZONES, "UTC", "+05:30"])
def test_zones_that_have_been_quiet(spark: SparkSession, name: str) -> None:
    assert shares_clock(java_of(spark), name)


@pytest.mark.parametrize("name", ["America/Mexico_City", "Europe/Berlin", "Asia/Tokyo"])
@pytest.mark.parametrize("hours", [24 * 365, 7])
def test_an_edition_that_has_learnt_of_something(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, hours: int
) -> None:
    """As Mexico's without summer time since 2022: an older one goes on with it. Seven hours or a year are told."""
    begin = calendar.timegm((2031, 10, 5, 1, 0, 0))

    def newer(instants: Numbers, zone: dt.tzinfo) -> Numbers:
        is_later = (begin <= instants) & (instants < begin + hours * 3_600)
        return np.where(is_later, -6 * 3_600, ahead_s(instants, zone))

    # Mexico City is six hours behind all the year, and is not told apart.
    monkeypatch.setattr(clocks, "ahead_s", newer)
    assert shares_clock(java_of(spark), name) == (name == "America/Mexico_City")


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_a_change_that_comes_a_little_later(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Between the steps by which clocks are compared."""
    monkeypatch.setattr(clocks, "ahead_s", lambda instants, zone: ahead_s(instants - 1, zone))
    assert not shares_clock(java_of(spark), name)


@pytest.mark.parametrize("name", ZONES)
def test_what_java_tells_is_read_to_the_second(spark: SparkSession, name: str) -> None:
    first, changes = clocks._javas_changes(java_of(spark), name)
    zone = zoneinfo.ZoneInfo(name)
    for (second, offset), before in zip(changes, [first, *(offset for _, offset in changes)], strict=False):
        at = dt.datetime.fromtimestamp(second, dt.timezone.utc)
        assert (at.astimezone(zone).utcoffset(), (at - dt.timedelta(seconds=1)).astimezone(zone).utcoffset()) == (
            dt.timedelta(seconds=offset), dt.timedelta(seconds=before),
        )  # fmt: skip


def test_seconds_and_signs() -> None:
    told = "[Transition[Gap at 1981-10-03T23:59:59-11:00:01 to Z], TransitionRule[Gap +01:00 to +02:00, SUNDAY]]"
    (match,) = re.finditer(clocks._CHANGE, told)
    local = (dt.datetime(1981, 10, 3, 23, 59, 59) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    assert clocks._change(match) == (local + 39_601, 0)
