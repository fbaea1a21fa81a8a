"""Dates and timestamps of files that Spark wrote in the hybrid calendar (Julian before 1582-10-15).

Such a file says so by a key in its footer; the same wall clock then has another day number in the calendar that
everything else here uses, the proleptic Gregorian one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import DAY_US, days_from_civil, parse_zone
from alluvium.errors import UnsupportedFeature

# 1582-10-15, the first day of the Gregorian calendar.
_SWITCH_DAY = -141_427
# Zones with a history agree between Java's two calendars from here on (Spark's own switch: 1900-01-01).
_ZONES_AGREE_US = -25_567 * DAY_US
# More days than any date of the types lies before 1970.
_LIFT_DAYS = 10_000_000


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """What of a file is in the hybrid calendar.

    Attributes:
        plain: Dates and INT64 timestamps.
        int96: INT96 timestamps.
        zone: The writer's zone: wall clocks were kept in it.
    """

    plain: bool
    int96: bool
    zone: tzinfo


def legacy_calendar(metadata: Mapping[bytes, bytes] | None, time_zone: str) -> LegacyCalendar | None:
    """What the footer's key-value metadata says; None for the usual file.

    Args:
        metadata: Key-value metadata of the footer.
        time_zone: Zone of files whose writer left none (Spark 2 does).
    """
    if not metadata:
        return None
    version = metadata.get(b"org.apache.spark.version", b"")
    spark_2 = version.startswith(b"2.")
    plain = spark_2 or b"org.apache.spark.legacyDateTime" in metadata
    # INT96 was still hybrid in Spark 3.0, which left no key for it.
    int96 = spark_2 or version.startswith(b"3.0.") or b"org.apache.spark.legacyINT96" in metadata
    if not plain and not int96:
        return None
    zone = metadata.get(b"org.apache.spark.timeZone", time_zone.encode()).decode()
    return LegacyCalendar(plain, int96, parse_zone(zone))


def rebase(values: pa.Array, calendar: LegacyCalendar, from_int96: bool, column: str) -> pa.Array:
    """The same wall clocks as day numbers of the proleptic Gregorian calendar; other types pass as they are.

    Raises:
        UnsupportedFeature: Timestamps before 1900 in a zone with a history.
    """
    if not (calendar.int96 if from_int96 else calendar.plain):
        return values
    if pa.types.is_nested(values.type):
        return _nested(values, calendar, from_int96, column)
    if not (pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type)):
        return values
    if pa.types.is_date32(values.type):
        days = values.cast(pa.int32())
        if not pc.any(pc.less(days, _SWITCH_DAY)).as_py():
            return values
        return pc.add(days.cast(pa.int64()), _shifts(days.cast(pa.int64()))).cast(pa.int32()).cast(values.type)
    micros = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    fixed = isinstance(calendar.zone, timezone)
    if not pc.any(pc.less(micros, _SWITCH_DAY * DAY_US + DAY_US if fixed else _ZONES_AGREE_US)).as_py():
        return values
    if not fixed:
        raise UnsupportedFeature(
            f"timestamps before 1900 that an old Spark wrote in the zone {calendar.zone}",
            code="legacy-calendar",
            column=column,
            hint="read the table through Spark, or rewrite the file with a current Spark",
        )
    offset_us = (calendar.zone.utcoffset(None) or timedelta()) // timedelta(microseconds=1)
    # Integer division rounds towards zero, so it is done far above zero.
    lifted = pc.divide(pc.add(micros, offset_us + _LIFT_DAYS * DAY_US), DAY_US)
    local_days = pc.subtract(lifted, _LIFT_DAYS)
    rebased = pc.add(micros, pc.multiply(_shifts(local_days), DAY_US))
    return rebased.cast(pa.timestamp("us", values.type.tz))


def _nested(values: pa.Array, calendar: LegacyCalendar, from_int96: bool, column: str) -> pa.Array:
    kind = values.type
    if pa.types.is_struct(kind):
        members = [rebase(member, calendar, from_int96, column) for member in values.flatten()]
        fields = [f.with_type(member.type) for f, member in zip(kind, members, strict=True)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null())
    # Arrow cannot rebuild a list with nulls from a slice.
    whole = values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])
    if pa.types.is_map(kind):
        keys, items = (rebase(part, calendar, from_int96, column) for part in (whole.keys, whole.items))
        return pa.MapArray.from_arrays(whole.offsets, keys, items, mask=whole.is_null())
    if pa.types.is_list(kind):
        elements = rebase(whole.values, calendar, from_int96, column)
        return pa.ListArray.from_arrays(whole.offsets, elements, mask=whole.is_null())
    return values


def _shifts(days: pa.Array) -> pa.Array:
    """By how many days each day number moves; 0 from 1582-10-15 on."""
    early = pc.if_else(pc.less(days, _SWITCH_DAY), days, pa.scalar(_SWITCH_DAY, pa.int64()))
    encoded = early.dictionary_encode()
    shifts = [_gregorian(day) - day for day in encoded.dictionary.to_pylist()]
    return pa.array(shifts, pa.int64()).take(encoded.indices)


def _gregorian(day: int) -> int:
    """Day number of the proleptic Gregorian date that is written like a day of the hybrid calendar."""
    if day >= _SWITCH_DAY:
        return day
    # Years of 365 days and a leap day every fourth: cycles of 1461 days that begin in March, from 0000-03-01 Julian.
    cycle, rest = divmod(day + 719_470, 1461)
    year_of_cycle = min(rest // 365, 3)
    day_of_year = rest - 365 * year_of_cycle
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = 4 * cycle + year_of_cycle + (month <= 2)
    day_of_month = day_of_year - (153 * shifted_month + 2) // 5 + 1
    found = days_from_civil(year, month, day_of_month)
    # February 29 of 1500 and its like exist in the Julian calendar alone; Spark takes the next day.
    if found is not None:
        return found
    after = days_from_civil(year, 3, 1)
    assert after is not None
    return after
