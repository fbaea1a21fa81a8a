"""Partition values: the text in `add.partitionValues` and the typed values it stands for.

Specification: Delta protocol, "Partition Value Serialization". The form that is written is that of delta-spark 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.temporal_text import (
    format_date,
    format_instant,
    parse_date,
    parse_timestamp,
    parse_timestamp_ntz,
    parse_zone,
)
from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

_BOOLEANS = {"true": True, "t": True, "yes": True, "y": True, "1": True,
             "false": False, "f": False, "no": False, "n": False, "0": False}  # fmt: skip
# The default context of 28 digits would round decimals silently.
_EXACT = Context(prec=100)


def partition_column(files: pa.Table, name: str) -> pa.Array:
    """The text of one partition column, one value a file; null where the file's map lacks the key.

    Args:
        files: A table of `add` actions with the column `partitionValues` (`map<string, string>`).
        name: The key: the physical name of the column.
    """
    looked_up = pc.map_lookup(files["partitionValues"], pa.scalar(name, pa.string()), "last")
    return _whole(looked_up)


def parse_partition_values(
    texts: pa.Array, data_type: DataType, time_zone: str = "UTC", column: str | None = None
) -> pa.Array:
    """Typed values of partition texts; null and `""` are null.

    Args:
        texts: Strings as the log has them.
        data_type: The column's type today; text of a narrower type that it was widened from parses as well.
        time_zone: Zone of timestamps whose text names none.
        column: Name for the error.

    Raises:
        CorruptTable: A text is no value of the type; code `invalid-partition-value`.
        UnsupportedFeature: No column of such a type can be a partition column.
    """
    whole = _whole(texts)
    # "An empty string for any type translates to a `null` partition value."
    whole = pc.if_else(pc.equal(whole, ""), pa.scalar(None, pa.string()), whole)
    arrow_type = to_arrow(data_type)
    if data_type == t.STRING or data_type == t.BINARY:
        return whole.cast(arrow_type)
    if data_type == t.VOID:
        return pa.nulls(len(whole))
    parse = _parser(data_type, time_zone)
    encoded = whole.dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    values = [parse(text) for text in distinct]
    if None in values:
        raise CorruptTable(
            f"partition value {distinct[values.index(None)]!r} is not of type {data_type}",
            code="invalid-partition-value",
            column=column,
            hint="a writer that does not follow the protocol put it into the log; rewrite the files of that partition",
        )
    return _typed(values, arrow_type).take(encoded.indices)


def format_partition_values(values: pa.Array, data_type: DataType) -> pa.Array:
    """The texts that the log gets, as delta-spark 4.4 writes them; null and empty strings become null.

    Raises:
        InvalidRequest: A binary value that is not UTF-8, which the log cannot hold.
        UnsupportedFeature: No column of such a type can be a partition column.
    """
    whole = _whole(values).cast(to_arrow(data_type))
    if data_type == t.VOID:
        return pa.nulls(len(whole), pa.string())
    if data_type == t.STRING or data_type == t.BINARY:
        try:
            texts = whole.cast(pa.string())
        except pa.ArrowInvalid:
            raise InvalidRequest(
                "a binary partition value that is not UTF-8 cannot be stored in the log",
                code="unrepresentable-partition-value",
                hint="partition by hex(column) instead",
            ) from None
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    encoded = whole.dictionary_encode()
    texts = pa.array(_format_distinct(encoded.dictionary, data_type), pa.string())
    return texts.take(encoded.indices)


def log_partition_text(texts: pa.Array, data_type: DataType) -> pa.Array:
    """The text for the log of the (decoded) text in a directory name that Spark wrote with `timeZone=UTC`.

    Only timestamps differ: directories have `2024-01-01 00:00:00`, the log an instant in UTC.
    """
    whole = _whole(texts)
    if data_type == t.TIMESTAMP:
        return format_partition_values(parse_partition_values(whole, data_type), data_type)
    return pc.if_else(pc.equal(whole, ""), pa.scalar(None, pa.string()), whole)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _typed(values: list[object], arrow_type: pa.DataType) -> pa.Array:
    if pa.types.is_date(arrow_type):
        return pa.array(values, pa.int32()).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return pa.array(values, pa.int64()).cast(arrow_type)
    if arrow_type == pa.float32():
        # Text to float in one step: through a double it would be rounded twice.
        return pa.array([str(value) for value in values], pa.string()).cast(arrow_type)
    return pa.array(values, arrow_type)


def _parser(data_type: DataType, time_zone: str) -> Callable[[str], object]:
    if isinstance(data_type, DecimalType):
        return lambda text: _parse_decimal(text, data_type)
    if data_type in t.INTEGRAL:
        bits = {t.BYTE: 8, t.SHORT: 16, t.INTEGER: 32, t.LONG: 64}[data_type]
        return lambda text: _parse_integer(text, bits)
    if data_type == t.FLOAT:
        return lambda text: None if _parse_float(text) is None else text.strip()
    if data_type == t.TIMESTAMP:
        zone = parse_zone(time_zone)
        return lambda text: _in_range(parse_timestamp(text, zone), 64)
    simple: dict[DataType, Callable[[str], object]] = {
        t.DOUBLE: _parse_float,
        t.BOOLEAN: lambda text: _BOOLEANS.get(text.strip().lower()),
        t.DATE: lambda text: _in_range(parse_date(text), 32),
        t.TIMESTAMP_NTZ: lambda text: _in_range(parse_timestamp_ntz(text), 64),
    }
    if data_type not in simple:
        raise UnsupportedFeature(f"a column of type {data_type} cannot be a partition column", code="partition-type")
    return simple[data_type]


def _in_range(value: int | None, bits: int) -> int | None:
    return value if value is not None and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _parse_integer(text: str, bits: int) -> int | None:
    stripped = text.strip()
    # int() would take digits of other scripts and underscores.
    if not stripped.isascii() or not stripped.lstrip("+-").isdigit() or len(stripped) > 40:
        return None
    try:
        return _in_range(int(stripped), bits)
    except ValueError:
        return None


def _parse_float(text: str) -> float | None:
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _parse_decimal(text: str, data_type: DecimalType) -> Decimal | None:
    if "_" in text or not text.isascii():
        return None
    try:
        value = Decimal(text.strip()).quantize(Decimal((0, (1,), -data_type.scale)), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        return None
    fits = value.is_finite() and len(value.as_tuple().digits) <= data_type.precision
    return value if fits else None


def _format_distinct(distinct: pa.Array, data_type: DataType) -> list[str]:
    if isinstance(data_type, DecimalType):
        return [format(value, "f") for value in distinct.to_pylist()]
    if data_type in t.INTEGRAL or data_type == t.BOOLEAN:
        texts: list[str] = distinct.cast(pa.string()).to_pylist()
        return texts
    if data_type in t.FLOATING:
        shortest = distinct.cast(pa.string()).to_pylist()
        exact = distinct.to_pylist()
        return [format_java_float(float(text), value) for text, value in zip(shortest, exact, strict=True)]
    if data_type == t.DATE:
        return [format_date(days) for days in distinct.cast(pa.int32()).to_pylist()]
    if data_type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return [_format_timestamp(micros, data_type) for micros in distinct.cast(pa.int64()).to_pylist()]
    raise UnsupportedFeature(f"a column of type {data_type} cannot be a partition column", code="partition-type")


def _format_timestamp(micros: int, data_type: DataType) -> str:
    if data_type == t.TIMESTAMP:
        seconds, fraction = format_instant(micros, "T")
        return f"{seconds}.{fraction}Z"
    seconds, fraction = format_instant(micros, " ")
    digits = fraction.rstrip("0")
    return f"{seconds}.{digits}" if digits else seconds


def format_java_float(shortest: float, exact: float) -> str:
    """A float as Java prints it: `1.5`, `1.0E7`, `4.9E-324`, `NaN`, `-Infinity`.

    Args:
        shortest: The double whose shortest decimal form has the digits to print.
        exact: The value itself, for numbers of a single digit: Java then takes the nearest two digits.
    """
    if shortest != shortest:
        return "NaN"
    if shortest in (float("inf"), float("-inf")):
        return "Infinity" if shortest > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(shortest)).as_tuple()
    point = len(digits) + int(exponent)
    text = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not text:
        return "-0.0" if sign else "0.0"
    point -= len(digits) - len("".join(map(str, digits)).lstrip("0"))
    prefix = "-" if sign else ""
    if 1e-3 <= abs(shortest) < 1e7:
        padded = text.ljust(point, "0") if point > 0 else "0" * (1 - point) + text
        split = max(point, 1)
        return f"{prefix}{padded[:split]}.{padded[split:] or '0'}"
    if len(text) == 1:
        two, power = f"{abs(exact):.1e}".split("e")
        return f"{prefix}{two}E{int(power)}"
    return f"{prefix}{text[0]}.{text[1:]}E{point - 1}"
