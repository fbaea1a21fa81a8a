"""The functions and operators that are evaluated without Spark: their types and their meaning.

One entry of `FUNCTIONS` a name. Spark 4's ANSI mode is meant throughout: overflow and division by zero are errors.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest
from alluvium.expr.columnar import Datum, broadcast, by_value, instant, local_time, unsupported
from alluvium.expr.literals import UTC
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

NUMERIC: tuple[DataType, ...] = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE)
#: More is left for the engine.
_MAX_REPEATS = 1 << 12
_DIGITS: dict[DataType, int] = {t.BYTE: 3, t.SHORT: 5, t.INTEGER: 10, t.LONG: 20}


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that arguments are cast to, and the type of the result."""

    parameters: tuple[DataType, ...]
    result: DataType


@dataclass(frozen=True, slots=True)
class Function:
    """What a name means.

    Attributes:
        bind: Signature for the given argument types; None where we do not know it.
        apply: The values (of the parameters' types), the zone, the result's type -> result.
    """

    bind: Callable[[Sequence[DataType]], Signature | None]
    apply: Callable[[list[Datum], dt.tzinfo, DataType], Datum]


Apply: TypeAlias = Callable[[list[Datum], dt.tzinfo, DataType], Datum]


def decimal_of(data_type: DataType) -> Decimal | None:
    """The decimal type that holds all values of an integral or decimal type."""
    if isinstance(data_type, Decimal):
        return data_type
    return Decimal(_DIGITS[data_type], 0) if data_type in _DIGITS else None


def wider_number(left: DataType, right: DataType) -> DataType | None:
    """The type in which Spark compares and computes two numbers; None where one is not a number."""
    if left == right:
        return left if left in NUMERIC or isinstance(left, Decimal) else None
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        a, b = decimal_of(left), decimal_of(right)
        if a is None or b is None:
            return t.DOUBLE if left in t.FLOATING or right in t.FLOATING else None
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        return Decimal(precision, scale) if precision <= 38 else None
    if left not in NUMERIC or right not in NUMERIC:
        return None
    wider = NUMERIC[max(NUMERIC.index(left), NUMERIC.index(right))]
    # "If the input type is an Integral type and a Float type, simply return Double type" (ANSI coercion)
    return t.DOUBLE if wider == t.FLOAT else wider


def _without_void(types: Sequence[DataType]) -> tuple[DataType, ...]:
    known = [x for x in types if x != t.VOID]
    return tuple(x if x != t.VOID else known[0] for x in types) if known else tuple(types)


def _arithmetic(op: str) -> Callable[[Sequence[DataType]], Signature | None]:
    def bind(types: Sequence[DataType]) -> Signature | None:
        if len(types) != 2:
            return None
        left, right = _without_void(types)
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            a, b = decimal_of(left), decimal_of(right)
            if a is None or b is None:
                return Signature((t.DOUBLE, t.DOUBLE), t.DOUBLE) if wider_number(left, right) else None
            scale = a.scale + b.scale if op == "*" else max(a.scale, b.scale)
            whole = max(a.precision - a.scale, b.precision - b.scale)
            precision = a.precision + b.precision + 1 if op == "*" else whole + scale + 1
            return Signature((a, b), Decimal(precision, scale)) if precision <= 38 else None
        wider = wider_number(left, right)
        return Signature((wider, wider), wider) if wider else None

    return bind


def _bind_remainder(types: Sequence[DataType]) -> Signature | None:
    if len(types) != 2:
        return None
    wider = wider_number(*_without_void(types))
    return Signature((wider, wider), wider) if wider in NUMERIC else None


def _bind_divide(types: Sequence[DataType]) -> Signature | None:
    # Two decimals divide as decimals, with rounding rules of their own: left to Spark.
    if len(types) != 2 or (any(isinstance(x, Decimal) for x in types) and not any(x in t.FLOATING for x in types)):
        return None
    wider = wider_number(*_without_void(types))
    return Signature((t.DOUBLE, t.DOUBLE), t.DOUBLE) if wider else None


