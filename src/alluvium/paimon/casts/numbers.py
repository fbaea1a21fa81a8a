"""Casts to booleans and numbers, as Java's: integers wrap, floating point saturates, decimals round half up or null."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataType
from alluvium.schema.arrow import to_arrow

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
#: `BinaryStringUtils.toLong`: a fraction is allowed, and cut; blanks are not.
_WHOLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_WIDE = pa.decimal256(76, 0)


def failed(value: object, target: DataType) -> InvalidRequest:
    """What a cast that cannot be done raises."""
    return InvalidRequest(
        f"{value!r} cannot be cast to {target.root}",
        code="invalid-cast",
        hint="the column's type was changed after the value was written; change it back, or read an older snapshot",
    )


def each(values: pa.Array, function: Callable[[Any], object], target: pa.DataType) -> pa.Array:
    """A function of single values, applied to each distinct one once."""
    encoded = values.dictionary_encode()
    made = pa.array([None if v is None else function(v) for v in encoded.dictionary.to_pylist()], target)
    return made.take(encoded.indices)


def to_boolean(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        lowered = pc.utf8_lower(values)
        true = pc.is_in(lowered, pa.array(_TRUE))
        known = pc.or_(true, pc.is_in(lowered, pa.array(_FALSE)))
        odd = values.filter(pc.and_(pc.invert(known), pc.is_valid(values)))
        if len(odd):
            raise failed(odd[0].as_py(), target)
        return pc.if_else(pc.is_valid(values), true, pa.scalar(None, pa.bool_()))
    return pc.not_equal(values, pa.scalar(0, values.type))


def to_integer(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    kind = to_arrow(to_logical(target))
    if source.root in ("CHAR", "VARCHAR"):
        return each(values, lambda text: _parse_integer(str(text), target), kind)
    if source.root == "BOOLEAN":
        return values.cast(pa.int8()).cast(kind)
    if source.root in ("FLOAT", "DOUBLE"):
        return _floats_to_integer(values, target).cast(kind, safe=False)
    if source.root == "DECIMAL":
        return _low_bits(values).cast(kind, safe=False)
    return values.cast(kind, safe=False)


def _parse_integer(text: str, target: DataType) -> int:
    bits = _INTS[target.root]
    if not _WHOLE.fullmatch(text):
        raise failed(text, target)
    number = int(decimal.Decimal(text))
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise failed(text, target)
    return number


def _floats_to_integer(values: pa.Array, target: DataType) -> pa.Array:
    """Java: NaN is 0, what is too large is the largest; narrow types go by way of int, whose bits they cut."""
    bits = 64 if target.root == "BIGINT" else 32
    floats = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    limit = float(1 << bits - 1)
    finite = np.trunc(np.nan_to_num(floats, nan=0.0, posinf=limit, neginf=-limit))
    inside = (finite < limit) & (finite >= -limit)
    largest, smallest = (1 << bits - 1) - 1, -(1 << bits - 1)
    whole = np.where(inside, finite, 0).astype(np.int64)
    whole = np.where(finite >= limit, largest, np.where(finite < -limit, smallest, whole))
    return pa.array(whole, mask=values.is_null().to_numpy(zero_copy_only=False))


def _low_bits(values: pa.Array) -> pa.Array:
    """`BigDecimal.longValue`: the fraction is cut, and only the low 64 bits stay."""
    whole = pc.round(values, 0, "towards_zero").cast(pa.decimal128(38, 0))
    whole = whole if whole.offset == 0 else pa.concat_arrays([whole, whole.slice(0, 0)])
    words = np.frombuffer(whole.buffers()[1], np.int64)[: 2 * len(whole) : 2]
    return pa.array(words, mask=values.is_null().to_numpy(zero_copy_only=False))


def to_floating(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    kind = to_arrow(to_logical(target))
    if source.root in ("CHAR", "VARCHAR"):
        return each(values, lambda text: _parse_floating(str(text), target), pa.float64()).cast(kind, safe=False)
    if source.root == "BOOLEAN":
        return values.cast(pa.int8()).cast(kind)
    if source.root == "DECIMAL":
        # By way of text, which is rounded once and rightly.
        return values.cast(pa.string()).cast(kind)
    return values.cast(kind, safe=False)


def _parse_floating(text: str, target: DataType) -> float:
    bare = text.strip()
    if bare in ("NaN", "Infinity", "+Infinity", "-Infinity"):
        return float(bare)
    if bare[-1:] in "dDfF" and bare:
        bare = bare[:-1]
    if not _DECIMAL.fullmatch(bare):
        raise failed(text, target)
    return float(bare)


def to_decimal(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if source.root in ("CHAR", "VARCHAR"):
        return each(
            values, lambda text: _parse_decimal(str(text), target), pa.decimal128(target.precision, target.scale)
        )
    if source.root in ("FLOAT", "DOUBLE"):
        return each(
            values, lambda number: _rounded(repr(number), target), pa.decimal128(target.precision, target.scale)
        )
    if source.root == "BOOLEAN":
        values = values.cast(pa.int8())
    if source.root != "DECIMAL":
        values = values.cast(pa.int64()).cast(pa.decimal128(38, 0))
    return _rescaled(values, target)


def _parse_decimal(text: str, target: DataType) -> decimal.Decimal | None:
    if not _DECIMAL.fullmatch(text):
        raise failed(text, target)
    return _rounded(text, target)


def _rounded(text: str, target: DataType) -> decimal.Decimal | None:
    if text in ("nan", "inf", "-inf"):
        raise failed(text, target)
    with decimal.localcontext(decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)) as context:
        rounded = decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-target.scale, context), context=context)
        return rounded if abs(rounded) < decimal.Decimal(10) ** (target.precision - target.scale) else None


def _rescaled(values: pa.Array, target: DataType) -> pa.Array:
    """Half up, and null where the digits do not suffice."""
    source_scale = values.type.scale
    wide = values.cast(pa.decimal256(76, max(source_scale, target.scale)))
    if source_scale > target.scale:
        wide = pc.round(wide, target.scale, "half_towards_infinity").cast(pa.decimal256(76, target.scale))
    limit = pa.scalar(decimal.Decimal(10) ** (target.precision - target.scale), pa.decimal256(76, 0))
    fits = pc.less(pc.abs(wide), limit.cast(pa.decimal256(76, target.scale)))
    kept = pc.if_else(fits, wide, pa.scalar(None, wide.type))
    return kept.cast(pa.decimal128(target.precision, target.scale))
