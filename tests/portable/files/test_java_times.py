"""Times in ORC files of a Java in another zone, around 1970, old ones and late ones: what it was given, and reads itself."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import pyarrow as pa
import pytest
from orc_of_java import java_file

from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.java_times import holds_times, with_javas_times
from alluvium.portable.files.orc_file import open_orc

EPOCH = dt.datetime(1970, 1, 1)
ZONES = ["Asia/Kolkata", "America/New_York", "Europe/Berlin", "Europe/London", "Pacific/Kiritimati", "UTC"]
SECOND, MILLISECOND, NOTHING = dt.timedelta(seconds=1), dt.timedelta(milliseconds=1), dt.timedelta(0)
FRACTIONS = [dt.timedelta(microseconds=us) for us in (0, 999, 1_000, 500_000, 999_999)]
#: Around both midnights of every zone.
TIMES = [
    EPOCH + dt.timedelta(minutes=30 * n) + one
    for n in range(-60, 60)
    for one in (f - s for s in (NOTHING, SECOND) for f in FRACTIONS)
]


def since_1970(time: dt.datetime, zone: str) -> tuple[dt.timedelta, dt.timedelta]:
    """Whole seconds as Java's writer cuts them, from the milliseconds, and the fraction."""
    instant = time.replace(tzinfo=zoneinfo.ZoneInfo(zone)) - EPOCH.replace(tzinfo=dt.timezone.utc)
    fraction = instant % SECOND
    is_cut = fraction >= MILLISECOND and instant < NOTHING
    return instant - fraction + (SECOND if is_cut else NOTHING), fraction


def java_reads(time: dt.datetime, zone: str) -> dt.datetime:
    """Of the last second before UTC's midnight its own reader makes the first one after."""
    seconds, fraction = since_1970(time, zone)
    instant = time.replace(tzinfo=zoneinfo.ZoneInfo(zone)) - EPOCH.replace(tzinfo=dt.timezone.utc)
    return time + SECOND if seconds == NOTHING and instant < NOTHING and fraction else time


