"""Clocks of which Arrow knows no summer time. It reads the changes that the system's file of a zone lists, and leaves
out the rule that goes on behind them: after 2037, and much earlier where these files are of the short kind.
"""

from __future__ import annotations

import datetime as dt
import functools
import zoneinfo
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = "npt.NDArray[np.int64]"

_EPOCH = dt.datetime(1970, 1, 1)
_SECOND_US = 1_000_000
_DAY_S = 86_400
#: Since when and until when Arrow is asked once a month.
_YEARS = range(1970, 2038)
#: The calendar repeats itself after 400 years, days of the week included; rules that change by the year end before
#: 2100.
_CYCLE_S = 146_097 * _DAY_S
_REGULAR_S = 4_102_444_800


def with_late_times(given: pa.Array, found: pa.Array, zone: dt.tzinfo, is_local: bool) -> pa.Array:
    """What Arrow found, with the late ones put right.

    Args:
        given: Timestamps of microseconds: instants, or times that the zone's clock shows.
        found: The same as times that the clock shows, or as instants.
        zone: Whose clock; of one distance from UTC there is nothing to put right.
        is_local: Whether what is given are times that the clock shows; of those that it shows twice the earlier is
            meant, and those that it leaves out are moved on.
    """
    if not isinstance(zone, zoneinfo.ZoneInfo) or not len(given):
        return found
    last = pc.max(given.cast(pa.int64())).as_py()
    if last is None:
        return found
    # To be on the safe side of all clocks.
    begin = _late_us(zone) - 2 * _DAY_S * _SECOND_US
    if last < begin:
        return found
    numbers = np.asarray(pc.fill_null(given.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
    late = np.flatnonzero(numbers >= begin)
    ahead = _ahead_s(numbers[late] // _SECOND_US, zone, is_local) * _SECOND_US
    right = np.array(found.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    right[late] = numbers[late] + (-ahead if is_local else ahead)
    return pc.if_else(given.is_valid(), pa.array(right).cast(found.type), pa.scalar(None, found.type))


@functools.cache
def _late_us(zone: zoneinfo.ZoneInfo) -> int:
    """From when on Arrow is not believed, microseconds since 1970."""
    months = [dt.datetime(year, month, 1, tzinfo=dt.timezone.utc) for year in _YEARS for month in range(1, 13)]
    shown = pc.local_timestamp(pa.array(months, pa.timestamp("us", zone.key))).to_pylist()
    right = [month.astimezone(zone).replace(tzinfo=None) for month in months]
    same = next((n for n, (a, b) in enumerate(zip(shown, right, strict=True)) if a != b), len(months))
    return (months[max(same - 1, 0)].replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)


def _ahead_s(seconds: Numbers, zone: zoneinfo.ZoneInfo, is_local: bool) -> Numbers:
    """How far the clock is ahead of UTC's: asked for once a day, and for each second of days on which that changes."""
    seconds = np.where(seconds < _REGULAR_S, seconds, _REGULAR_S + (seconds - _REGULAR_S) % _CYCLE_S)
    ask = _asker(zone, is_local)
    days, which = np.unique(seconds // _DAY_S, return_inverse=True)
    first = np.array([ask(day * _DAY_S) for day in days.tolist()], np.int64)
    last = np.array([ask((day + 1) * _DAY_S) for day in days.tolist()], np.int64)
    found = first[which]
    at = np.flatnonzero((first != last)[which])
    if len(at):
        moments, back = np.unique(seconds[at], return_inverse=True)
        found[at] = np.array([ask(moment) for moment in moments.tolist()], np.int64)[back]
    return found


def _asker(zone: zoneinfo.ZoneInfo, is_local: bool) -> Callable[[int], int]:
    def ask(second: int) -> int:
        time = _EPOCH + dt.timedelta(seconds=second)
        # Of the two offsets at a change the one before is meant.
        shown = time.replace(tzinfo=zone) if is_local else time.replace(tzinfo=dt.timezone.utc).astimezone(zone)
        return (shown.utcoffset() or dt.timedelta()) // dt.timedelta(seconds=1)

    return ask
