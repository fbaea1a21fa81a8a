"""Casts to dates, times of day and timestamps, and from timestamps to seconds."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import days_from_civil, parse_zone
from alluvium.expr.columnar import instant, local_time
from alluvium.paimon.casts.numbers import each, failed
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataType
from alluvium.schema.arrow import to_arrow

_LTZ = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
_DAY_MS = 86_400_000
_NANOS = 1_000_000
#: The engine takes whole numbers in text as the number that the type stores.
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_DATE = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?: .*)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)
_STAMP = re.compile(r"(\d{4,})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)


def to_wall_clock(values: pa.Array, source: DataType, time_zone: str) -> pa.Array:
    """Timestamps as nanoseconds of the wall clock since 1970; those of an instant by the session's zone."""
    zone = parse_zone(time_zone)
    if source.root == _LTZ and zone is not timezone.utc:
        values = local_time(values.cast(pa.timestamp("us", tz="UTC"), safe=False), zone)
    return _nanos(values)


def _nanos(values: pa.Array) -> pa.Array:
    per_unit = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}[values.type.unit]
    return pc.multiply(values.cast(pa.int64()), per_unit)


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)


def _array(numbers: npt.NDArray[np.int64], like: pa.Array, kind: pa.DataType) -> pa.Array:
    made = pa.array(numbers, mask=like.is_null().to_numpy(zero_copy_only=False))
    return made.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) or pa.types.is_time(kind) else made.cast(kind)


def to_seconds(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Whole seconds since 1970, towards zero from the millisecond."""
    millis = _numbers(_nanos(values)) // _NANOS
    seconds = np.sign(millis) * (np.abs(millis) // 1000)
    return pa.array(seconds, mask=values.is_null().to_numpy(zero_copy_only=False)).cast(
        to_arrow(to_logical(target)), safe=False
    )


def to_date(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        days = each(values, lambda text: _parse_date(str(text), target), pa.int32())
        return days.cast(pa.date32())
    return _array(_numbers(to_wall_clock(values, source, time_zone)) // (_DAY_MS * _NANOS), values, pa.date32())


def to_time(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        return each(values, lambda text: _parse_clock(str(text), target), pa.int32()).cast(pa.time32("ms"))
    if source.root == "TIME_WITHOUT_TIME_ZONE":
        return values
    millis = _numbers(to_wall_clock(values, source, time_zone)) // _NANOS % _DAY_MS
    return _array(millis, values, pa.time32("ms"))


def to_timestamp(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    zone = parse_zone(time_zone)
    if source.root in ("INTEGER", "BIGINT", "SMALLINT", "TINYINT"):
        # Java multiplies without a check, so what is too large wraps.
        nanos = _numbers(values.cast(pa.int64())) * 1000 * _NANOS
        return _stamps(nanos, values, target)
    if source.root in ("CHAR", "VARCHAR"):
        wall = each(values, lambda text: _parse_stamp(str(text), target), pa.int64())
    elif source.root == "DATE":
        wall = pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _DAY_MS * _NANOS)
    elif source.root == "TIME_WITHOUT_TIME_ZONE":
        # Its milliseconds stay, whatever the target's digits.
        wall = pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _NANOS)
        target = replace(target, precision=max(target.precision, 3))
    elif source.root == target.root:
        return _stamps(_numbers(_nanos(values)), values, target)
    else:
        wall = to_wall_clock(values, source, time_zone)
    if target.root == _LTZ and zone is not timezone.utc:
        micros = pc.cast(wall, pa.timestamp("ns")).cast(pa.timestamp("us"), safe=False)
        wall = _nanos(instant(micros, zone))
    return _stamps(_numbers(wall), values, target)


def _stamps(nanos: npt.NDArray[np.int64], like: pa.Array, target: DataType) -> pa.Array:
    """Cut to the target's digits: below the millisecond downwards, above it towards zero."""
    precision = target.precision
    if precision < 9:
        step = 10 ** max(9 - precision, 0)
        nanos = nanos // min(step, _NANOS) * min(step, _NANOS)
        if precision < 3:
            nanos = np.sign(nanos) * (np.abs(nanos) // step * step)
    kind = to_arrow(to_logical(target))
    units = nanos if kind.unit == "ns" else nanos // 1000
    return pa.array(units, mask=like.is_null().to_numpy(zero_copy_only=False)).cast(kind)


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
    if _NUMBER.fullmatch(text) and target.root != _LTZ:
        # A number counts units of the type's precision.
        number: int = int(text) * 10 ** (9 - target.precision)
        if abs(number) < 1 << 63:
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
