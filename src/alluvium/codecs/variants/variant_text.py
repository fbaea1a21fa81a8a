"""Variants as JSON text, for people: cell by cell, so for rows that are shown.

Specification: Parquet, VariantEncoding.md. The text is that of Spark's `to_json` in UTC, but for the digits of floats.
"""

from __future__ import annotations

import base64
import itertools
import uuid
from dataclasses import dataclass
from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa

from alluvium.codecs.temporal_text import DAY_US, format_date, format_instant
from alluvium.codecs.variants.variant_encoding import (
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    NULL,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    STRING,
    TIME_NTZ,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
    TRUE,
    UUID,
    VERSION,
    malformed,
)
from alluvium.schema.types import VARIANT, Array, DataType, Map, Struct
from alluvium.schema.walk import holds

#: Arrays and objects within one another.
MAX_DEPTH = 100

_CONSTANTS = {NULL: "null", TRUE: "true", FALSE: "false"}
#: Bytes of what follows the header.
_WIDTHS = {
    **{INT8 + step: 1 << step for step in range(4)},
    DOUBLE: 8,
    DECIMAL4: 5,
    DECIMAL8: 9,
    DECIMAL16: 17,
    DATE: 4,
    FLOAT: 4,
    UUID: 16,
    TIME_NTZ: 8,
    **dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS), 8),
}
_NANOS = (TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS)


def show_variants(table: pa.Table, schema: Struct) -> pa.Table:
    """The table with every variant, at any depth, as JSON text.

    Args:
        table: Some or all columns of a table with this schema, and perhaps others.
        schema: Logical types by name.

    Raises:
        CorruptTable: Bytes that are no variant, code `malformed-variant`.
    """
    for index, name in enumerate(table.column_names):
        f = schema.find(name)
        if f is not None and holds(f.type, VARIANT):
            column = table.column(index)
            chunks = column.chunks or [pa.array([], column.type)]
            table = table.set_column(
                index, name, pa.chunked_array([format_variants(chunk, f.type) for chunk in chunks])
            )
    return table


def format_variants(values: pa.Array, data_type: DataType) -> pa.Array:
    """A column with text in the place of every variant in it."""
    if data_type == VARIANT:
        metadata, value = values.flatten()
        pairs = zip(metadata.to_pylist(), value.to_pylist(), strict=True)
        return pa.array([None if v is None else format_variant(m, v) for m, v in pairs], pa.string())
    if not holds(data_type, VARIANT):
        return values
    whole = values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])
    if isinstance(data_type, Struct):
        members = [format_variants(v, f.type) for v, f in zip(values.flatten(), data_type.fields, strict=True)]
        return pa.StructArray.from_arrays(members, names=data_type.names, mask=values.is_null())
    if isinstance(data_type, Array):
        elements = format_variants(whole.values, data_type.element)
        return pa.ListArray.from_arrays(whole.offsets, elements, mask=whole.is_null())
    assert isinstance(data_type, Map)
    keys, items = format_variants(whole.keys, data_type.key), format_variants(whole.items, data_type.value)
    return pa.MapArray.from_arrays(whole.offsets, keys, items, mask=whole.is_null())


def format_variant(metadata: bytes, value: bytes) -> str:
    """One variant as JSON; what JSON has no type for (times, binaries, uuids) is text.

    Raises:
        CorruptTable: The bytes are no variant, or nested too deeply, code `malformed-variant`.
    """
    try:
        return _Reader(_names(metadata), value, [len(value)]).text(0, 0)
    except (IndexError, UnicodeDecodeError):
        raise malformed("it is cut off, or holds text that is not UTF-8") from None


def _number(data: bytes, start: int, width: int) -> int:
    if start + width > len(data):
        raise malformed("it is cut off")
    return int.from_bytes(data[start : start + width], "little")


