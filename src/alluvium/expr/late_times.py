"""Clocks after 2037, of which Arrow knows no summer time: what it reads of a zone ends there, and the rule that goes on
from there it leaves out.
"""

from __future__ import annotations

import datetime as dt
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
#: 2038-01-01 and, to be on the safe side of all zones' clocks, two days less.
_LATE_US = (2_145_916_800 - 2 * _DAY_S) * _SECOND_US
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
    if last is None or last < _LATE_US:
        return found
    numbers = np.asarray(pc.fill_null(given.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
    late = np.flatnonzero(numbers >= _LATE_US)
    ahead = _ahead_s(numbers[late] // _SECOND_US, zone, is_local) * _SECOND_US
    right = np.array(found.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    right[late] = numbers[late] + (-ahead if is_local else ahead)
    return pc.if_else(given.is_valid(), pa.array(right).cast(found.type), pa.scalar(None, found.type))


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
