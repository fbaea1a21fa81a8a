"""Instants of ORC files that go by the clock of whoever wrote them.

Paimon's Java takes an instant for the time that UTC's clock shows at it, and stores the instant at which the clock of
its own zone shows that time; it reads them back in the same way. So they are right for a reader in the zone of the
writer, and shifted for all others. Which zone that was a file tells only where it holds times without a zone, too.
Otherwise it is, as in Java, the reader's, if that agrees with the bounds that the manifest keeps, which are the true
ones; or UTC; or, for files of few days, the zone that is as far from UTC as the bounds are from each other.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.orc_writer_clock import WriterClock
from alluvium.codecs.java_clock import java_clock
from alluvium.codecs.temporal_text import parse_zone
from alluvium.codecs.zone_file import Clock
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.portable.files.nested import holds, with_members

_UTC = dt.timezone.utc
#: Zones are whole seconds apart, and the fractions of bounds may be cut off.
_SECOND_US = 1_000_000
#: No zone leaves its distance from UTC, and comes back to it, within so many days (IANA's database, since 1946).
_SAME_DISTANCE_US = 6 * 86_400 * _SECOND_US
_FROM_US = -757_382_400 * _SECOND_US


@dataclass(frozen=True, slots=True)
class KnownInstants:
    """What is known of a file's instants beside the file.

    Attributes:
        time_zone: The reader's.
        bounds: The least and the greatest of columns, by their names in the file, in microseconds since 1970 UTC.
    """

    time_zone: str
    bounds: Mapping[str, tuple[int, int]]

    def zones(self, clock: WriterClock, columns: Collection[str], path: str) -> tuple[dt.tzinfo, ...]:
        """By which zone's clock the instants of each stripe go.

        Args:
            clock: What the file says.
            columns: Names of those that are read.
            path: For the error.

        Raises:
            UnsupportedFeature: There is no telling (`"unknown-writer-zone"`).
        """
        pairs = {name: (clock.bounds[name], true) for name, true in self.bounds.items() if name in clock.bounds}
        stored = pa.array([1000 * ms for ends, _ in pairs.values() for ms in ends], pa.timestamp("us", "UTC"))
        distances = np.array([us for _, true in pairs.values() for us in true], np.int64) - _numbers(stored)
        is_covered = pairs.keys() | clock.empty >= set(columns)

        @cache
        def chosen(name: str) -> dt.tzinfo:
            zone = parsed_zone(name)
            for one in (zone, _UTC) if len(stored) else (zone,):
                if one is not None and _agrees(one, stored, distances):
                    return one
            only = _only_distance(stored, distances) if is_covered else None
            if only is None:
                raise _unknown_zone(name, distances, path)
            return only

        return tuple(chosen(self.time_zone if name is None else name) for name in clock.zones)


def parsed_zone(name: str) -> dt.tzinfo | None:
    """A zone as Java calls it; None: nobody knows it."""
    try:
        return parse_zone(name)
    except InvalidRequest:
        return None


def _agrees(zone: dt.tzinfo, stored: pa.Array, distances: npt.NDArray[np.int64]) -> bool:
    return bool((np.abs(offsets_us(stored, zone) - distances) < _SECOND_US).all())


def _only_distance(stored: pa.Array, distances: npt.NDArray[np.int64]) -> dt.timezone | None:
    """The zone that has one distance from UTC throughout the values, as the bounds show."""
    at = _numbers(stored)
    if not len(at) or at.min() < _FROM_US or at.max() - at.min() > _SAME_DISTANCE_US:
        return None
    seconds = np.unique(np.round(distances / _SECOND_US).astype(np.int64))
    return dt.timezone(dt.timedelta(seconds=int(seconds[0]))) if len(seconds) == 1 else None


def _unknown_zone(name: str, distances: npt.NDArray[np.int64], path: str) -> UnsupportedFeature:
    found = ", ".join(f"{us / 3.6e9:+g}" for us in np.unique(distances)) or "unknown"
    return UnsupportedFeature(
        "a Java in another time zone wrote the file, whose instants (TIMESTAMP_LTZ) go by its clock: the manifest's"
        f" bounds differ from the file's by {found} hours, which {name} does not explain",
        code="unknown-writer-zone",
        path=path,
        features=("orc.timestamp-ltz.legacy.type",),
        hint="read with Spark, spark.sql.session.timeZone set to the zone of the JVM that wrote the file",
    )


def shown_as_utc(values: pa.Array, zone: dt.tzinfo) -> pa.Array:
    """Instants, at any depth, at which UTC's clock shows what that of a zone does at the stored ones."""
    if not pa.types.is_timestamp(values.type):
        return with_members(values, lambda _, member: shown_as_utc(member, zone))
    if values.type.tz is None or zone is _UTC or not len(values):
        return values
    coarse = pc.floor_temporal(values, unit="microsecond").cast(pa.timestamp("us", "UTC"))
    offsets = pa.array(offsets_us(coarse, zone), pa.int64())
    per_us = 1000 if values.type.unit == "ns" else 1
    return pc.add(values.cast(pa.int64()), pc.multiply(offsets, per_us)).cast(values.type)


def offsets_us(instants: pa.Array, zone: dt.tzinfo) -> npt.NDArray[np.int64]:
    """How far a zone's clock is ahead of UTC's, as Java's `TimeZone` has it; of null anything."""
    return javas_clock(zone).offsets_s(_numbers(instants) // _SECOND_US) * _SECOND_US


def javas_clock(zone: dt.tzinfo) -> Clock:
    """The clock of a zone that Java calls by a name."""
    found = java_clock(zone.key) if isinstance(zone, zoneinfo.ZoneInfo) else None
    if found is not None:
        return found
    ahead = zone.utcoffset(dt.datetime(2015, 1, 1)) or dt.timedelta()
    return Clock(np.array([], np.int64), np.array([ahead // dt.timedelta(seconds=1)], np.int64))


def _numbers(times: pa.Array) -> npt.NDArray[np.int64]:
    numbers = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, np.int64)


def holds_instants(kind: pa.DataType) -> bool:
    """Whether a type is, or has anywhere in it, one of instants."""
    return holds(kind, lambda one: pa.types.is_timestamp(one) and one.tz is not None)
