"""Dates, instants and zones in text, as Spark casts them: one reader for predicates, partition values and statistics."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from alluvium.codecs.temporal_text import parse_date, parse_timestamp, parse_timestamp_ntz, parse_zone
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
    for name in ("Nowhere/Land", "+19:00", "+01:75", ""):
        with pytest.raises(InvalidRequest) as caught:
            parse_zone(name)
        assert caught.value.code == "unknown-time-zone"
