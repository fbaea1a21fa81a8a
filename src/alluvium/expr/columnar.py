"""Spark's meaning of casts and comparisons, on Arrow arrays and scalars."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import scalar_of
from alluvium.errors import InvalidRequest
from alluvium.expr.late_times import Numbers, with_late_times
from alluvium.expr.literals import UTC, NotUnderstood, cast_value
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

#: An array with one value a row, or a scalar that stands for all rows.
Datum: TypeAlias = "pa.Array | pa.Scalar"

_ORDERED = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def unsupported(what: str) -> InvalidRequest:
    """The error for an expression that only an engine can evaluate."""
    return InvalidRequest(
        f"cannot evaluate {what} without Spark",
        code="unsupported-expression",
        hint="filter with Spark: alluvium.read(spark, url).where(...)",
    )


def literal_scalar(value: object, data_type: DataType) -> pa.Scalar:
    """A constant as an Arrow scalar of its logical type."""
    return scalar_of(value, to_arrow(data_type))


def broadcast(datum: Datum, num_rows: int) -> pa.Array:
    """One value a row."""
    return pa.repeat(datum, num_rows) if isinstance(datum, pa.Scalar) else datum


def by_value(datum: Datum, function: Callable[[object], object], target: DataType) -> Datum:
    """Applies a Python function to each distinct value that is not null."""
    try:
        if isinstance(datum, pa.Scalar):
            value = datum.as_py()
            return literal_scalar(None if value is None else function(value), target)
        encoded = datum.dictionary_encode()
        results = [None if v is None else function(v) for v in encoded.dictionary.to_pylist()]
        return pa.array(results, to_arrow(target)).take(encoded.indices)
    except NotUnderstood as error:
        raise unsupported(f"a {error}") from None
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"a value is out of range: {error}", code="out-of-range") from None


def zone_name(zone: dt.tzinfo) -> str | None:
    """The zone as Arrow names it; None where Arrow has no name for it."""
    if zone is UTC:
        return "UTC"
    if isinstance(zone, zoneinfo.ZoneInfo):
        return zone.key
    offset = zone.utcoffset(None) or dt.timedelta()
    minutes, rest = divmod(abs(offset), dt.timedelta(minutes=1))
    sign = "-" if offset < dt.timedelta() else "+"
    return None if rest else f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def local_time(datum: Datum, zone: dt.tzinfo) -> Datum:
    """Timestamps (UTC) as local times of a zone."""
    name = zone_name(zone)
    if name is None:
        return by_value(datum, lambda v: cast_value(v, t.TIMESTAMP, t.TIMESTAMP_NTZ, zone), t.TIMESTAMP_NTZ)
    if name == "UTC":
        return pc.cast(datum, pa.timestamp("us"))
    zoned = pc.cast(datum, pa.timestamp("us", tz=name))
    return _late(zoned, pc.local_timestamp(zoned), zone, is_local=False)


def ahead_s(instants: Numbers, zone: dt.tzinfo) -> Numbers:
    """How far a zone's clock is ahead of UTC's at some instants; all in seconds, the latter since 1970."""
    shown = local_time(pa.array(instants * 1_000_000, pa.timestamp("us", "UTC")), zone)
    return np.asarray(shown.cast(pa.int64()), np.int64) // 1_000_000 - instants


def instant(datum: Datum, zone: dt.tzinfo) -> Datum:
    """Local times of a zone as timestamps; of a time that occurs twice the earlier."""
    name, datum = zone_name(zone), pc.cast(datum, pa.timestamp("us"))
    native = None if name is None else _native_instant(datum, name)
    if native is not None:
        return _late(datum, native, zone, is_local=True)
    return by_value(datum, lambda v: cast_value(v, t.TIMESTAMP_NTZ, t.TIMESTAMP, zone), t.TIMESTAMP)


def _late(datum: Datum, found: Datum, zone: dt.tzinfo, is_local: bool) -> Datum:
    if isinstance(datum, pa.Scalar):
        return with_late_times(pa.array([datum], datum.type), pa.array([found], found.type), zone, is_local)[0]
    return with_late_times(datum, found, zone, is_local)


def _native_instant(datum: Datum, name: str) -> Datum | None:
    try:
        near = pc.assume_timezone(datum, name, ambiguous="earliest", nonexistent="earliest")
    except ValueError:
        return None  # Arrow does not know the zone
    # Times that the clock leaves out are moved on by the gap's length: they go by its distance from UTC before.
    ahead = pc.subtract(pc.cast(pc.local_timestamp(near), pa.int64()), pc.cast(near, pa.int64()))
    return pc.cast(pc.subtract(pc.cast(datum, pa.int64()), ahead), pa.timestamp("us", tz="UTC"))


def cast_datum(datum: Datum, source: DataType, target: DataType, zone: dt.tzinfo) -> Datum:
    """Spark's ANSI cast.

    Raises:
        InvalidRequest: A value does not fit; or the cast is one that is not computed here.
    """
    if source == target:
        return datum
    try:
        native = _native_cast(datum, source, target, zone)
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"a value cannot be cast to {target}: {error}", code="invalid-cast") from None
    if native is not None:
        return native
    return by_value(datum, lambda v: cast_value(v, source, target, zone), target)


def _native_cast(datum: Datum, source: DataType, target: DataType, zone: dt.tzinfo) -> Datum | None:
    arrow = to_arrow(target)
    if source == t.VOID:
        return pa.scalar(None, arrow)
    if source in t.INTEGRAL:
        if isinstance(target, Decimal):
            return _integral_to_decimal(datum, target)
        if target in t.FLOATING:
            return pc.cast(datum, arrow, safe=False)
        if target in t.INTEGRAL or target == t.STRING:
            return pc.cast(datum, arrow)
    if source in t.FLOATING and target in t.FLOATING:
        return pc.cast(datum, arrow, safe=False)
    if isinstance(source, Decimal) and isinstance(target, Decimal) and target.scale >= source.scale:
        return pc.cast(datum, arrow)
    if source == t.BOOLEAN and (target in t.INTEGRAL or target == t.STRING):
        return pc.cast(datum, arrow)
    if source == t.STRING and target == t.BINARY:
        return pc.cast(datum, arrow)
    return _native_time_cast(datum, source, target, zone)


def _native_time_cast(datum: Datum, source: DataType, target: DataType, zone: dt.tzinfo) -> Datum | None:
    arrow = to_arrow(target)
    if source == t.DATE and target == t.TIMESTAMP_NTZ:
        return pc.cast(datum, arrow)
    if source == t.DATE and target == t.TIMESTAMP:
        return instant(pc.cast(datum, pa.timestamp("us")), zone)
    if source == t.TIMESTAMP_NTZ and target == t.DATE:
        return pc.cast(datum, arrow)
    if source == t.TIMESTAMP_NTZ and target == t.TIMESTAMP:
        return instant(datum, zone)
    if source == t.TIMESTAMP and target == t.TIMESTAMP_NTZ:
        return local_time(datum, zone)
    if source in (t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS):
        coarse = t.TIMESTAMP if source == t.TIMESTAMP_NANOS else t.TIMESTAMP_NTZ
        # Downwards; Arrow's own cast would go towards 1970.
        floored = pc.floor_temporal(datum, unit="microsecond")
        return cast_datum(pc.cast(floored, to_arrow(coarse)), coarse, target, zone)
    if source == t.TIMESTAMP and target == t.DATE:
        return pc.cast(local_time(datum, zone), arrow)
    return None


def _integral_to_decimal(datum: Datum, target: Decimal) -> Datum | None:
    # Arrow asks for room for every value of the integer type (19 digits for 64 bits) before it looks at the values.
    if target.scale > 38 - 19:
        return None
    wide = pc.cast(datum, pa.decimal128(38, target.scale))
    return pc.cast(wide, to_arrow(target))


def compare(op: str, left: Datum, right: Datum, data_type: DataType) -> Datum:
    """Compares values of one type in Spark's order: NaN equals NaN and is the greatest, strings go by their bytes."""
    if op == "<=>":
        equal = pc.fill_null(compare("=", left, right, data_type), False)
        return pc.or_(equal, pc.and_(_is_null(left), _is_null(right)))
    if op == "!=":
        return pc.invert(compare("=", left, right, data_type))
    if data_type in t.FLOATING:
        return _compare_floating(op, left, right)
    return pc.equal(left, right) if op == "=" else _ORDERED[op](left, right)


def _is_null(datum: Datum) -> Datum:
    # NaN is a value, not a null
    return pc.is_null(datum, nan_is_null=False)


def _compare_floating(op: str, left: Datum, right: Datum) -> Datum:
    if op in ("<", "<="):
        return _compare_floating(">" if op == "<" else ">=", right, left)
    if op == "=":
        plain = pc.equal(left, right)
        if _is_number(left) or _is_number(right):
            return plain
        return pc.or_kleene(plain, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    plain = _ORDERED[op](left, right)
    if _is_number(right):  # NaN is greater than any number
        return pc.or_kleene(plain, pc.is_nan(left))
    if op == ">=":
        return pc.or_kleene(plain, pc.and_kleene(pc.is_nan(left), _not_null_as_true(right)))
    return pc.or_kleene(plain, pc.and_kleene(pc.is_nan(left), pc.invert(pc.is_nan(right))))


def _not_null_as_true(datum: Datum) -> Datum:
    return pc.equal(pc.is_nan(datum), pc.is_nan(datum))


def _is_number(datum: Datum) -> bool:
    """A constant other than NaN (and null)."""
    return isinstance(datum, pa.Scalar) and datum.is_valid and datum.as_py() == datum.as_py()
