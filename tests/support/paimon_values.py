"""Values of Paimon's test vectors, as their JSON has them, in Arrow."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.type_json import parse_type
from alluvium.paimon.schema.types import DataType
from alluvium.paimon.terms.java_text import float_text
from alluvium.schema.arrow import to_arrow


def parse_column_type(node: object) -> DataType:
    return parse_type(node)


def array_of(values: list[Any], kind: DataType) -> pa.Array:
    """Timestamps come as text of nanoseconds, dates as days, times as milliseconds, binary as hex, numbers as text."""
    arrow = to_arrow(to_logical(kind))
    if pa.types.is_timestamp(arrow):
        step = 1 if arrow.unit == "ns" else 1000
        return pa.array([None if v is None else int(v) // step for v in values], pa.int64()).cast(arrow)
    if pa.types.is_date(arrow) or pa.types.is_time(arrow):
        return pa.array(values, pa.int32()).cast(arrow)
    if pa.types.is_floating(arrow):
        return pa.array([None if v is None else float(v.replace("Infinity", "inf")) for v in values], arrow)
    if pa.types.is_decimal(arrow):
        return pa.array([None if v is None else Decimal(v) for v in values], arrow)
    if pa.types.is_binary(arrow):
        return pa.array([None if v is None else bytes.fromhex(v) for v in values], arrow)
    return pa.array(values, arrow)


def json_of(value: pa.Scalar, kind: DataType) -> Any:
    """The inverse of `array_of` for one value."""
    if not value.is_valid:
        return None
    arrow = value.type
    if pa.types.is_timestamp(arrow):
        return str(value.value * (1 if arrow.unit == "ns" else 1000))
    if pa.types.is_date(arrow) or pa.types.is_time(arrow):
        return value.value
    plain = value.as_py()
    if isinstance(plain, bytes):
        return plain.hex()
    if isinstance(plain, float):
        return float_text(plain, kind.root == "FLOAT")
    return format(plain, "f") if isinstance(plain, Decimal) else plain
