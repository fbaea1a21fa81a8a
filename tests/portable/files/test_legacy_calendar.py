"""The hybrid calendar beside the Julian day number, by which every calendar counts: whole centuries, and random moments."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.legacy_calendar import LegacyCalendar, legacy_calendar, rebase

UTC = dt.timezone.utc
DAY_US = 86_400_000_000
VERSION, LEGACY, INT96, ZONE = (
    f"org.apache.spark.{name}".encode() for name in ("version", "legacyDateTime", "legacyINT96", "timeZone")
)
BOTH = LegacyCalendar(True, True, UTC)
SWITCH = (1582, 10, 15)


def hybrid_day(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date as Java's old calendar counts it: Julian before the switch."""
    if (year, month, day) >= SWITCH:
        return (dt.date(year, month, day) - dt.date(1970, 1, 1)).days
    shifted = (14 - month) // 12
    y, m = year + 4800 - shifted, month + 12 * shifted - 3
    julian_day_number = day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32083
    return julian_day_number - 2_440_588


def is_julian(year: int, month: int, day: int) -> bool:
    lengths = (31, 29 if year % 4 == 0 else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return day <= lengths[month - 1]


def dates() -> list[tuple[int, int, int]]:
    lot = random.Random(0)
    edges = [(1, 1, 1), (1, 12, 31), (4, 2, 29), (100, 2, 28), (100, 3, 1), (1500, 2, 28), (1500, 3, 1), (1582, 10, 4), SWITCH, (1582, 10, 16),
             (1581, 12, 31), (1600, 2, 29), (1969, 12, 31), (1970, 1, 1), (9999, 12, 31)]  # fmt: skip
    some = [(lot.randint(1, 2100), lot.randint(1, 12), lot.randint(1, 31)) for _ in range(600)]
    # Days that both calendars have; ten days were left out at the switch.
    return edges + [one for one in some if is_julian(*one) and is_gregorian(*one) and not (1582, 10, 4) < one < SWITCH]


def is_gregorian(year: int, month: int, day: int) -> bool:
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    return True


def test_dates_are_those_that_were_written() -> None:
    written = dates()
    values = pa.array([*(hybrid_day(*one) for one in written), None], pa.int32()).cast(pa.date32())
    found = rebase(values, BOTH, False, "c")
    assert found.to_pylist() == [*(dt.date(*one) for one in written), None] and found.type == pa.date32()
    # What has no early date is as it was.
    late = pa.array([dt.date(*SWITCH), None, dt.date(2024, 1, 1)])
    assert rebase(late, BOTH, False, "c") is late


@pytest.mark.parametrize("century", [100, 200, 300, 500, 600, 700, 900, 1000, 1100, 1300, 1400, 1500])
def test_leap_days_that_only_the_julian_calendar_has(century: int) -> None:
    values = pa.array([hybrid_day(century, 2, 29)], pa.int32()).cast(pa.date32())
    assert rebase(values, BOTH, False, "c").to_pylist() == [dt.date(century, 3, 1)]


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("offset", ["UTC", "+05:30", "-08:00", "+18:00"])
@pytest.mark.parametrize("tz", [None, "UTC"])
def test_clocks_on_the_wall_stay(offset: str, unit: str, tz: str | None) -> None:
    lot, zone = random.Random(offset), parse_zone(offset)
    assert zone is not None
    offset_us = (zone.utcoffset(None) or dt.timedelta()) // dt.timedelta(microseconds=1)
    scale = 1 if unit == "us" else 1000
    micros, expected = [], []
    for year, month, day in dates()[1:]:
        clock_us = lot.choice([0, 1000, DAY_US - 1000, lot.randrange(86_400_000) * 1000])
        micros.append(hybrid_day(year, month, day) * DAY_US + clock_us - offset_us)
        expected.append((dt.date(year, month, day) - dt.date(1970, 1, 1)).days * DAY_US + clock_us - offset_us)
    values = pa.array([*(m // scale for m in micros), None], pa.int64()).cast(pa.timestamp(unit, tz))
    found = rebase(values, LegacyCalendar(True, False, zone), False, "c")
    assert found.type == pa.timestamp("us", tz)
    assert found.cast(pa.int64()).to_pylist() == [*expected, None]


def test_zones_with_a_history() -> None:
    paris = LegacyCalendar(True, True, parse_zone("Europe/Paris"))
    edge = dt.datetime(1900, 1, 1)
    late = pa.array([edge, None, dt.datetime(2024, 1, 1)], pa.timestamp("us"))
    assert rebase(late, paris, False, "c") is late
    with pytest.raises(UnsupportedFeature) as caught:
        rebase(pa.array([edge - dt.timedelta(microseconds=1)], pa.timestamp("us")), paris, False, "c")
    assert (caught.value.code, caught.value.column) == ("legacy-calendar", "c")
    # Dates have no zone.
    days = pa.array([hybrid_day(1000, 1, 1)], pa.int32()).cast(pa.date32())
    assert rebase(days, paris, False, "c").to_pylist() == [dt.date(1000, 1, 1)]


EARLY = pa.array([hybrid_day(1000, 1, 1), None, hybrid_day(1200, 1, 1)], pa.int32()).cast(pa.date32())
RIGHT = [dt.date(1000, 1, 1), None, dt.date(1200, 1, 1)]


def nested() -> list[tuple[pa.Array, list[Any]]]:
    ends = pa.array([0, 1, 1, 3], pa.int32())
    mask = pa.array([False, True, False])
    names = pa.array(["a", "b", "c"])
    structs = pa.StructArray.from_arrays([EARLY, names], ["d", "n"], mask=pa.array([False, False, True]))
    return [
        (pa.ListArray.from_arrays(ends, EARLY, mask=mask), [[RIGHT[0]], None, RIGHT[1:]]),
        (
            pa.MapArray.from_arrays(ends, names, EARLY, mask=mask),
            [[("a", RIGHT[0])], None, [("b", None), ("c", RIGHT[2])]],
        ),
        (structs, [{"d": RIGHT[0], "n": "a"}, {"d": None, "n": "b"}, None]),
        (pa.ListArray.from_arrays(ends, structs), [[{"d": RIGHT[0], "n": "a"}], [], [{"d": None, "n": "b"}, None]]),
    ]


@pytest.mark.parametrize(("values", "expected"), nested(), ids=lambda v: str(getattr(v, "type", ""))[:20])
def test_dates_within_others(values: pa.Array, expected: list[Any]) -> None:
    for start, count in ((0, 3), (1, 2), (2, 1), (0, 0)):
        found = rebase(values.slice(start, count), BOTH, False, "c")
        found.validate(full=True)
        assert found.to_pylist() == expected[start : start + count]


def test_keys_of_maps() -> None:
    values = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), EARLY.slice(0, 1), pa.array([7]))
    assert rebase(values, BOTH, False, "c").to_pylist() == [[(RIGHT[0], 7)]]


@pytest.mark.parametrize("from_int96", [True, False])
@pytest.mark.parametrize(("plain", "int96"), [(True, False), (False, True), (True, True), (False, False)])
def test_each_kind_by_itself(plain: bool, int96: bool, from_int96: bool) -> None:
    found = rebase(EARLY, LegacyCalendar(plain, int96, UTC), from_int96, "c")
    assert (found.to_pylist() == RIGHT) == (int96 if from_int96 else plain)


def test_other_types_pass() -> None:
    for values in (
        pa.array([-200_000]),
        pa.array(["x"]),
        pa.array([dt.time(1)]),
        pa.array([[1]], pa.list_(pa.int8(), 1)),
    ):
        assert rebase(values, BOTH, False, "c").equals(values)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, None), ({}, None), ({b"other": b""}, None), ({VERSION: b"3.5.1"}, None), ({VERSION: b"3.1.0"}, None), ({VERSION: b"4.0.0"}, None),
        ({VERSION: b"2.4.8"}, (True, True, "Asia/Tokyo")), ({VERSION: b"3.0.1"}, (False, True, "Asia/Tokyo")), ({VERSION: b"3.01"}, None),
        ({VERSION: b"3.5.1", LEGACY: b""}, (True, False, "Asia/Tokyo")), ({INT96: b""}, (False, True, "Asia/Tokyo")),
        ({VERSION: b"3.5.1", LEGACY: b"", INT96: b"", ZONE: b"Europe/Paris"}, (True, True, "Europe/Paris")), ({ZONE: b"Europe/Paris"}, None),
        ({VERSION: b"2.4.8", ZONE: b"UTC"}, (True, True, "UTC")), ({VERSION: b"12.4"}, None),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_footer_says(metadata: dict[bytes, bytes] | None, expected: tuple[bool, bool, str] | None) -> None:
    found = legacy_calendar(metadata, "Asia/Tokyo")
    if expected is None:
        assert found is None
        return
    assert found == LegacyCalendar(expected[0], expected[1], parse_zone(expected[2]))
