"""Types of partition columns by the names of folders: told, or inferred as Spark infers them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from functools import reduce

import pyarrow as pa

from alluvium.codecs.partition_path import DEFAULT_PARTITION, unescape_path_name
from alluvium.codecs.temporal_text import BLANKS, parse_date, parse_timestamp_ntz
from alluvium.delta.terms.partition_values import format_partition_values, parse_partition_values
from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Primitive
from alluvium.schema.types import Decimal as DecimalType

#: What Java's `Integer.parseInt` takes, digits of other scripts aside.
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: And `Double.parseDouble`.
_FLOATING = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?")
_MAX_DIGITS = 38
#: Digits that a whole number needs as a decimal.
_DIGITS: dict[DataType, int] = {t.INTEGER: 10, t.LONG: 20}


def infer_type(values: Iterable[str]) -> DataType:
    """The type of a partition column.

    Args:
        values: As the names of folders have them, escaped.
    """
    nothing: DataType = t.VOID
    found = reduce(_wider, dict.fromkeys(_type_of(value) for value in values), nothing)
    return t.STRING if found == t.VOID else found


def _type_of(raw: str) -> DataType:
    if _WHOLE.fullmatch(raw):
        number = int(raw) if len(raw) <= _MAX_DIGITS + 2 else 10**_MAX_DIGITS
        for bits, kind in ((32, t.INTEGER), (64, t.LONG)):
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return kind
    if (digits := _whole_digits(raw)) is not None:
        return DecimalType(digits, 0)
    if _FLOATING.fullmatch(raw.strip(BLANKS)):
        return t.DOUBLE
    text = unescape_path_name(raw)
    if _TIMESTAMP.fullmatch(text) and parse_timestamp_ntz(text) is not None:
        return t.TIMESTAMP
    if _DATE.fullmatch(raw) and parse_date(raw) is not None:
        return t.DATE
    return t.VOID if raw == DEFAULT_PARTITION else t.STRING


def _whole_digits(raw: str) -> int | None:
    """Digits of a decimal number without a fraction; None for other texts."""
    # Java's takes no blanks, Python's does.
    if not raw.isascii() or "_" in raw or raw != raw.strip():
        return None
    try:
        number = Decimal(raw)
    except InvalidOperation:
        return None
    sign_digits_exponent = number.as_tuple()
    exponent = sign_digits_exponent.exponent
    if not isinstance(exponent, int) or exponent < 0:
        return None
    digits = len(sign_digits_exponent.digits) + exponent
    return digits if digits <= _MAX_DIGITS else None


def _wider(one: DataType, other: DataType) -> DataType:
    """As Spark's `findWiderTypeForPartitionColumn`: what would lose digits is text."""
    if one == other or other == t.VOID:
        return one
    if one == t.VOID:
        return other
    kinds = {one, other}
    if kinds == {t.INTEGER, t.LONG}:
        return t.LONG
    if kinds == {t.INTEGER, t.DOUBLE}:
        return t.DOUBLE
    if kinds == {t.DATE, t.TIMESTAMP}:
        return t.TIMESTAMP
    digits = [k.precision if isinstance(k, DecimalType) else _DIGITS.get(k) for k in (one, other)]
    known = [d for d in digits if d is not None]
    return DecimalType(min(max(known), _MAX_DIGITS), 0) if len(known) == len(digits) else t.STRING


def log_texts(values: Iterable[str], data_type: DataType, zone: str, column: str) -> pa.Array:
    """What the log gets for the values of a partition column.

    Args:
        values: As the names of folders have them.
        data_type: The column's type.
        zone: In which timestamps without one are meant.
        column: For the error.

    Raises:
        InvalidRequest: A value is none of the type (`partition-value`).
        UnsupportedFeature: No partition column has such a type.
    """
    if data_type == t.VOID or not isinstance(data_type, (Primitive, DecimalType)) or data_type == t.VARIANT:
        raise UnsupportedFeature(
            f"a column of type {data_type} cannot be a partition column",
            code="partition-type",
            column=column,
            hint="names of folders can be numbers, dates, times, text and booleans",
        )
    texts = pa.array([None if v == DEFAULT_PARTITION else unescape_path_name(v) for v in values], pa.string())
    try:
        typed = parse_partition_values(texts, data_type, zone, column)
    except CorruptTable as error:
        raise InvalidRequest(
            error.message,
            code="partition-value",
            column=column,
            hint="give the partition column the type of all of its folders, string takes any",
        ) from None
    # Of a timestamp the log has the instant, whatever zone its folder was named in.
    return format_partition_values(typed, data_type) if data_type == t.TIMESTAMP else texts
