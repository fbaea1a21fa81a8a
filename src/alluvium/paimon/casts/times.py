"""Casts to dates, times of day and timestamps, and from timestamps to seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import days_from_civil, format_instant, parse_zone
from alluvium.expr.columnar import instant, local_time
from alluvium.paimon.casts.numbers import each, failed
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataType
from alluvium.schema.arrow import to_arrow

_LTZ = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
_DAY_MS = 86_400_000
#: Whole microseconds of which 64 bits hold the nanoseconds: years 1677 to 2262.
_NANOS_FROM, _NANOS_TO = -(2**63) // 1000 + 1, (2**63 - 1) // 1000 - 1
#: The engine takes whole numbers in text as the number that the type stores.
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_DATE = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?: .*)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)
_STAMP = re.compile(r"(\d{4,})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moments:
    """Times since 1970, of any year: one number of nanoseconds holds 1677 to 2262 only, and Paimon's times 0 to 9999.

    Attributes:
        micros: Whole microseconds, towards the past.
        nanos: The nanoseconds that are left, 0 to 999.
        is_null: Which of them there are not; their numbers are 0.
    """

    micros: npt.NDArray[np.int64]
    nanos: npt.NDArray[np.int64]
    is_null: npt.NDArray[np.bool_]

    @property
    def millis(self) -> npt.NDArray[np.int64]:
        """Whole milliseconds, towards the past."""
        return self.micros // 1000

    def as_micros(self) -> pa.Array:
        """Arrow's timestamps without a zone, cut to microseconds."""
        return pa.array(self.micros, mask=self.is_null).cast(pa.timestamp("us"))


def _moments(values: pa.Array) -> Moments:
    """Timestamps of any unit and zone."""
    numbers = _numbers(values.cast(pa.int64()))
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    if values.type.unit == "ns":
        return Moments(numbers // 1000, numbers % 1000, is_null)
    per_unit = {"s": 1_000_000, "ms": 1000, "us": 1}[values.type.unit]
    return Moments(numbers * per_unit, np.zeros_like(numbers), is_null)


def to_wall_clock(values: pa.Array, source: DataType, time_zone: str) -> Moments:
    """Timestamps as the wall clock shows them; those of an instant by the session's zone."""
    moments = _moments(values)
    zone = parse_zone(time_zone)
    if source.root != _LTZ or zone is timezone.utc:
        return moments
    local = local_time(moments.as_micros().cast(pa.timestamp("us", tz="UTC")), zone)
    return replace(moments, micros=_moments(local).micros)


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)


