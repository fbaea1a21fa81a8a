"""Casts to text and to bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import format_date, format_instant
from alluvium.paimon.casts.numbers import each
from alluvium.paimon.casts.times import Moments, to_wall_clock
from alluvium.paimon.schema.types import DataType
from alluvium.paimon.terms.java_text import float_text

_MAX_LENGTH = 2_147_483_647


def to_text(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    """CHAR(n) is cut and filled with blanks, VARCHAR(n) is cut."""
    if source.root in ("BINARY", "VARBINARY", "BLOB"):
        made = each(values, lambda data: bytes(data).decode("utf-8", "replace"), pa.string())
        return _cut(made, target.length)
    made = _text_of(values, source, time_zone)
    made = _cut(made, target.length)
    return pc.utf8_rpad(made, target.length, " ") if target.root == "CHAR" else made


def _cut(values: pa.Array, length: int) -> pa.Array:
    return values if length >= _MAX_LENGTH else pc.utf8_slice_codeunits(values, 0, length)


def _text_of(values: pa.Array, source: DataType, time_zone: str) -> pa.Array:
    if source.root in ("FLOAT", "DOUBLE"):
        single = source.root == "FLOAT"
        return each(values, lambda number: float_text(float(number), single), pa.string())
    if source.root == "DATE":
        return each(values.cast(pa.int32()), lambda days: format_date(int(days)), pa.string())
    if source.root == "TIME_WITHOUT_TIME_ZONE":
        return each(values.cast(pa.int32()), lambda ms: _clock(int(ms), source.precision), pa.string())
    if source.root.startswith("TIMESTAMP"):
        return _stamp_texts(to_wall_clock(values, source, time_zone), source.precision)
    if source.root == "DECIMAL":
        return each(values, lambda number: format(number, "f"), pa.string())
    return values.cast(pa.string())


def _stamp_texts(moments: Moments, precision: int) -> pa.Array:
    micros = pa.array(moments.micros, mask=moments.is_null)
    front = each(micros, lambda value: format_instant(int(value), " ")[0], pa.string())
    if not precision:
        return front
    fraction = pa.array(moments.micros % 1_000_000 * 1000 + moments.nanos).cast(pa.string())
    digits = pc.utf8_slice_codeunits(pc.utf8_lpad(fraction, 9, "0"), 0, precision)
    return pc.binary_join_element_wise(front, digits, ".")


def _clock(millis: int, precision: int) -> str:
    """Zeros at the end of the fraction are left out, but for the first: `DateTimeUtils.toString`."""
    seconds, rest = divmod(millis, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{clock}.{f'{rest:03d}'[:precision].rstrip('0') or '0'}" if precision else clock


def to_bytes(values: pa.Array, target: DataType) -> pa.Array:
    """BINARY(n) is cut and filled with zeros, VARBINARY(n) is cut."""
    data = values.cast(pa.binary())
    if target.length < _MAX_LENGTH:
        data = pc.binary_slice(data, 0, target.length)
    if target.root == "BINARY":
        padded = pc.binary_join_element_wise(data, pa.scalar(bytes(target.length), pa.binary()), b"")
        data = pc.binary_slice(padded, 0, target.length)
    return data