def _bind_div(types: Sequence[DataType]) -> Signature | None:
    known = _without_void(types)
    ok = len(known) == 2 and all(x in t.INTEGRAL for x in known)
    return Signature((t.LONG, t.LONG), t.LONG) if ok else None


def _bind_same_number(types: Sequence[DataType]) -> Signature | None:
    ok = len(types) == 1 and (types[0] in NUMERIC or isinstance(types[0], Decimal))
    return Signature(tuple(types), types[0]) if ok else None


def _bind_whole(types: Sequence[DataType]) -> Signature | None:
    return Signature((types[0],), t.LONG) if len(types) == 1 and types[0] in NUMERIC else None


def _bind_round(types: Sequence[DataType]) -> Signature | None:
    if len(types) not in (1, 2) or types[0] not in t.FLOATING:
        return None
    return Signature((types[0], t.INTEGER)[: len(types)], types[0]) if types[-1] in (*t.INTEGRAL, types[0]) else None


def _fixed(
    result: DataType, *parameters: DataType, castable: tuple[DataType, ...] = ()
) -> Callable[..., Signature | None]:
    """A signature with fixed parameters: integers widen, and `castable` types are cast to the first parameter."""

    def fits(given: DataType, wanted: DataType) -> bool:
        return given in (wanted, t.VOID) or given in castable or (wanted in t.INTEGRAL and given in (t.BYTE, t.SHORT))

    def bind(types: Sequence[DataType]) -> Signature | None:
        if len(types) != len(parameters) or not all(map(fits, types, parameters)):
            return None
        return Signature(parameters, result)

    return bind


def _bind_strings(types: Sequence[DataType]) -> Signature | None:
    castable = (t.STRING, t.VOID, *t.INTEGRAL, t.DATE, t.BOOLEAN)
    ok = len(types) >= 1 and all(x in castable for x in types)
    return Signature((t.STRING,) * len(types), t.STRING) if ok else None


def _bind_substring(types: Sequence[DataType]) -> Signature | None:
    ok = len(types) in (2, 3) and types[0] == t.STRING and all(x in t.INTEGRAL[:3] for x in types[1:])
    return Signature((t.STRING, t.INTEGER, t.INTEGER)[: len(types)], t.STRING) if ok else None


def _bind_clock(types: Sequence[DataType]) -> Signature | None:
    ok = len(types) == 1 and types[0] in (t.TIMESTAMP, t.TIMESTAMP_NTZ)
    return Signature((types[0],), t.INTEGER) if ok else None


def _bind_isnan(types: Sequence[DataType]) -> Signature | None:
    return Signature((types[0],), t.BOOLEAN) if len(types) == 1 and types[0] in t.FLOATING else None


def _bind_length(types: Sequence[DataType]) -> Signature | None:
    return Signature((types[0],), t.INTEGER) if len(types) == 1 and types[0] in (t.STRING, t.BINARY) else None


def branch_type(types: Sequence[DataType]) -> DataType | None:
    """The type of values that come from several branches; None where we do not know it."""
    result: DataType = t.VOID
    for x in types:
        if result in (t.VOID, x):
            result = x
        elif x != t.VOID:
            wider = wider_number(result, x)
            if wider is None:
                return None
            result = wider
    return result


def _bind_coalesce(types: Sequence[DataType]) -> Signature | None:
    wider = branch_type(types)
    return Signature((wider,) * len(types), wider) if types and wider else None


