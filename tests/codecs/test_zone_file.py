"""Files of time zones: what they say beside Python's own reading of them."""

from __future__ import annotations

import datetime as dt
import struct
import zoneinfo
from pathlib import Path

import numpy as np
import pytest

from alluvium.codecs.zone_file import zone_file

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize("key", ["Asia/Kolkata", "Europe/Dublin", "America/New_York", "Africa/Casablanca"])
def test_between_the_first_change_and_2037_as_python(key: str) -> None:
    file, zone = zone_file(key), zoneinfo.ZoneInfo(key)
    assert file is not None
    instants = np.arange(max(int(file.changes[0]), -(10**10)), 2_100_000_000, 86_400 * 5, dtype=np.int64)
    clocks = [(EPOCH + dt.timedelta(seconds=s)).astimezone(zone).utcoffset() for s in instants.tolist()]
    assert file.offsets_s(instants).tolist() == [
        (clock or dt.timedelta()) // dt.timedelta(seconds=1) for clock in clocks
    ]


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
    assert file.changes.tolist() == (short if version == 1 else long) and file.before == 3600
    asked = np.array([-(10**11), file.changes[0] - 1, file.changes[0], 999, 1000])
    assert file.offsets_s(asked).tolist() == [3600, 3600, 7200, 7200, 3600]


def test_a_zone_without_changes_and_one_that_is_not_there() -> None:
    file = zone_file("UTC")
    assert file is not None and not len(file.changes) and file.offsets_s(np.array([0])).tolist() == [0]
    assert zone_file("Nowhere/At_All") is None
