"""Dates, instants and zones in text, as Spark casts them: one reader for predicates, partition values and statistics."""

from __future__ import annotations

import calendar
import datetime as dt
from datetime import timedelta, timezone

import pytest

from alluvium.codecs.temporal_text import (
    civil_from_days,
    days_from_civil,
    parse_date,
    parse_timestamp,
    parse_timestamp_ntz,
    parse_zone,
)
from alluvium.errors import InvalidRequest

HOUR = 3_600_000_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-02", 1), ("1970-1-2", 1), ("1970", 0), ("1970-02", 31), (" 1970-01-02 ", 1), ("1970-01-02T12:00", 1),
        ("1970-01-02 anything", 1), ("-0001-01-01", -719_893), ("+10000-01-01", 2_932_897), ("1970-01-02x", None),
        ("1970-02-30", None), ("70-01-02", None), ("١٩٧٠-٠١-٠٢", None), ("", None),
    ],
)  # fmt: skip
def test_dates(text: str, days: int | None) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01 01:00:00", HOUR), ("1970-01-01T01:00:00Z", HOUR), ("1970-01-01 01:00 Europe/Paris", 0),
        ("1970-01-01 01:00:00+01:00", 0), ("1970-01-01 00:00:00.1234567", 123_456), ("1970-01-02", DAY), ("1970", 0),
        ("1970-01-01 00:00:00 UTC", 0), ("1970-01-01 00:00:00 Nowhere/Land", None), ("1970-01-01 24:00:00", None),
        ("1970-01-01 00:00:00+19:00", None), ("1970-01-01 00:00:00+01:75", None), ("no", None),
    ],
)  # fmt: skip
def test_timestamps(text: str, micros: int | None) -> None:
    assert parse_timestamp(text, timezone.utc) == micros
    assert parse_timestamp(text + " ", timezone.utc) == micros


def test_a_text_without_a_zone_is_of_the_zone_around_it() -> None:
    assert parse_timestamp("1970-01-01 01:00:00", timezone(timedelta(hours=1))) == 0
    assert parse_timestamp("1970-01-01 01:00:00", parse_zone("Europe/Paris")) == 0
    assert parse_timestamp_ntz("1970-01-01 01:00:00+05:00") == HOUR


def test_zones() -> None:
    assert all(parse_zone(name) is timezone.utc for name in ("UTC", "z", "GMT", "Etc/UTC", "+00:00"))
    assert parse_zone("-01:30") == timezone(-timedelta(minutes=90))
    assert parse_zone("IST") is parse_zone("Asia/Kolkata") and parse_zone("EST") == timezone(-timedelta(hours=5))
    for name in ("Nowhere/Land", "+19:00", "+01:75", ""):
        with pytest.raises(InvalidRequest) as caught:
            parse_zone(name)
        assert caught.value.code == "unknown-time-zone"


def test_every_day_of_four_hundred_years() -> None:
    """Beside Python's calendar, which begins with year 1; what lies before and behind repeats it."""
    first = dt.date(1600, 3, 1).toordinal()
    epoch = dt.date(1970, 1, 1).toordinal()
    for ordinal in range(first, first + 146_097):
        day = dt.date.fromordinal(ordinal)
        assert civil_from_days(ordinal - epoch) == (day.year, day.month, day.day)
    for ordinal in range(first, first + 146_097, 37):
        day = dt.date.fromordinal(ordinal)
        assert days_from_civil(day.year, day.month, day.day) == ordinal - epoch
        for eras in (-6, -4, 21):
            year = day.year + 400 * eras
            assert days_from_civil(year, day.month, day.day) == ordinal - epoch + 146_097 * eras
            assert civil_from_days(ordinal - epoch + 146_097 * eras) == (year, day.month, day.day)


@pytest.mark.parametrize(
    "parts",
    [
        (2023, 2, 29),
        (1900, 2, 29),
        (2024, 4, 31),
        (2024, 0, 1),
        (2024, 13, 1),
        (2024, 1, 0),
        (2024, 1, 32),
        (-1, 2, 29),
    ],
)
def test_days_that_there_are_not(parts: tuple[int, int, int]) -> None:
    assert days_from_civil(*parts) is None


def test_the_day_behind_every_month() -> None:
    """As `calendar` has it, in years of every kind."""
    for year in (1900, 2000, 2023, 2024, 1, 4, 100, 400):
        for month in range(1, 13):
            last = calendar.monthrange(year, month)[1]
            assert days_from_civil(year, month, last) is not None
            assert days_from_civil(year, month, last + 1) is None and days_from_civil(year, month, 0) is None
