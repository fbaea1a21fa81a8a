"""Durations in every unit."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms.durations import ensure_duration, parse_duration

UNITS = {
    86_400_000: ("d", "day", "days"), 3_600_000: ("h", "hour", "hours"), 60_000: ("m", "min", "minute", "minutes"),
    1_000: ("s", "sec", "secs", "second", "seconds"), 1: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
}  # fmt: skip


@pytest.mark.parametrize(("unit", "each"), [(unit, each) for each, units in UNITS.items() for unit in units])
def test_units(unit: str, each: int) -> None:
    for text in (f"3{unit}", f" 3 {unit.upper()} ", f"3\t{unit}"):
        assert parse_duration(text) == 3 * each


@pytest.mark.parametrize(
    ("unit", "parts"), [("µs", 1000), ("micros", 1000), ("microsecond", 1000), ("ns", 10**6), ("nanos", 10**6)]
)
def test_parts_of_milliseconds(unit: str, parts: int) -> None:
    assert parse_duration(f"{3 * parts} {unit}") == 3 and parse_duration(f"{parts - 1} {unit}") == 0


@pytest.mark.parametrize("text", ["", "h", "-1 h", "1.5 h", "1 week", "1 h 2 m", "one day", "1h1"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="12 h"):
        parse_duration(text)
    with pytest.raises(InvalidRequest) as caught:
        ensure_duration("time_retained", text)
    assert caught.value.code == "invalid-duration" and "time_retained" in str(caught.value)
    assert ensure_duration("time_retained", "2 h") == 7_200_000