def to_seconds(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Whole seconds since 1970, towards zero from the millisecond."""
    moments = _moments(values)
    millis = moments.millis
    seconds = np.sign(millis) * (np.abs(millis) // 1000)
    return pa.array(seconds, mask=moments.is_null).cast(to_arrow(to_logical(target)), safe=False)


def to_date(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        days = each(values, lambda text: _parse_date(str(text), target), pa.int32())
        return days.cast(pa.date32())
    moments = to_wall_clock(values, source, time_zone)
    return pa.array(moments.millis // _DAY_MS, mask=moments.is_null).cast(pa.int32()).cast(pa.date32())


def to_time(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        return each(values, lambda text: _parse_clock(str(text), target), pa.int32()).cast(pa.time32("ms"))
    if source.root == "TIME_WITHOUT_TIME_ZONE":
        return values
    moments = to_wall_clock(values, source, time_zone)
    return pa.array(moments.millis % _DAY_MS, mask=moments.is_null).cast(pa.int32()).cast(pa.time32("ms"))


def to_timestamp(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    if source.root in ("INTEGER", "BIGINT", "SMALLINT", "TINYINT"):
        # Java multiplies seconds to milliseconds without a check, so what is too large wraps.
        return _stamps(_of_millis(_numbers(values.cast(pa.int64())) * 1000, is_null, target), target)
    if source.root == target.root:
        return _stamps(_moments(values), target)
    if source.root in ("CHAR", "VARCHAR"):
        wall = _parsed(values, target)
    elif source.root == "DATE":
        days = _numbers(values.cast(pa.int32()).cast(pa.int64()))
        wall = _of_millis(days * _DAY_MS, is_null, target)
    elif source.root == "TIME_WITHOUT_TIME_ZONE":
        # Its milliseconds stay, whatever the target's digits.
        wall = _of_millis(_numbers(values.cast(pa.int32()).cast(pa.int64())), is_null, target)
        target = replace(target, precision=max(target.precision, 3))
    else:
        wall = to_wall_clock(values, source, time_zone)
    zone = parse_zone(time_zone)
    if target.root == _LTZ and zone is not timezone.utc:
        wall = replace(wall, micros=_moments(instant(wall.as_micros(), zone)).micros)
    return _stamps(wall, target)


def _of_millis(millis: npt.NDArray[np.int64], is_null: npt.NDArray[np.bool_], target: DataType) -> Moments:
    far = np.abs(millis) > np.iinfo(np.int64).max // 1000
    if far.any():
        # `Timestamp` keeps milliseconds of any year; the years of microseconds end 292,000 years from 1970.
        raise failed(int(millis[far][0]), target)
    return Moments(millis * 1000, np.zeros_like(millis), is_null)


def _parsed(values: pa.Array, target: DataType) -> Moments:
    halves = pa.struct([("micros", pa.int64()), ("nanos", pa.int64())])

    def parse(text: object) -> dict[str, int]:
        micros, nanos = divmod(_parse_stamp(str(text), target), 1000)
        if abs(micros) >= 1 << 63:
            raise failed(text, target)
        return {"micros": micros, "nanos": nanos}

    parsed = each(values, parse, halves)
    members = [_numbers(pc.struct_field(parsed, [name])) for name in ("micros", "nanos")]
    return Moments(members[0], members[1], values.is_null().to_numpy(zero_copy_only=False))


def _stamps(moments: Moments, target: DataType) -> pa.Array:
    """Cut to the target's digits: below the millisecond downwards, above it towards zero.

    Raises:
        InvalidRequest: A type with nanoseconds is to hold what its 64 bits do not.
    """
    micros, nanos, precision = moments.micros, moments.nanos, target.precision
    if precision <= 6:
        nanos = np.zeros_like(nanos)
        step = 10 ** min(6 - precision, 3)
        micros = micros // step * step
        if precision < 3:
            coarse = 10 ** (6 - precision)
            micros = np.sign(micros) * (np.abs(micros) // coarse * coarse)
    elif precision < 9:
        nanos = nanos // 10 ** (9 - precision) * 10 ** (9 - precision)
    kind = to_arrow(to_logical(target))
    if kind.unit == "us":
        return pa.array(micros, mask=moments.is_null).cast(kind)
    outside = ((micros < _NANOS_FROM) | (micros > _NANOS_TO)) & ~moments.is_null
    if outside.any():
        front, _ = format_instant(int(micros[outside][0]), " ")
        raise failed(front, target)
    return pa.array(micros * 1000 + nanos, mask=moments.is_null).cast(kind)


def _parse_date(text: str, target: DataType) -> int:
    if _NUMBER.fullmatch(text) and abs(int(text)) < 1 << 31:
        return int(text)
    match = _DATE.fullmatch(text)
    days = days_from_civil(*(int(part) for part in match.groups())) if match else None
    if days is None:
        raise failed(text, target)
    return days


def _parse_clock(text: str, target: DataType) -> int:
    if _NUMBER.fullmatch(text) and abs(int(text)) < 1 << 31:
        return int(text)
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise failed(text, target)
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise failed(text, target)
    return (hours * 3600 + minutes * 60 + seconds) * 1000 + int((match[4] or "0").ljust(3, "0")[:3])


def _parse_stamp(text: str, target: DataType) -> int:
    """Nanoseconds since 1970."""
    if _NUMBER.fullmatch(text) and target.root != _LTZ:
        # A number counts units of the type's precision.
        number: int = int(text) * 10 ** (9 - target.precision)
        return number
    match = _STAMP.fullmatch(text)
    if match is None:
        raise failed(text, target)
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    # The 31st of a shorter month is its last day: java.time's smart resolution.
    tries = (days_from_civil(year, month, at) for at in range(min(day, 31), max(day - 4, 0), -1))
    days = next((found for found in tries if found is not None), None) if day <= 31 else None
    hours, minutes, seconds = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        raise failed(text, target)
    whole = days * 86_400 + hours * 3600 + minutes * 60 + seconds
    nanos: int = whole * 1_000_000_000 + int((match[7] or "0").ljust(9, "0"))
    return nanos
