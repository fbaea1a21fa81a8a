"""Files of time zones: what they say beside Python's own reading of them."""

from __future__ import annotations

import datetime as dt
import importlib.resources
import struct
import zoneinfo
from pathlib import Path

import numpy as np
import pytest

from alluvium.codecs.zone_file import Clock, packaged_zone_file, parse_rule, zone_file

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize("key", ["Asia/Kolkata", "Europe/Dublin", "America/New_York", "Africa/Casablanca"])
def test_between_the_first_change_and_2037_as_python(key: str) -> None:
    file, zone = zone_file(key), zoneinfo.ZoneInfo(key)
    assert file is not None
    instants = np.arange(max(int(file.changes[0]), -(10**10)), 2_100_000_000, 86_400 * 5, dtype=np.int64)
    clocks = [(EPOCH + dt.timedelta(seconds=s)).astimezone(zone).utcoffset() for s in instants.tolist()]
    assert file.clock(file.before).offsets_s(instants).tolist() == [
        (clock or dt.timedelta()) // dt.timedelta(seconds=1) for clock in clocks
    ]


#: One of each sort of rule: none, summer time north and south, half an hour of it, winter time, at odd hours.
PACKAGED = ["Asia/Kolkata", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Europe/Dublin", "America/Nuuk",
            "Asia/Gaza", "Africa/Cairo", "America/Santiago", "Antarctica/Troll", "Pacific/Chatham", "Etc/GMT-14"]  # fmt: skip


@pytest.mark.parametrize("key", PACKAGED)
def test_files_of_the_package_for_ever_as_python(key: str) -> None:
    file = packaged_zone_file(key)
    path = importlib.resources.files("tzdata").joinpath("zoneinfo", *key.split("/"))
    assert file is not None and file.rule is not None
    with path.open("rb") as opened:
        zone = zoneinfo.ZoneInfo.from_file(opened)
    clock = file.clock(file.first)
    near = [int(change) + off for change in clock.changes if change < 40 * 10**9 for off in (-1, 0, 1)]
    far = range(-4 * 10**9, 200 * 10**9, 86_400 * 97)
    instants = np.array([*near, *far], np.int64)
    clocks = [(EPOCH + dt.timedelta(seconds=s)).astimezone(zone).utcoffset() for s in instants.tolist()]
    assert clock.offsets_s(instants).tolist() == [one // dt.timedelta(seconds=1) for one in clocks if one is not None]


@pytest.mark.parametrize(
    ("rule", "year", "changes"),
    [
        ("CET-1CEST,M3.5.0,M10.5.0/3", 2038, [("2038-03-28T01:00", 7200), ("2038-10-31T01:00", 3600)]),
        # The 79th day from 0, and from 1 without the 29th of February.
        ("<+0330>-3:30<+0430>,79/24,J263/24", 2040, [("2040-03-20T20:30", 16_200), ("2040-09-20T19:30", 12_600)]),
        ("A-1B,J59,J60", 2040, [("2040-02-28T01:00", 7200), ("2040-03-01T00:00", 3600)]),
        ("EET-2EEST-2:30,M3.4.4/50,M12.5.6/-1:30:30", 2038, [("2038-03-27T00:00", 9000), ("2038-12-24T19:59:30", 7200)]),
    ],
)  # fmt: skip
def test_rules(rule: str, year: int, changes: list[tuple[str, int]]) -> None:
    at, behind = parse_rule(rule).changes()
    (of_year,) = np.nonzero(at.astype("datetime64[s]").astype("datetime64[Y]") == np.datetime64(str(year)))
    assert [(np.datetime64(int(at[n]), "s"), int(behind[n])) for n in of_year] == [
        (np.datetime64(text, "s"), offset) for text, offset in changes
    ]


def test_what_is_no_rule() -> None:
    with pytest.raises(ValueError):
        parse_rule("Berlin")


def test_the_instants_at_which_a_clock_shows_a_time() -> None:
    """An hour is skipped at 10,000, and comes twice at 50,000."""
    clock = Clock(np.array([10_000, 50_000]), np.array([0, 3600, 0]))
    shown = np.array([9_999, 13_600, 49_999, 50_000, 53_599, 53_600])
    first, last = clock.instants(shown)
    assert first.tolist() == [9_999, 10_000, 46_399, 46_400, 49_999, 53_600]
    assert last.tolist() == [9_999, 10_000, 46_399, 50_000, 53_599, 53_600]
    skipped = np.array([10_000, 13_599])
    for one in clock.instants(skipped):
        assert (one + clock.offsets_s(one) != skipped).all()


def _section(version: bytes, width: int, changes: list[int]) -> bytes:
    """Local mean time (kind 0) up to the first change, then summer time (1), then standard time (2)."""
    kinds = b"".join(
        struct.pack(">l?B", offset, is_summer, 0) for offset, is_summer in ((100, 0), (7200, 1), (3600, 0))
    )
    counts = (0, 0, 1, len(changes), 3, 4)
    times = b"".join(change.to_bytes(width, "big", signed=True) for change in changes)
    leap = bytes(width + 4)
    return struct.pack(">4sc15x6l", b"TZif", version, *counts) + times + bytes([1, 2]) + kinds + b"LMT\0" + leap


@pytest.mark.parametrize("version", [1, 2])
def test_before_the_first_change_no_local_mean_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    short, long = [-1000, 1000], [-(10**10), 1000]
    forms = {1: _section(b"\0", 4, short), 2: _section(b"2", 4, short) + _section(b"2", 8, long)}
    monkeypatch.setenv("TZDIR", str(tmp_path))
    key = f"Made{version}"
    (tmp_path / key).write_bytes(forms[version])
    file = zone_file(key)
    assert file is not None
    assert file.first == 100 and file.is_summer.tolist() == [True, False] and file.rule is None
    assert file.changes.tolist() == (short if version == 1 else long) and file.before == 3600
    asked = np.array([-(10**11), file.changes[0] - 1, file.changes[0], 999, 1000])
    assert file.clock(file.before).offsets_s(asked).tolist() == [3600, 3600, 7200, 7200, 3600]


def test_a_zone_without_changes_and_one_that_is_not_there() -> None:
    file = zone_file("UTC")
    assert (
        file is not None and not len(file.changes) and file.clock(file.before).offsets_s(np.array([0])).tolist() == [0]
    )
    assert zone_file("Nowhere/At_All") is None and packaged_zone_file("Nowhere/At_All") is None
