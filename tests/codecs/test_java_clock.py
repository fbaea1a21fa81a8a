"""Clocks of zones as Java's `TimeZone` has them: what it says itself (17), and files made for the purpose."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from alluvium.codecs.java_clock import java_clock
from alluvium.codecs.zone_file import zone_file

#: Instants, and what `TimeZone.getOffset` of Java 17 says of them, in seconds.
JAVA = [
    # Links to other zones before 1970, in the data that Java has.
    ("Europe/Stockholm", "1917-07-15T12:00", 7_200),
    ("Europe/Amsterdam", "1930-07-15T12:00", 3_600),
    ("Europe/Amsterdam", "1930-01-15T12:00", 0),
    ("Europe/Oslo", "1965-07-15T12:00", 3_600),
    ("Africa/Accra", "1930-07-15T12:00", 0),
    # Today's standard time before 1900, and nothing of summers that are behind it.
    ("Europe/Dublin", "1899-12-31T23:59:59", 0),
    ("Europe/Dublin", "1900-01-01T00:00", -1_521),
    ("Europe/Dublin", "1969-07-15T12:00", 3_600),
    ("Africa/Casablanca", "1890-07-15T12:00", 0),
    ("Africa/Windhoek", "1890-07-15T12:00", 3_600),
    ("Asia/Singapore", "1890-07-15T12:00", 28_800),
    ("Asia/Kolkata", "1899-12-31T23:59:59", 19_800),
    ("Asia/Kolkata", "1900-01-01T00:00", 19_270),
    ("Antarctica/Rothera", "1975-07-15T12:00", 0),
    # Standard time from 2037 on, or the rule.
    ("Africa/Windhoek", "2036-12-31T22:59:59", 7_200),
    ("Africa/Windhoek", "2036-12-31T23:00", 3_600),
    ("Africa/Windhoek", "2250-07-15T12:00", 3_600),
    ("Europe/Berlin", "2030-07-15T12:00", 7_200),
    ("Europe/Berlin", "2250-07-15T12:00", 7_200),
    ("Europe/Berlin", "2250-01-15T12:00", 3_600),
    ("Asia/Kolkata", "2250-01-15T12:00", 19_800),
    ("Etc/GMT+5", "1850-01-15T12:00", -18_000),
]


def forget() -> None:
    for one in (java_clock, zone_file):
        one.cache_clear()


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the system's zones, which is empty."""
    monkeypatch.setenv("TZDIR", str(tmp_path))
    forget()
    yield tmp_path
    forget()


def ahead(zone: str, *instants: str) -> list[int]:
    clock = java_clock(zone)
    assert clock is not None
    return clock.offsets_s(np.array(instants, "datetime64[s]").astype(np.int64)).tolist()


@pytest.mark.parametrize(("zone", "instant", "seconds"), JAVA)
def test_what_java_says(zone: str, instant: str, seconds: int) -> None:
    assert ahead(zone, instant) == [seconds]


@pytest.mark.parametrize(("zone", "instant", "seconds"), JAVA)
def test_what_java_says_where_the_system_has_no_zones(system: Path, zone: str, instant: str, seconds: int) -> None:
    assert ahead(zone, instant) == [seconds]


def file_of(rule: str, *changes: tuple[str, int, bool]) -> bytes:
    """Local mean time (100 seconds), and the changes: when, to how many seconds, whether that is summer time."""
    kinds = [(100 if changes else -36_000, False), *dict.fromkeys(change[1:] for change in changes)]
    times = b"".join(struct.pack(">q", np.datetime64(text, "s").astype(int)) for text, *_ in changes)
    behind = bytes(kinds.index(change[1:]) for change in changes)
    told = b"".join(struct.pack(">l?B", *kind, 0) for kind in kinds)
    head = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4) + struct.pack(">l?B", 100, False, 0) + b"LMT\0"
    counts = (0, 0, 0, len(changes), len(kinds), 4)
    return (
        head
        + struct.pack(">4sc15x6l", b"TZif", b"2", *counts)
        + times
        + behind
        + told
        + b"LMT\0\n"
        + rule.encode()
        + b"\n"
    )


def test_zones_that_only_the_system_knows_and_nobody(system: Path) -> None:
    (system / "Made").write_bytes(file_of("A-2", ("1950-01-01", 7200, False)))
    assert ahead("Made", "1899-12-31T23:59:59", "1900-01-01", "1949-12-31", "1950-01-01", "2100-01-01") == [
        7200, 100, 100, 7200, 7200,
    ]  # fmt: skip
    assert java_clock("Nowhere/At_All") is None


def test_since_1970_it_goes_by_the_system(system: Path) -> None:
    """Before that, by the package, whatever the system says."""
    (system / "Europe").mkdir()
    made = file_of("A-3", ("1910-01-01", 1000, False), ("1965-01-01", 2000, False), ("1980-01-01", 10_800, False))
    (system / "Europe/Stockholm").write_bytes(made)
    instants = ["1890-01-01", "1917-07-15", "1969-12-31T23:59:59", "1970-01-01", "1979-12-31", "1980-01-01"]
    assert ahead("Europe/Stockholm", *instants) == [10_800, 7200, 3600, 2000, 2000, 10_800]


def test_short_names_that_are_regions_to_new_data_only(system: Path) -> None:
    (system / "HST").write_bytes(file_of("HST10"))
    assert ahead("HST", "1890-01-01", "1905-01-01", "1945-01-01", "2024-01-01") == [-36_000] * 4


def test_changes_told_one_by_one_end_with_2037(system: Path) -> None:
    late = [(f"{year}-{day}", seconds, seconds == 0) for year in (2036, 2037, 2038, 2060)
            for day, seconds in (("05-01", 0), ("06-01", 3600))]  # fmt: skip
    (system / "Ramadan").write_bytes(file_of("A-1", ("1950-01-01", 3600, False), *late))
    instants = ["1890-01-01", "2036-05-15", "2037-05-15", "2037-07-01", "2038-05-15", "2060-05-15", "2100-01-01"]
    assert ahead("Ramadan", *instants) == [0, 0, 0, 3600, 3600, 3600, 3600]


def test_a_rule_goes_before_late_changes(system: Path) -> None:
    late = [("2037-01-15", 10_800, True), ("2040-01-15", 7200, False), ("2050-08-01", 7200, False)]
    (system / "Ruled").write_bytes(file_of("A-2B,M3.5.0,M10.5.0", ("1950-01-01", 7200, False), *late))
    assert ahead("Ruled", "2037-02-01", "2037-07-01", "2045-01-01", "2045-07-01", "2050-08-15") == [
        7200, 10_800, 7200, 10_800, 10_800,
    ]  # fmt: skip
