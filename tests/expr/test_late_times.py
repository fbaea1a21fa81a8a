"""Clocks after 2037: beside Python's own, value by value."""

from __future__ import annotations

import datetime as dt
import random
import zoneinfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from alluvium.expr import late_times
from alluvium.expr.columnar import instant, local_time
from alluvium.expr.literals import UTC

ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
]
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
#: When the clocks of the zones change in 2040, and in a year after which the calendar has begun anew twice.
CHANGES = [
    dt.datetime(year, month, day, hour, 29 + minute, 59, 999_999)
    for year in (2037, 2038, 2040, 2099, 2100, 2999)
    for month in (3, 4, 10, 11)
    for day in range(1, 32)
    if day < 31 or month in (3, 10)
    for hour in (0, 1, 2, 6, 7, 15, 16)
    for minute in (0, 1)
]


def times(seed: int) -> list[dt.datetime | None]:
    lot = random.Random(seed)
    sown = [dt.datetime(1990, 1, 1) + dt.timedelta(seconds=lot.randrange(250_000_000_000)) for _ in range(500)]
    return [None, dt.datetime(9999, 12, 30), *CHANGES, *sown]


@pytest.mark.parametrize("name", ZONES)
def test_both_ways_beside_python(name: str) -> None:
    zone, given = zoneinfo.ZoneInfo(name), times(1)
    shown = [t and t.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) for t in given]
    assert local_time(pa.array(given, LOCAL).cast(INSTANT), zone).to_pylist() == shown
    # Of times that are shown twice the earlier; what the clock leaves out is moved on.
    meant = [t and t.replace(tzinfo=zone).astimezone(UTC) for t in given]
    found = instant(pa.array(given, LOCAL), zone)
    assert found.type == INSTANT and found.to_pylist() == meant
    for t, moment in list(zip(given, meant, strict=True))[:40]:
        assert instant(pa.scalar(t, LOCAL), zone).as_py() == moment


@pytest.mark.parametrize("name", ZONES)
def test_arrow_is_not_believed_from_some_time_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where the system's files list no change after 2007: what comes then is as right as by files that list all."""
    zone, given = zoneinfo.ZoneInfo(name), pa.array([t for t in times(2) if t and t.year < 2037], LOCAL)
    by_arrow = local_time(given.cast(INSTANT), zone), instant(given, zone)
    monkeypatch.setattr(late_times, "_late_us", lambda _: 1_180_000_000_000_000)
    assert (local_time(given.cast(INSTANT), zone), instant(given, zone)) == by_arrow


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_of_other_units(unit: str) -> None:
    zone, given = zoneinfo.ZoneInfo("Europe/Berlin"), pa.array(times(3), LOCAL)
    coarse = pc.floor_temporal(given, unit={"s": "second", "ms": "millisecond"}[unit])
    for way, zoned in ((instant, None), (local_time, "UTC")):
        right = way(coarse.cast(pa.timestamp("us", zoned)), zone)
        assert way(coarse.cast(pa.timestamp(unit, zoned)), zone) == right


def test_years_that_python_has_not() -> None:
    """The calendar repeats itself: four hundred years later clocks do the same."""
    zone, cycle = zoneinfo.ZoneInfo("America/New_York"), 146_097 * 86_400_000_000
    near = pa.array([dt.datetime(2200, month, day, 12) for month in range(1, 13) for day in (1, 15)], LOCAL)
    far = pa.array([value + 25 * cycle for value in near.cast(pa.int64()).to_pylist()]).cast(LOCAL)
    for way, source in ((instant, LOCAL), (local_time, INSTANT)):
        moved = way(far.cast(source), zone).cast(pa.int64()).to_pylist()
        assert moved == [v + 25 * cycle for v in way(near.cast(source), zone).cast(pa.int64()).to_pylist()]


def test_zones_of_one_distance_are_left_as_they_are() -> None:
    values = pa.array([dt.datetime(2200, 7, 1)], INSTANT)
    assert local_time(values, dt.timezone(dt.timedelta(hours=2))).to_pylist() == [dt.datetime(2200, 7, 1, 2)]
