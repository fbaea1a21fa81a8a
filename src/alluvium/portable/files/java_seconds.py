"""Times around 1970 in ORC files of Java, of which Arrow's reader takes the second before or after for theirs.

A time is whole seconds, cut towards zero, and a fraction. So a second has to be taken off of times before 1970 with
a fraction. Java's writer and reader count seconds from the midnight of UTC; Arrow's reader has moved them to the
writer's clock before it asks whether they are below zero. Specification: https://orc.apache.org/specification/ORCv1/
("Timestamp Columns").
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.portable.files.local_instants import offsets_us
from alluvium.portable.files.nested import holds, with_members

_SECOND_NS = 1_000_000_000
_SECOND_US = 1_000_000
#: Readers of both kinds leave finer fractions alone.
_MILLISECOND_NS = 1_000_000
#: No clock is farther from UTC's.
_FARTHEST_S = 19 * 3_600


def holds_times(kind: pa.DataType) -> bool:
    """Whether a type is, or has anywhere in it, one of times without a zone."""
    return holds(kind, lambda one: pa.types.is_timestamp(one) and one.tz is None)


def with_javas_seconds(values: pa.Array, zone_of: Callable[[], dt.tzinfo]) -> pa.Array:
    """The times that Java's writer was given, at any depth, out of those that Arrow reads.

    Args:
        values: Timestamps of nanoseconds, or what has such in it.
        zone_of: Gives the writer's zone; only called where it matters.
    """
    if not pa.types.is_timestamp(values.type):
        return with_members(values, lambda _, member: with_javas_seconds(member, zone_of))
    if values.type != pa.timestamp("ns") or not len(values):
        return values
    stored = np.asarray(pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
    shown = stored // _SECOND_NS
    at = np.flatnonzero((stored - shown * _SECOND_NS >= _MILLISECOND_NS) & (np.abs(shown) <= _FARTHEST_S))
    if not len(at):
        return values
    # Before Arrow took its second off.
    shown = shown[at] + (shown[at] < 0)
    seconds = _instants(shown, zone_of())
    moved = stored.copy()
    moved[at] += _SECOND_NS * ((shown < 0).astype(np.int64) - (seconds < 0))
    return pc.if_else(values.is_valid(), pa.array(moved).cast(values.type), values)


def _instants(shown: np.ndarray, zone: dt.tzinfo) -> np.ndarray:
    """When a zone's clock shows some times; both in seconds since 1970."""
    found = shown
    # Of the clock at the time itself, which is not known before.
    for _ in range(2):
        found = shown - offsets_us(pa.array(found * _SECOND_US, pa.timestamp("us", "UTC")), zone) // _SECOND_US
    return found
