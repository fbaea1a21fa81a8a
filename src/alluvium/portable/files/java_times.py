"""Times in ORC files of Java that Arrow's reader takes for others: around 1970, and old ones.

A time is whole seconds, cut towards zero, and a fraction. So a second has to be taken off of times before 1970 with
a fraction. Java's writer and reader count seconds from the midnight of UTC; Arrow's reader has moved them to the
writer's clock before it asks whether they are below zero. And it moves old times as the system's file of the zone has
it, where Java knows no clocks before 1900, and Arrow no local mean times. Specification:
https://orc.apache.org/specification/ORCv1/ ("Timestamp Columns").
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.zone_file import Seconds, ZoneFile, zone_file
from alluvium.portable.files.local_instants import JAVA_KNOWS_S, offsets_us
from alluvium.portable.files.nested import holds, with_members

_SECOND_NS = 1_000_000_000
_SECOND_US = 1_000_000
#: Readers of both kinds leave finer fractions alone.
_MILLISECOND_NS = 1_000_000
#: No clock is farther from UTC's.
_FARTHEST_S = 19 * 3_600
#: 1977 in UTC: the last zone whose first change makes a difference is Rothera's, of 1976; from there on Java and Arrow
#: know the same of all clocks.
_SAME_CLOCKS_S = 220_924_800


def holds_times(kind: pa.DataType) -> bool:
    """Whether a type is, or has anywhere in it, one of times without a zone."""
    return holds(kind, lambda one: pa.types.is_timestamp(one) and one.tz is None)


def with_javas_times(values: pa.Array, zone_of: Callable[[], dt.tzinfo]) -> pa.Array:
    """The times that Java's writer was given, at any depth, out of those that Arrow reads.

    Args:
        values: Timestamps of nanoseconds, or what has such in it.
        zone_of: Gives the writer's zone; only called where it matters.
    """
    if not pa.types.is_timestamp(values.type):
        return with_members(values, lambda _, member: with_javas_times(member, zone_of))
    if values.type != pa.timestamp("ns") or not len(values):
        return values
    # For null what nothing has to be known of.
    known = pc.fill_null(values.cast(pa.int64()), _SAME_CLOCKS_S * _SECOND_NS)
    stored = np.asarray(known.to_numpy(zero_copy_only=False), np.int64)
    shown = stored // _SECOND_NS
    if shown.min() >= _SAME_CLOCKS_S:
        return values
    has_fraction = stored - shown * _SECOND_NS >= _MILLISECOND_NS
    zone = zone_of()
    at = np.flatnonzero((shown < _differ_until_s(zone)) | (has_fraction & (np.abs(shown) <= _FARTHEST_S)))
    if not len(at):
        return values
    shown, has_fraction = shown[at], has_fraction[at]
    # Before Arrow took its second off.
    instants = _instants(shown + (has_fraction & (shown < 0)), zone)
    seconds = instants + _javas_s(instants, zone) - (has_fraction & (instants < 0))
    moved = stored.copy()
    moved[at] += _SECOND_NS * (seconds - shown)
    return pc.if_else(values.is_valid(), pa.array(moved).cast(values.type), values)


def _differ_until_s(zone: dt.tzinfo) -> int:
    """Up to which time that it shows Java and Arrow may differ about a clock, seconds since 1970."""
    file = _file(zone)
    if file is None or not len(file.changes):
        return -(1 << 62)
    return max(int(file.changes[0]), JAVA_KNOWS_S) + _FARTHEST_S


def _file(zone: dt.tzinfo) -> ZoneFile | None:
    return zone_file(zone.key) if isinstance(zone, zoneinfo.ZoneInfo) else None


def _instants(shown: Seconds, zone: dt.tzinfo) -> Seconds:
    """When Arrow has a zone's clock show some times; both in seconds since 1970."""
    found = shown
    # Of the clock at the time itself, which is not known before.
    for _ in range(2):
        found = shown - _arrows_s(found, zone)
    return found


def _arrows_s(instants: Seconds, zone: dt.tzinfo) -> Seconds:
    """How far the clock is ahead of UTC's, in seconds, as Arrow's ORC reader has it."""
    file = _file(zone)
    return _javas_s(instants, zone) if file is None else file.offsets_s(instants)


def _javas_s(instants: Seconds, zone: dt.tzinfo) -> Seconds:
    return offsets_us(pa.array(instants * _SECOND_US, pa.timestamp("us", "UTC")), zone) // _SECOND_US