def _bind_case(types: Sequence[DataType]) -> Signature | None:
    """Conditions and values by turns; an odd last one is the ELSE."""
    values = [x for i, x in enumerate(types) if i % 2 == 1 or (i == len(types) - 1 and len(types) % 2)]
    wider = branch_type(values)
    conditions = [x for i, x in enumerate(types[: len(types) // 2 * 2]) if i % 2 == 0]
    if len(types) < 2 or wider is None or not all(x in (t.BOOLEAN, t.VOID) for x in conditions):
        return None
    pairs = (t.BOOLEAN, wider) * (len(types) // 2)
    return Signature(pairs + (wider,) * (len(types) % 2), wider)


def _checked(function: Callable[[Datum, Datum], Datum]) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        try:
            return pc.cast(function(*args), to_arrow(result))
        except pa.ArrowInvalid:
            raise InvalidRequest(f"arithmetic overflow of type {result}", code="arithmetic-overflow") from None

    return apply


def _ensure_no_zero(dividend: Datum, divisor: Datum) -> None:
    zero = pc.and_(pc.equal(divisor, pa.scalar(0, divisor.type)), pc.is_valid(dividend))  # null by zero is null
    found = zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(zero).as_py()
    if found:
        raise InvalidRequest("division by zero", code="division-by-zero", hint="exclude zero, or use nullif(x, 0)")


def _divide(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    _ensure_no_zero(*args)
    try:
        return pc.divide(args[0], args[1]) if result == t.DOUBLE else pc.divide_checked(args[0], args[1])
    except pa.ArrowInvalid:
        raise InvalidRequest(f"arithmetic overflow of type {result}", code="arithmetic-overflow") from None


def _remainder(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    left, right = args
    _ensure_no_zero(left, right)
    if result in t.FLOATING:
        return _float_remainder(left, right, result)
    # Arrow's integer division truncates, as Java's; x % -1 is 0, and x / -1 would overflow for the least integer
    one = pa.scalar(1, to_arrow(result))
    safe = pc.if_else(pc.equal(right, pa.scalar(-1, to_arrow(result))), one, right)
    return pc.subtract(left, pc.multiply(pc.divide(left, safe), safe))


def _float_remainder(left: Datum, right: Datum, result: DataType) -> Datum:
    if isinstance(right, pa.Scalar):
        divisor = right.as_py()
        if divisor is None:
            return pa.scalar(None, to_arrow(result))
        return by_value(left, lambda v: _fmod(v, divisor), result)
    pairs = zip(broadcast(left, len(right)).to_pylist(), right.to_pylist(), strict=False)
    return pa.array([None if a is None or b is None else _fmod(a, b) for a, b in pairs], to_arrow(result))


def _fmod(left: object, right: object) -> float:
    a, b = float(str(left)), float(str(right))
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def _whole(function: Callable[[float], int]) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        if pa.types.is_integer(args[0].type):
            return pc.cast(args[0], pa.int64())
        return by_value(args[0], lambda v: _to_long(function, v), t.LONG)

    return apply


def _to_long(function: Callable[[float], int], value: object) -> int:
    number = float(str(value))
    if not -(2.0**63) <= number < 2.0**63:  # NaN is not, either
        raise InvalidRequest(f"{value} has no place in a bigint", code="arithmetic-overflow")
    return function(number)


def _round(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    places = 0
    if len(args) == 2:
        if not isinstance(args[1], pa.Scalar) or args[1].as_py() is None or not 0 <= args[1].as_py() <= 30:
            raise unsupported("round() to such places")
        places = args[1].as_py()
    step = decimal.Decimal(1).scaleb(-places)

    def one(value: object) -> float:
        number = float(str(value))
        if not math.isfinite(number) or abs(number) > 1e300:
            return number
        with decimal.localcontext() as context:
            context.prec = 400
            # Java's decimals have no zero below zero.
            return float(decimal.Decimal(repr(number)).quantize(step, rounding=decimal.ROUND_HALF_UP)) + 0.0

    return by_value(args[0], one, result)


def _substring(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    if not all(isinstance(a, pa.Scalar) for a in args[1:]):
        raise unsupported("substring() with positions that are columns")
    numbers = [a.as_py() for a in args[1:]]
    if None in numbers:
        return pa.scalar(None, pa.string())
    start, length = numbers[0], numbers[1] if len(numbers) == 2 else 2**31 - 1
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(args[0], first, first + max(length, 0))

    def one(value: object) -> str:
        # Positions count from 1; 0 means 1, too; negative ones count from the end, and may lie before the start
        text = str(value)
        first = len(text) + start
        return text[max(first, 0) : max(first + length, 0)]

    return by_value(args[0], one, t.STRING)


def _concat(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    return pc.binary_join_element_wise(*args, pa.scalar("", pa.string()), null_handling="emit_null")


def _repeat(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    if not isinstance(args[1], pa.Scalar) or (args[1].is_valid and args[1].as_py() > _MAX_REPEATS):
        raise unsupported("repeat() so often, or by a column")
    return pc.binary_repeat(args[0], pc.max_element_wise(args[1], pa.scalar(0, pa.int32()), skip_nulls=False))


def _match(function: Callable[..., Datum]) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        if not isinstance(args[1], pa.Scalar):
            raise unsupported("a search for text that is a column")
        pattern = args[1].as_py()
        return pa.scalar(None, pa.bool_()) if pattern is None else function(args[0], pattern=pattern)

    return apply


def _date_add(sign: int) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        days = pc.cast(pc.cast(args[0], pa.int32()), pa.int64())
        moved = pc.add(days, pc.multiply(pc.cast(args[1], pa.int64()), sign))
        try:
            return pc.cast(pc.cast(moved, pa.int32()), pa.date32())
        except pa.ArrowInvalid:
            raise InvalidRequest("a date is out of range", code="arithmetic-overflow") from None

    return apply


def _datediff(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    return pc.subtract(pc.cast(args[0], pa.int32()), pc.cast(args[1], pa.int32()))


def _part(function: Callable[[Datum], Datum]) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        value = args[0]
        if pa.types.is_timestamp(value.type) and value.type.tz is not None:
            value = local_time(value, zone)
        return pc.cast(function(value), pa.int32())

    return apply


_TRUNC_UNITS = {"YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MON": "month"}
_TRUNC_UNITS |= {"MM": "month", "WEEK": "week", "DAY": "day", "DD": "day"}
_TRUNC_CLOCK = {"HOUR": "hour", "MINUTE": "minute", "SECOND": "second"}


def _date_trunc(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    unit = args[0].as_py().upper() if isinstance(args[0], pa.Scalar) and args[0].is_valid else ""
    arrow_unit = _TRUNC_UNITS.get(unit) or (_TRUNC_CLOCK.get(unit) if zone is UTC else None)
    if arrow_unit is None:
        raise unsupported(f"date_trunc({unit!r}, ...)")
    return instant(pc.floor_temporal(local_time(args[1], zone), unit=arrow_unit), zone)


def _trunc(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    unit = args[1].as_py().upper() if isinstance(args[1], pa.Scalar) and args[1].is_valid else ""
    arrow_unit = None if unit in ("DAY", "DD") else _TRUNC_UNITS.get(unit)
    if arrow_unit is None:
        raise unsupported(f"trunc(..., {unit!r})")
    return pc.floor_temporal(args[0], unit=arrow_unit)


#: Letters of Spark's datetime patterns that mean the same in strftime.
_PATTERN_PARTS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/.: _]")


def _date_format(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    pattern = args[1].as_py() if isinstance(args[1], pa.Scalar) else None
    pieces = [] if pattern is None else _PATTERN.findall(pattern)
    if not pieces or "".join(pieces) != pattern:
        raise unsupported(f"date_format(..., {pattern!r})")
    local = pc.cast(pc.floor_temporal(local_time(args[0], zone), unit="second"), pa.timestamp("s"))
    years = pc.year(local)
    outside = pc.or_(pc.less(years, 1), pc.greater(years, 9999))
    if outside.as_py() if isinstance(outside, pa.Scalar) else pc.any(outside).as_py():
        raise unsupported("date_format() of years before 1 or after 9999")
    return pc.strftime(local, format="".join(_PATTERN_PARTS.get(piece, piece) for piece in pieces))


def _simple(function: Callable[..., Datum]) -> Apply:
    return lambda args, zone, result: function(*args)


def _text(function: Callable[[str], str]) -> Apply:
    # Java maps case by the full rules (ß becomes SS), and so does Python; Arrow does not
    return lambda args, zone, result: by_value(args[0], lambda v: function(str(v)), t.STRING)


def _trim(function: Callable[..., Datum]) -> Apply:
    return lambda args, zone, result: function(args[0], characters=" ")


def _negative(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    return pc.negate(args[0]) if isinstance(result, Decimal) else pc.negate_checked(args[0])


def _abs(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    return pc.abs(args[0]) if isinstance(result, Decimal) else pc.abs_checked(args[0])


def _overflowing(function: Apply) -> Apply:
    def apply(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
        try:
            return function(args, zone, result)
        except pa.ArrowInvalid:
            raise InvalidRequest(f"arithmetic overflow of type {result}", code="arithmetic-overflow") from None

    return apply


def _length(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    return pc.utf8_length(args[0]) if args[0].type == pa.string() else pc.binary_length(args[0])


def _branches(args: list[Datum], zone: dt.tzinfo, result: DataType) -> Datum:
    raise unsupported("a branch")  # `case` and `coalesce` are evaluated branch by branch, see `evaluate`


_DAYS = (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.STRING)
_TIMES = (t.DATE, t.TIMESTAMP_NTZ)
_day = _fixed(t.INTEGER, t.DATE, castable=_DAYS)
_string = _fixed(t.STRING, t.STRING)
_search = _fixed(t.BOOLEAN, t.STRING, t.STRING)

FUNCTIONS: dict[str, Function] = {
    "+": Function(_arithmetic("+"), _checked(pc.add_checked)),
    "-": Function(_arithmetic("-"), _checked(pc.subtract_checked)),
    "*": Function(_arithmetic("*"), _checked(pc.multiply_checked)),
    "/": Function(_bind_divide, _divide),
    "div": Function(_bind_div, _divide),
    "%": Function(_bind_remainder, _remainder),
    "negative": Function(_bind_same_number, _overflowing(_negative)),
    "abs": Function(_bind_same_number, _overflowing(_abs)),
    "floor": Function(_bind_whole, _whole(math.floor)),
    "ceil": Function(_bind_whole, _whole(math.ceil)),
    "round": Function(_bind_round, _round),
    "isnan": Function(_bind_isnan, lambda args, zone, result: pc.fill_null(pc.is_nan(args[0]), False)),
    "upper": Function(_string, _text(str.upper)),
    "lower": Function(_string, _text(str.lower)),
    "length": Function(_bind_length, _length),
    "trim": Function(_string, _trim(pc.utf8_trim)),
    "ltrim": Function(_string, _trim(pc.utf8_ltrim)),
    "rtrim": Function(_string, _trim(pc.utf8_rtrim)),
    "substring": Function(_bind_substring, _substring),
    "repeat": Function(_fixed(t.STRING, t.STRING, t.INTEGER), _repeat),
    "concat": Function(_bind_strings, _concat),
    "contains": Function(_search, _match(pc.match_substring)),
    "startswith": Function(_search, _match(pc.starts_with)),
    "endswith": Function(_search, _match(pc.ends_with)),
    "year": Function(_day, _part(pc.year)),
    "quarter": Function(_day, _part(pc.quarter)),
    "month": Function(_day, _part(pc.month)),
    "day": Function(_day, _part(pc.day)),
    "hour": Function(_bind_clock, _part(pc.hour)),
    "minute": Function(_bind_clock, _part(pc.minute)),
    "second": Function(_bind_clock, _part(pc.second)),
    "date_add": Function(_fixed(t.DATE, t.DATE, t.INTEGER, castable=_DAYS), _date_add(1)),
    "date_sub": Function(_fixed(t.DATE, t.DATE, t.INTEGER, castable=_DAYS), _date_add(-1)),
    "datediff": Function(_fixed(t.INTEGER, t.DATE, t.DATE, castable=_DAYS), _datediff),
    "date_trunc": Function(_fixed(t.TIMESTAMP, t.STRING, t.TIMESTAMP, castable=_TIMES), _date_trunc),
    "trunc": Function(_fixed(t.DATE, t.DATE, t.STRING, castable=_DAYS), _trunc),
    "date_format": Function(_fixed(t.STRING, t.TIMESTAMP, t.STRING, castable=_TIMES), _date_format),
    "coalesce": Function(_bind_coalesce, _branches),
    "case": Function(_bind_case, _branches),
}

#: Other names of the same functions.
ALIASES = {
    "ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length", "len": "length",
    "substr": "substring", "ceiling": "ceil", "dayofmonth": "day", "dateadd": "date_add", "date_diff": "datediff",
    "nvl": "coalesce", "ifnull": "coalesce",
}  # fmt: skip
