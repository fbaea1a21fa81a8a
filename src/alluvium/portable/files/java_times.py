"""Times in ORC files of Java that Arrow's reader takes for others: around 1970, old ones, and some after 2037.

A time is whole seconds, cut towards zero, and a fraction. So a second has to be taken off of times before 1970 with
a fraction. Java's writer and reader count seconds from the midnight of UTC, and look at the clock when they have taken
it off; Arrow's reader has moved them to the writer's clock before it asks whether they are below zero. And it moves
times as the system's file of the zone has it, which is not all that Java knows of clocks (`codecs/java_clock.py`).
Specification: https://orc.apache.org/specification/ORCv1/ ("Timestamp Columns").
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.zone_file import Clock, Seconds, zone_file
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.local_instants import javas_clock
from alluvium.portable.files.nested import holds, with_members

_SECOND_NS = 1_000_000_000
#: Readers of both kinds leave finer fractions alone.
_MILLISECOND_NS = 1_000_000
#: No clock is farther from UTC's.
_FARTHEST_S = 19 * 3_600
#: 1977 to 2036 in UTC: Java and Arrow know the same of all clocks then. The last zone whose first change makes a
#: difference is Rothera's, of 1976.
_SAME_CLOCKS_S = 220_924_800, 2_114_380_800 - _FARTHEST_S
_NEVER_S = 1 << 60

Flags = npt.NDArray[np.bool_]


def holds_times(kind: pa.DataType) -> bool:
    """Whether a type is, or has anywhere in it, one of times without a zone."""
    return holds(kind, lambda one: pa.types.is_timestamp(one) and one.tz is None)


def with_javas_times(values: pa.Array, zone_of: Callable[[], dt.tzinfo], path: str | None = None) -> pa.Array:
    """The times that Java's writer was given, at any depth, out of those that Arrow reads.

    Args:
        values: Timestamps of nanoseconds, or what has such in it.
        zone_of: Gives the writer's zone; only called where it matters.
        path: For the error.

    Raises:
        UnsupportedFeature: Arrow shows two times as one, and nothing tells which it is.
    """
    if not pa.types.is_timestamp(values.type):
        return with_members(values, lambda _, member: with_javas_times(member, zone_of, path))
    if values.type != pa.timestamp("ns") or not len(values):
        return values
    first, end = _SAME_CLOCKS_S
    # For null what nothing has to be known of.
    known = pc.fill_null(values.cast(pa.int64()), first * _SECOND_NS)
    stored = np.asarray(known.to_numpy(zero_copy_only=False), np.int64)
    if stored.min() >= first * _SECOND_NS and stored.max() < end * _SECOND_NS:
        return values
    shown = stored // _SECOND_NS
    has_fraction = stored - shown * _SECOND_NS >= _MILLISECOND_NS
    clocks = _clocks(zone_of())
    differ = (shown < clocks.differ_until) | (shown >= clocks.differ_from)
    at = np.flatnonzero(differ | (has_fraction & (shown < _FARTHEST_S)))
    if not len(at):
        return values
    shown, has_fraction = shown[at], has_fraction[at]
    times, is_lost = clocks.javas_times(shown, has_fraction)
    if is_lost.any():
        raise _lost(int(shown[is_lost][0]), path)
    moved = stored.copy()
    moved[at] += _SECOND_NS * (times - shown)
    return pc.if_else(values.is_valid(), pa.array(moved).cast(values.type), values)


@dataclass(frozen=True, slots=True)
class _Clocks:
    """A zone's clock, as Arrow's ORC reader has it and as Java has it.

    Attributes:
        arrows: By the system's file.
        javas: By Java's `TimeZone`.
        differ_until: Up to which time that Arrow shows, before 1977, they may differ, in seconds since 1970.
        differ_from: From which time on they may differ, after 2036.
    """

    arrows: Clock
    javas: Clock
    differ_until: int
    differ_from: int

    def javas_times(self, shown: Seconds, has_fraction: Flags) -> tuple[Seconds, Flags]:
        """What Java reads where Arrow shows some times, all in seconds since 1970; and whether it may be another."""
        # Before Arrow took its second off.
        early, late = self.arrows.instants(shown + (has_fraction & (shown < 0)))
        (first, may_be_first), (last, may_be_last) = (self._read(one, has_fraction) for one in (early, late))
        return np.where(may_be_last, last, first), (first != last) & (may_be_first == may_be_last)

    def _read(self, stored: Seconds, has_fraction: Flags) -> tuple[Seconds, Flags]:
        """What Java's reader shows, and whether its writer stores it so: of a time that a clock shows twice, it takes
        the later instant.
        """
        instants = stored - (has_fraction & (stored < 0))
        shown = instants + self.javas.offsets_s(instants)
        return shown, self.javas.instants(shown)[1] == instants


@cache
def _clocks(zone: dt.tzinfo) -> _Clocks:
    javas = javas_clock(zone)
    file = zone_file(zone.key) if isinstance(zone, zoneinfo.ZoneInfo) else None
    if file is None:
        return _Clocks(javas, javas, -_NEVER_S, _NEVER_S)
    arrows = file.clock(file.before)
    changes = np.unique(np.concatenate([np.array([-_NEVER_S]), arrows.changes, javas.changes]))
    (differ,) = np.nonzero(arrows.offsets_s(changes) != javas.offsets_s(changes))
    first, end = _SAME_CLOCKS_S
    # From where they differ on to where they no longer do.
    ends = np.append(changes, _NEVER_S)[differ + 1]
    until = [int(one) + _FARTHEST_S for one in ends[changes[differ] < first]]
    begin = [int(one) - _FARTHEST_S for one in changes[differ] if one >= end]
    return _Clocks(arrows, javas, max(until, default=-_NEVER_S), min(begin, default=_NEVER_S))


def _lost(shown: int, path: str | None) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"pyarrow {pa.__version__} reads two times in ORC as {np.datetime64(shown, 's')}, when a clock was put back",
        code="unsupported-file-type",
        path=path,
        features=("timestamp",),
        hint="leave the column out, or read with Spark",
    )