def _names(metadata: bytes) -> list[bytes]:
    if not metadata or metadata[0] & 0x0F != VERSION:
        raise malformed(f"its metadata is not of version {VERSION}")
    width = (metadata[0] >> 6) + 1
    size = _number(metadata, 1, width)
    texts = 1 + width * (size + 2)
    if texts > len(metadata):
        raise malformed("its metadata has fewer bytes than names")
    offsets = [_number(metadata, 1 + width * (1 + i), width) for i in range(size + 1)]
    if any(low > high for low, high in itertools.pairwise(offsets)) or texts + offsets[-1] > len(metadata):
        raise malformed("the offsets in its metadata lead out of it")
    return [metadata[texts + low : texts + high] for low, high in itertools.pairwise(offsets)]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values of one variant.

    Attributes:
        names: Of its metadata.
        data: Its value.
        left: Bytes that may still be read: values that share bytes could otherwise be more than any memory holds.
    """

    names: list[bytes]
    data: bytes
    left: list[int]

    def text(self, start: int, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise malformed(f"more than {MAX_DEPTH} levels of nesting")
        header = self.take(start, 1)[0]
        kind, detail = header & 3, header >> 2
        if kind == PRIMITIVE:
            return self.primitive(detail, start + 1)
        if kind == SHORT_STRING:
            return _quoted(self.take(start + 1, detail).decode())
        return self.members(start, detail, kind == OBJECT, depth)

    def take(self, start: int, length: int) -> bytes:
        self.left[0] -= length
        if self.left[0] < 0 or start + length > len(self.data):
            raise malformed("it is cut off, or its values lie over one another")
        return self.data[start : start + length]

    def members(self, start: int, detail: int, is_object: bool, depth: int) -> str:
        offset_width = (detail & 3) + 1
        id_width = (detail >> 2 & 3) + 1 if is_object else 0
        count_width = 4 if detail >> (4 if is_object else 2) & 1 else 1
        count = _number(self.data, start + 1, count_width)
        ids = start + 1 + count_width
        offsets = ids + count * id_width
        values = offsets + (count + 1) * offset_width
        self.take(start + 1, values - start - 1)
        texts = []
        for i in range(count):
            place = values + _number(self.data, offsets + i * offset_width, offset_width)
            text = self.text(place, depth + 1)
            if is_object:
                name = self.names[_number(self.data, ids + i * id_width, id_width)]
                text = f"{_quoted(name.decode())}:{text}"
            texts.append(text)
        return f"{{{','.join(texts)}}}" if is_object else f"[{','.join(texts)}]"

    def primitive(self, kind: int, start: int) -> str:
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in (STRING, BINARY):
            held = self.take(start + 4, _number(self.data, start, 4))
            return _quoted(held.decode() if kind == STRING else base64.b64encode(held).decode("ascii"))
        if kind not in _WIDTHS:
            raise malformed(f"its type {kind} is not in the specification we know")
        return _primitive_text(kind, self.take(start, _WIDTHS[kind]))


def _primitive_text(kind: int, held: bytes) -> str:
    if INT8 <= kind <= INT64:
        return str(int.from_bytes(held, "little", signed=True))
    if kind in (DOUBLE, FLOAT):
        number = np.frombuffer(held, "<f8" if kind == DOUBLE else "<f4")[0]
        return str(number) if np.isfinite(number) else _quoted(_NOT_FINITE[str(number)])
    if kind in (DECIMAL4, DECIMAL8, DECIMAL16):
        unscaled = int.from_bytes(held[1:], "little", signed=True)
        if held[0] > 38:
            raise malformed(f"a decimal has the scale {held[0]}")
        exact = Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -held[0]))
        text = format(exact, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if kind == UUID:
        return _quoted(str(uuid.UUID(bytes=held)))
    return _quoted(_time_text(kind, int.from_bytes(held, "little", signed=True)))


def _time_text(kind: int, count: int) -> str:
    """Date, time, or both, with as many digits behind the second as it takes."""
    if kind == DATE:
        return format_date(count)
    if kind == TIME_NTZ and not 0 <= count < DAY_US:
        raise malformed("a time of day lies outside of the day")
    micros, nanos = divmod(count, 1000) if kind in _NANOS else (count, 0)
    text, fraction = format_instant(micros, " ")
    digits = f"{fraction}{nanos:03d}".rstrip("0")
    text = f"{text}.{digits}" if digits else text
    if kind == TIME_NTZ:
        return text.partition(" ")[2]
    return f"{text}+00:00" if kind in (TIMESTAMP, TIMESTAMP_NANOS) else text


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
