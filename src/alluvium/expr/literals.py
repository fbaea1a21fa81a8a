"""Constants: Spark's casts between their types, and expressions as Spark SQL text.

The casts are those of ANSI mode (the default since Spark 4): a text that does not denote a value of the
type is an error, never null.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
from collections.abc import Callable

from alluvium.codecs import temporal_text
from alluvium.codecs.temporal_text import BLANKS, parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal

UTC = dt.timezone.utc
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
MIN_INTEGRAL: dict[DataType, int] = {t.BYTE: -(2**7), t.SHORT: -(2**15), t.INTEGER: -(2**31), t.LONG: -(2**63)}

_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII)
_INTEGRAL_TEXT = re.compile(r"[+-]?\d+$", re.ASCII)
_NUMBER_TEXT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$", re.ASCII)
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_SPECIAL_FLOATS |= {"+inf": math.inf, "+infinity": math.inf}


class NotUnderstood(Exception):
    """Inside this package only: Spark gives the text a meaning, but this package does not know it."""


def cannot_cast(value: object, data_type: DataType) -> InvalidRequest:
    """The error for a value that Spark refuses to cast."""
    return InvalidRequest(
        f"{value!r} is not a value of type {data_type}",
        code="invalid-predicate",
        hint="compare the column with a literal of its own type",
    )


def parse_date(text: str) -> dt.date:
    """A date as Spark casts it from text (`2024-1-1`, `2024`, `2024-01-01T12:00`).

    Raises:
        InvalidRequest: Not a date, or outside the years 1 to 9999.
    """
    days = temporal_text.parse_date(text)
    if days is None or not 1 <= days + _EPOCH_DAY <= dt.date.max.toordinal():
        raise cannot_cast(text, t.DATE)
    return dt.date.fromordinal(days + _EPOCH_DAY)


def parse_timestamp(text: str, zone: dt.tzinfo, *, unambiguous: bool = False) -> dt.datetime:
    """A timestamp as Spark casts it from text: an aware datetime in UTC.

    Args:
        text: Date, or date and time, with or without a zone at its end.
        zone: Where the text names no zone.
        unambiguous: Refuse a local time that occurs twice in its zone (the text of an engine may mean either).

    Raises:
        InvalidRequest: Not a timestamp, or outside the years 1 to 9999.
    """
    local, named = _parse_local(text)
    return localize(local, parse_zone(named) if named else zone, unambiguous=unambiguous)


def parse_timestamp_ntz(text: str) -> dt.datetime:
    """A local timestamp as Spark casts it from text: a naive datetime; a zone at its end is ignored."""
    return _parse_local(text)[0]


def _parse_local(text: str) -> tuple[dt.datetime, str | None]:
    parsed = temporal_text.parse_local(text)
    if parsed is None:
        raise cannot_cast(text, t.TIMESTAMP)
    try:
        return _EPOCH + dt.timedelta(microseconds=parsed[0]), parsed[1]
    except OverflowError:
        raise cannot_cast(text, t.TIMESTAMP) from None


def localize(local: dt.datetime, zone: dt.tzinfo, *, unambiguous: bool = False) -> dt.datetime:
    """The instant of a local time, in UTC.

    As `java.time`: of a time that occurs twice the earlier instant; a time in a gap moves on by the gap's length
    (`fold=0` does both).
    """
    aware = local.replace(tzinfo=zone, fold=0)
    if unambiguous and aware.utcoffset() != local.replace(tzinfo=zone, fold=1).utcoffset():
        raise NotUnderstood("a local time that occurs twice")
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise cannot_cast(str(local), t.TIMESTAMP) from None


def cast_value(
    value: object, source: DataType, target: DataType, zone: dt.tzinfo = UTC, *, engine: bool = False
) -> object:
    """Spark's ANSI cast of one value.

    Raises:
        InvalidRequest: Spark would raise, too.
        NotUnderstood: A cast between types that this package does not compute.
    """
    if value is None or source == target:
        return value
    if isinstance(target, Decimal):
        return _to_decimal(value, target)
    cast = _CASTS.get(target)
    if cast is None:
        raise NotUnderstood(f"cast to {target}")
    return cast(value, target, zone, engine)


def _to_integral(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> int:
    if isinstance(value, str):
        if not _INTEGRAL_TEXT.match(value.strip(BLANKS)) or len(value) > 100:
            raise cannot_cast(value, target)
        number = int(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise cannot_cast(value, target)
    elif isinstance(value, (bool, int, float, decimal.Decimal)):
        number = int(value)
    else:
        raise NotUnderstood(f"cast to {target}")
    low = MIN_INTEGRAL[target]
    if not low <= number < -low:
        raise cannot_cast(value, target)
    return number


def to_float32(value: float) -> float:
    """The nearest single-precision number, as the float that Python has."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_floating(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> float:
    if isinstance(value, str):
        text = value.strip(BLANKS)
        special = _SPECIAL_FLOATS.get(text.lower())
        if special is None and not _NUMBER_TEXT.match(text):
            raise cannot_cast(value, target)
        number = float(text) if special is None else special
    elif isinstance(value, (bool, int, float, decimal.Decimal)):
        number = float(value)
    else:
        raise NotUnderstood(f"cast to {target}")
    return to_float32(number) if target == t.FLOAT else number


