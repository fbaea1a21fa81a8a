"""JSON values of statistics as typed columns, one value a file; null where a value is not of the column's type. Pure.

Specification: Delta protocol, "Per-file Statistics".
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Set
from datetime import timezone, tzinfo
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from alluvium.codecs.columns import double_column, long_column, string_column
from alluvium.codecs.temporal_text import parse_date, parse_timestamp, parse_zone
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Map
from alluvium.schema.types import Decimal as DecimalType

#: Doubles end at 1e308, decimals at 38 digits.
_MAX_EXPONENT = 400
# Years that Arrow and Python can print; bounds beyond are taken as unknown.
_MIN_DAYS, _MAX_DAYS = -719_162, 2_932_896
#: More digits than any decimal has.
_WIDE = Context(prec=50)
_INT64 = pa.int64()
#: Decimal digits that a double keeps whatever they are; and no double prints more than so many.
EXACT_DIGITS, _PRINTED_DIGITS = 15, 17


def bound_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column's bounds."""
    # Nothing has bounds under an order of its own: the type must still be one that null arrays can take part in.
    # Bounds of a variant are those of paths in it, encoded and "transformed to a Z85 string": none of the whole.
    return pa.null() if isinstance(data_type, (Array, Map)) or data_type == t.VARIANT else to_arrow(data_type)


def _tamed(values: list[object]) -> list[object]:
    """Without numbers such as 1e999999999, which no column can hold and whose conversion crashes Arrow."""
    return [
        None if isinstance(value, Decimal) and not -_MAX_EXPONENT < value.adjusted() < _MAX_EXPONENT else value
        for value in values
    ]


def _plain(values: list[object], kinds: Set[type]) -> list[Any] | None:
    """The values if they are all of some types, or null: what writers mean to write, and quick to convert."""
    return values if set(map(type, values)) <= {*kinds, type(None)} else None


def count_column(values: list[object]) -> pa.Array:
    """JSON values of counts as int64; null where one is no whole number."""
    return _integers(values, _INT64)


def _integers(values: list[object], arrow_type: pa.DataType) -> pa.Array:
    if (plain := _plain(values, {int})) is not None:
        with contextlib.suppress(pa.ArrowException, OverflowError):
            return long_column(plain).cast(arrow_type)
    values = _tamed(values)
    with contextlib.suppress(pa.ArrowException, TypeError, OverflowError):
        # Without a type first: given one, Arrow cuts 1.5 to 1 without a word.
        inferred = pa.array(values)
        if inferred.type == _INT64:
            return inferred.cast(arrow_type)
    return pa.array([_integer(value, arrow_type.bit_width) for value in values], arrow_type)


def bound_column(values: list[object], data_type: DataType, time_zone: str = "UTC") -> pa.Array:
    """JSON values of bounds under the column's Arrow type; null where one is not of that type."""
    zone = parse_zone(time_zone)
    arrow_type = bound_type(data_type)
    if data_type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _temporal_bounds(values, data_type, arrow_type, zone)
    if data_type in t.INTEGRAL:
        return _integers(values, arrow_type)
    parse = _PARSERS.get(data_type)
    if isinstance(data_type, DecimalType):
        parse = _decimal_parser(data_type)
    if parse is None:
        return pa.nulls(len(values), arrow_type)
    if data_type == t.STRING and (texts := _plain(values, {str})) is not None:
        return string_column(texts)
    if data_type == t.DOUBLE and (numbers := _plain(values, {int, float})) is not None:
        with contextlib.suppress(OverflowError):
            return double_column(numbers)
    values = _tamed([None if isinstance(v, bool) else v for v in values] if data_type in t.FLOATING else values)
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([parse(value) for value in values], arrow_type)


def _temporal_bounds(values: list[object], data_type: DataType, arrow_type: pa.DataType, zone: tzinfo) -> pa.Array:
    try:
        texts = _plain(values, {str})
        return (pa.array(values, pa.string()) if texts is None else string_column(texts)).cast(arrow_type)
    except (pa.ArrowException, TypeError):
        distinct = {value for value in values if isinstance(value, str)}
    if data_type == t.DATE:
        days = {text: _printable(parse_date(text), 1) for text in distinct}
        return pa.array([_known(days, value) for value in values], pa.int32()).cast(arrow_type)
    # A wall clock that is written with an offset is meant in UTC: writers print both types alike.
    zone = zone if data_type == t.TIMESTAMP else timezone.utc
    micros = {text: _printable(parse_timestamp(text, zone), 86_400_000_000) for text in distinct}
    return pa.array([_known(micros, value) for value in values], pa.int64()).cast(arrow_type)


def _known(parsed: Mapping[str, int | None], value: object) -> int | None:
    return parsed[value] if isinstance(value, str) else None


def _printable(value: int | None, per_day: int) -> int | None:
    return value if value is not None and _MIN_DAYS <= value // per_day <= _MAX_DAYS else None


def _integer(value: object, bits: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    if not isinstance(value, int) and not math.isfinite(value):
        return None
    # The range first: 1e999999999 as an integer would fill the memory.
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        return None
    whole = int(value)
    return whole if whole == value else None


def _real(value: object) -> float | None:
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _decimal_parser(data_type: DecimalType) -> Callable[[object], Decimal | None]:
    arrow_type = to_arrow(data_type)

    def parse(value: object) -> Decimal | None:
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            return None
        try:
            exact: Decimal = pa.scalar(Decimal(value), arrow_type).as_py()
        except (pa.ArrowException, ValueError):
            return None
        return exact

    return parse


def widened_decimals(bounds: pa.Array, data_type: DecimalType, sign: int) -> pa.Array:
    """Bounds of decimals, as far away as a double may have moved them; null where no decimal is so far.

    Some writers print decimals as doubles (deltalake does): the last of 16 digits and more is then another one. A text
    that has more digits than any double is what it says.

    Args:
        bounds: Values of the type.
        data_type: Of more than `EXACT_DIGITS` digits.
        sign: -1 for lower bounds, 1 for upper ones.
    """
    limit = 10**data_type.precision

    def widened(value: Decimal | None) -> Decimal | None:
        if value is None:
            return None
        _, digits, exponent = value.as_tuple()
        whole = int("".join(map(str, digits))) * 10 ** (int(exponent) + data_type.scale)
        if len(str(whole).rstrip("0")) > _PRINTED_DIGITS:
            return value
        # Two roundings and a print, each by at most half of a double's last place: less than 2^-50 of the value.
        moved = (-whole if value.is_signed() else whole) + sign * (whole >> 50)
        return Decimal(moved).scaleb(-data_type.scale, _WIDE) if -limit < moved < limit else None

    return pa.array(map(widened, bounds.to_pylist()), bounds.type)


_PARSERS: Mapping[DataType, Callable[[object], object]] = {
    t.FLOAT: _real,
    t.DOUBLE: _real,
    t.STRING: lambda value: value if isinstance(value, str) else None,
    t.BOOLEAN: lambda value: value if isinstance(value, bool) else None,
}
