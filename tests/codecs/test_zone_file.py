"""Files of time zones: what they say beside Python's own reading of them."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from alluvium.codecs.zone_file import zone_file

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize("key", ["Asia/Kolkata", "Europe/Dublin", "America/New_York", "Africa/Casablanca"])
def test_between_the_first_change_and_2037_as_python(key: str) -> None:
    file, zone = zone_file(key), zoneinfo.ZoneInfo(key)
    assert file is not None
    instants = np.arange(int(file.changes[0]), 2_100_000_000, 86_400 * 5, dtype=np.int64)
    clocks = [(EPOCH + dt.timedelta(seconds=s)).astimezone(zone).utcoffset() for s in instants.tolist()]
    assert file.offsets_s(instants).tolist() == [
        (clock or dt.timedelta()) // dt.timedelta(seconds=1) for clock in clocks
    ]


def test_before_the_first_change_no_local_mean_time() -> None:
    file = zone_file("Africa/Casablanca")
    assert file is not None and file.before == 0
    assert file.offsets_s(np.array([-(10**10)])).tolist() == [0]


def test_a_zone_without_changes_and_one_that_is_not_there() -> None:
    file = zone_file("UTC")
    assert file is not None and not len(file.changes) and file.offsets_s(np.array([0])).tolist() == [0]
    assert zone_file("Nowhere/At_All") is None