def _to_decimal(value: object, target: Decimal) -> decimal.Decimal:
    if isinstance(value, str):
        if not _NUMBER_TEXT.match(value.strip(BLANKS)):
            raise cannot_cast(value, target)
        exact = decimal.Decimal(value.strip(BLANKS))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise cannot_cast(value, target)
        exact = decimal.Decimal(repr(value))  # Scala's BigDecimal(double) goes through the shortest text, too
    elif isinstance(value, (bool, int, decimal.Decimal)):
        exact = decimal.Decimal(value)
    else:
        raise NotUnderstood(f"cast to {target}")
    if exact and exact.adjusted() > 38:
        raise cannot_cast(value, target)
    with decimal.localcontext() as context:
        context.prec = 120
        rounded = exact.quantize(decimal.Decimal(1).scaleb(-target.scale), rounding=decimal.ROUND_HALF_UP)
    if rounded and rounded.adjusted() >= target.precision - target.scale:
        raise cannot_cast(value, target)
    return rounded


def _to_boolean(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> bool:
    if isinstance(value, str):
        text = value.strip(BLANKS).lower()
        if text not in _TRUE + _FALSE:
            raise cannot_cast(value, target)
        return text in _TRUE
    if isinstance(value, (int, float, decimal.Decimal)):
        return value != 0
    raise NotUnderstood("cast to boolean")


def _to_string(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    raise NotUnderstood("cast to string")  # numbers and times have formats of Java's own


def _to_binary(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> bytes:
    if isinstance(value, str):
        return value.encode()
    raise NotUnderstood("cast to binary")


def _to_date(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> dt.date:
    if isinstance(value, str):
        return parse_date(value)
    if isinstance(value, dt.datetime):
        return _in_zone(value, zone).date()
    raise NotUnderstood("cast to date")


def _in_zone(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    if value.tzinfo is None:
        return value
    try:
        return value.astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        raise cannot_cast(str(value), t.TIMESTAMP_NTZ) from None


def _to_timestamp(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> dt.datetime:
    if isinstance(value, str):
        return parse_timestamp(value, zone, unambiguous=engine)
    if isinstance(value, dt.datetime):
        return localize(value, zone)
    if isinstance(value, dt.date):
        return localize(dt.datetime.combine(value, dt.time()), zone)
    raise NotUnderstood("cast to timestamp")


def _to_timestamp_ntz(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> dt.datetime:
    if isinstance(value, str):
        return parse_timestamp_ntz(value)
    if isinstance(value, dt.datetime):
        return _in_zone(value, zone)
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    raise NotUnderstood("cast to timestamp_ntz")


def _to_time(value: object, target: DataType, zone: dt.tzinfo, engine: bool) -> dt.time:
    """A time of day, to the millisecond as Paimon keeps it."""
    match = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise cannot_cast(value, target)
    hour, minute, second, fraction = match.groups()
    try:
        return dt.time(int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(6, "0")[:6]))
    except ValueError:
        raise cannot_cast(value, target) from None


_CASTS: dict[DataType, Callable[[object, DataType, dt.tzinfo, bool], object]] = {
    **dict.fromkeys(t.INTEGRAL, _to_integral),
    **dict.fromkeys(t.FLOATING, _to_floating),
    t.BOOLEAN: _to_boolean,
    t.STRING: _to_string,
    t.BINARY: _to_binary,
    t.DATE: _to_date,
    t.TIMESTAMP: _to_timestamp,
    t.TIMESTAMP_NTZ: _to_timestamp_ntz,
    t.TIME: _to_time,
}

_SUFFIX: dict[DataType, str] = {t.BYTE: "Y", t.SHORT: "S", t.INTEGER: "", t.LONG: "L"}
BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*$")
_INFIX = ("+", "-", "*", "/", "%", "div")


def format_name(path: tuple[str, ...]) -> str:
    """A column's dotted name, with backticks around the parts that need them."""
    return ".".join(p if BARE_NAME.match(p) else "`" + p.replace("`", "``") + "`" for p in path)


def format_string(text: str) -> str:
    """A Spark string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def format_literal(literal: tree.Literal) -> str:
    """A constant as Spark SQL that denotes it with its type."""
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL" if kind == t.VOID else f"CAST(NULL AS {str(kind).upper()})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}{_SUFFIX.get(kind, '')}"
    if isinstance(value, float):
        return _format_float(value, kind)
    if isinstance(value, decimal.Decimal):
        return f"CAST('{value:f}' AS {str(kind).upper()})"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return f"TIMESTAMP_NTZ '{text}'" if value.tzinfo is None else f"TIMESTAMP '{text}Z'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return format_string(str(value))


def _format_float(value: float, kind: DataType) -> str:
    if kind == t.DOUBLE and math.isfinite(value):
        return f"{value!r}D"
    text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
    return f"CAST('{text}' AS {str(kind).upper()})"


def format_sql(node: tree.Expression) -> str:
    """An expression as Spark SQL text, for people and for `parse_predicate`."""
    if isinstance(node, tree.Column):
        return format_name(node.path)
    if isinstance(node, tree.Literal):
        return format_literal(node)
    if isinstance(node, tree.Unknown):
        return node.sql
    if isinstance(node, tree.Call):
        return _format_call(node)
    if isinstance(node, tree.Compare):
        return f"({format_sql(node.left)} {node.op} {format_sql(node.right)})"
    if isinstance(node, (tree.And, tree.Or)):
        return f"({format_sql(node.left)} {type(node).__name__.upper()} {format_sql(node.right)})"
    child = format_sql(node.child)
    if isinstance(node, tree.Not):
        return f"(NOT {child})"
    if isinstance(node, tree.IsNull):
        return f"({child} IS NULL)"
    if isinstance(node, tree.In):
        return f"({child} IN ({', '.join(map(format_literal, node.values))}))"
    if isinstance(node, tree.StartsWith):
        return f"startswith({child}, {format_string(node.prefix)})"
    if isinstance(node, tree.Like):
        return f"({child} LIKE {format_string(node.pattern)})"
    return f"CAST({child} AS {str(node.type).upper()})"


def _format_call(node: tree.Call) -> str:
    args = [format_sql(a) for a in node.args]
    if node.name in _INFIX and len(args) == 2:
        return f"({args[0]} {node.name} {args[1]})"
    if node.name == "negative":
        return f"(- {args[0]})"
    if node.name == "case":
        pairs = zip(args[0::2], args[1::2], strict=False)
        last = f" ELSE {args[-1]}" if len(args) % 2 else ""
        return f"CASE {' '.join(f'WHEN {w} THEN {v}' for w, v in pairs)}{last} END"
    return f"{node.name}({', '.join(args)})"