def given_to_arrow(time: dt.datetime, zone: str) -> dt.datetime:
    """What Arrow's writer must be given, so that its reader shows what it shows of Java's file.

    What it writes of times since 1970 is what Java writes; seconds and fractions of those before are below zero, and its
    reader takes no second off of them.
    """
    seconds, fraction = since_1970(time, zone)
    then = time.replace(tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset()
    today = dt.datetime(2015, 1, 1, tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset()
    assert then is not None and today is not None
    given = seconds + today + fraction
    is_less = given < NOTHING and fraction >= MILLISECOND and seconds + then < NOTHING
    return EPOCH + given - (SECOND if is_less else NOTHING)


def read(rows: pa.Table, zone: str | None) -> list:
    file = open_orc("f.orc", pa.BufferReader(java_file(rows, zone)))
    return pa.chunked_array([batch["t"] for _, batch in file.batches({"t": "t"}, 1000)]).to_pylist()


@pytest.mark.parametrize("zone", ZONES)
def test_times_as_java_reads_them(zone: str) -> None:
    rows = pa.table({"t": pa.array([given_to_arrow(time, zone) for time in TIMES], pa.timestamp("us"))})
    assert read(rows, zone) == [java_reads(time, zone) for time in TIMES]


def test_a_day_has_no_more_than_one_second_that_java_takes_for_another() -> None:
    for zone in ("Asia/Kolkata", "America/New_York", "Europe/London", "UTC"):
        odd = [time for time in TIMES if java_reads(time, zone) != time]
        assert len(odd) == 3 and max(odd) - min(odd) < SECOND


#: Times, and how far Java's clock is ahead of UTC's at them, seconds: before 1900 it has today's standard time.
OLD = [
    ("Asia/Kolkata", "1701-01-15T10:11:12.500", 19_800),
    ("Asia/Kolkata", "1875-07-15T10:11:12", 19_800),
    ("Asia/Kolkata", "1903-07-15T10:11:12.500", 19_270),
    ("Australia/Lord_Howe", "1890-07-15T10:11:12.500", 37_800),
    ("Australia/Lord_Howe", "1903-07-15T10:11:12.500", 36_000),
    ("Europe/Dublin", "1899-12-31T10:11:12.500", 0),
    ("Europe/Dublin", "1903-07-15T10:11:12", -1_521),
    ("Africa/Casablanca", "1890-07-15T10:11:12.500", 0),
    ("Africa/Casablanca", "1908-07-15T10:11:12.500", -1_820),
    ("America/Sao_Paulo", "1890-07-15T10:11:12.500", -10_800),
    ("America/Sao_Paulo", "1908-07-15T10:11:12.500", -11_188),
    ("Europe/Berlin", "1850-07-15T10:11:12.500", 3_600),
    ("UTC", "1850-07-15T10:11:12.500", 0),
    # Some systems have histories of their own for zones that Java takes for others before 1970.
    ("Europe/Stockholm", "1917-07-15T10:11:12.500", 7_200),
    ("Europe/Amsterdam", "1930-07-15T10:11:12", 3_600),
    ("Europe/Amsterdam", "1930-01-15T10:11:12.500", 0),
    ("Europe/Oslo", "1965-07-15T10:11:12.500", 3_600),
    ("Africa/Malabo", "1950-07-15T10:11:12.500", 3_600),
    # No summer time, so its standard time from 2037 on; that Namibia's winter time was one, its data do not say.
    ("Africa/Windhoek", "1890-07-15T10:11:12.500", 3_600),
    ("Africa/Windhoek", "2036-07-15T10:11:12.500", 7_200),
    ("Africa/Windhoek", "2037-01-15T10:11:12.500", 3_600),
    ("Africa/Windhoek", "2250-07-15T10:11:12", 3_600),
    ("Europe/Berlin", "2250-07-15T10:11:12.500", 7_200),
]


@pytest.mark.parametrize(("zone", "text", "ahead"), OLD)
def test_times_go_by_the_clocks_that_java_knows(zone: str, text: str, ahead: int) -> None:
    time = dt.datetime.fromisoformat(text)
    today = dt.datetime(2015, 1, 1, tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset()
    assert today is not None
    given = time - dt.timedelta(seconds=ahead) + today
    rows = pa.table({"t": pa.array([given, None], pa.timestamp("us"))})
    assert read(rows, zone) == [time, None]


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("America/Sao_Paulo", "1951-12-01T00:00"),
        ("America/New_York", "1950-04-30T02:00"),
        ("Asia/Kolkata", "1906-01-01T00:00"),
        ("Europe/Berlin", "1940-04-01T02:00"),
    ],
)
def test_the_last_second_before_clocks_are_put_forward(zone: str, change: str) -> None:
    """Arrow looks at the clock before it takes a second off. (Its writer has no files with finer fractions there.)"""
    end = dt.datetime.fromisoformat(change)
    times = [end - SECOND + fraction for fraction in FRACTIONS if not NOTHING < fraction < MILLISECOND]
    times += [end - SECOND - MILLISECOND, end - 2 * SECOND]
    rows = pa.table({"t": pa.array([given_to_arrow(time, zone) for time in times], pa.timestamp("us"))})
    assert read(rows, zone) == times


@pytest.mark.parametrize("fraction", [NOTHING, MILLISECOND, SECOND - MILLISECOND])
def test_the_first_second_that_a_clock_shows_twice(fraction: dt.timedelta) -> None:
    """That Arrow shows, too, of the last one before the clock was put back, which Java never writes."""
    time = dt.datetime(1950, 9, 24, 1) - SECOND + fraction
    rows = pa.table({"t": pa.array([given_to_arrow(time, "America/New_York")], pa.timestamp("us"))})
    assert read(rows, "America/New_York") == [time]


def shown_by_arrow(*texts: str | None) -> pa.Array:
    return pa.array([text and dt.datetime.fromisoformat(text) for text in texts], pa.timestamp("ns"))


def test_times_that_arrow_shows_as_one() -> None:
    """Clocks of Calcutta were put back by half an hour at the end of 1869, of which Java knows nothing."""
    kolkata = zoneinfo.ZoneInfo("Asia/Kolkata")
    beside = with_javas_times(shown_by_arrow("1869-12-31T23:27:00", "1870-01-01T00:00:01", None), lambda: kolkata)
    assert beside.to_pylist() == [
        dt.datetime(1869, 12, 31, 23, 3, 40), dt.datetime(1870, 1, 1, 0, 8, 51), None,
    ]  # fmt: skip
    for lost in ("1869-12-31T23:28:00", "1869-12-31T23:59:59", "1869-12-31T23:30:00.500"):
        with pytest.raises(UnsupportedFeature) as caught:
            with_javas_times(
                pa.array([[*shown_by_arrow(None, lost)]], pa.list_(pa.timestamp("ns"))), lambda: kolkata, "f.orc"
            )
        assert (caught.value.code, caught.value.path) == ("unsupported-file-type", "f.orc")
        assert lost[:19] in str(caught.value) and "Spark" in str(caught.value)


@pytest.mark.parametrize("zone", ["GMT+05:30", "GMT-03:00", "IST"])
def test_zones_of_which_arrow_has_no_clock(zone: str) -> None:
    """The file is sound: its other columns are read."""
    rows = pa.table({"t": pa.array([EPOCH], pa.timestamp("us")), "k": [1]})
    file = open_orc("f.orc", pa.BufferReader(java_file(rows, zone)))
    assert [batch["k"].to_pylist() for _, batch in file.batches({"k": "k"}, 10)] == [[1]]
    with pytest.raises(UnsupportedFeature) as caught:
        list(file.batches({"t": "t"}, 10))
    assert (caught.value.code, caught.value.path) == ("unknown-writer-zone", "f.orc")
    assert zone in str(caught.value) and "Spark" in str(caught.value)


def test_times_at_any_depth_and_nothing_else() -> None:
    time, zone = EPOCH + dt.timedelta(hours=3, milliseconds=500), dt.timezone(dt.timedelta(hours=5, minutes=30))
    stamps = pa.array([time + SECOND, None], pa.timestamp("ns"))
    rows = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 2, 2], stamps), pa.array([1, None])], ["l", "n"])
    found = with_javas_times(rows, lambda: zone)
    assert found.type == rows.type and found.to_pylist() == [{"l": [time, None], "n": 1}, {"l": [], "n": None}]
    assert holds_times(rows.type) and not holds_times(pa.list_(pa.timestamp("ns", "UTC")))
    instants = pa.array([time], pa.timestamp("ns", "UTC"))
    assert with_javas_times(instants, lambda: zone) is instants


def test_the_zone_is_asked_for_only_where_it_matters() -> None:
    times = [dt.datetime(1977, 1, 1), dt.datetime(2024, 7, 1, 0, 0, 0, 500_000), None]
    found = pa.array(times, pa.timestamp("ns"))
    asked: list[dt.tzinfo] = []
    assert with_javas_times(found, asked.pop) is found
    assert with_javas_times(pa.array([], pa.timestamp("ns")), asked.pop).to_pylist() == []
    for one in (EPOCH + MILLISECOND, dt.datetime(2037, 1, 1)):
        with pytest.raises(IndexError):
            with_javas_times(pa.array([one], pa.timestamp("ns")), asked.pop)
