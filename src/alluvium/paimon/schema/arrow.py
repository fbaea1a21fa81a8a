"""Paimon's types as Arrow's, and back.

TIMESTAMP(0-3) are milliseconds, (4-6) microseconds, (7-9) nanoseconds, those with local time zone in UTC; TIME is
`time32[ms]`, MULTISET a map to counts, BLOB binary.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.schema.types import MAX_LENGTH, TIMESTAMPS, DataField, DataType

_PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.binary(),
    "GEOMETRY": pa.binary(),
    "GEOGRAPHY": pa.binary(),
    "DATE": pa.date32(),
    "TIME_WITHOUT_TIME_ZONE": pa.time32("ms"),
    "VARIANT": pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]),
}
_UNITS = ("ms", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_FROM_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): DataType("BOOLEAN"),
    pa.int8(): DataType("TINYINT"),
    pa.int16(): DataType("SMALLINT"),
    pa.int32(): DataType("INTEGER"),
    pa.int64(): DataType("BIGINT"),
    # Unsigned numbers take the next wider type, which holds them all.
    pa.uint8(): DataType("SMALLINT"),
    pa.uint16(): DataType("INTEGER"),
    pa.uint32(): DataType("BIGINT"),
    pa.uint64(): DataType("DECIMAL", precision=20),
    pa.float16(): DataType("FLOAT"),
    pa.float32(): DataType("FLOAT"),
    pa.float64(): DataType("DOUBLE"),
    pa.date32(): DataType("DATE"),
    pa.date64(): DataType("DATE"),
    pa.time32("s"): DataType("TIME_WITHOUT_TIME_ZONE"),
    pa.time32("ms"): DataType("TIME_WITHOUT_TIME_ZONE", precision=3),
    **{t: DataType("VARCHAR", length=MAX_LENGTH) for t in (pa.string(), pa.large_string(), pa.string_view())},
    **{t: DataType("VARBINARY", length=MAX_LENGTH) for t in (pa.binary(), pa.large_binary(), pa.binary_view())},
}


def to_arrow(t: DataType) -> pa.DataType:
    """The Arrow type of a type's values."""
    if t.root == "DECIMAL":
        return pa.decimal128(t.precision, t.scale)
    if t.root in TIMESTAMPS:
        zone = "UTC" if t.root == "TIMESTAMP_WITH_LOCAL_TIME_ZONE" else None
        return pa.timestamp(_UNITS[t.precision], zone)
    if t.root == "ROW":
        return pa.struct([pa.field(f.name, to_arrow(f.type), f.type.nullable) for f in t.fields])
    if t.element is not None:
        element = pa.field("element", to_arrow(t.element), t.element.nullable)
        return (
            pa.map_(element.type, pa.field("value", pa.int32(), False)) if t.root == "MULTISET" else pa.list_(element)
        )
    if t.key is not None and t.value is not None:
        return pa.map_(to_arrow(t.key), pa.field("value", to_arrow(t.value), t.value.nullable))
    return _PLAIN[t.root]


def schema_to_arrow(fields: Iterable[DataField]) -> pa.Schema:
    return pa.schema([pa.field(f.name, to_arrow(f.type), f.type.nullable) for f in fields])


def from_arrow(t: pa.DataType, column: str = "") -> DataType:
    """The type that holds every value of an Arrow type; fields of structs all have id 0, to be numbered.

    Raises:
        UnsupportedFeature: `"unsupported-type"`: no type holds them.
    """
    if known := _FROM_PLAIN.get(t):
        return known
    if pa.types.is_decimal(t) and t.precision <= 38 and 0 <= t.scale <= t.precision:
        return DataType("DECIMAL", precision=t.precision, scale=t.scale)
    if pa.types.is_timestamp(t):
        root = "TIMESTAMP_WITHOUT_TIME_ZONE" if t.tz is None else "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
        return DataType(root, precision=_PRECISIONS[t.unit])
    if pa.types.is_fixed_size_binary(t) and t.byte_width > 0:
        return DataType("BINARY", length=t.byte_width)
    if pa.types.is_dictionary(t):
        return from_arrow(t.value_type, column)
    if pa.types.is_map(t):
        key = from_arrow(t.key_type, f"{column}.key").with_nullable(False)
        value = from_arrow(t.item_type, f"{column}.value").with_nullable(t.item_field.nullable)
        return DataType("MAP", key=key, value=value)
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        element = from_arrow(t.value_type, f"{column}.element")
        return DataType("ARRAY", element=element.with_nullable(t.value_field.nullable))
    if pa.types.is_struct(t):
        return DataType("ROW", fields=tuple(_field(f, f"{column}.{f.name}") for f in t))
    raise UnsupportedFeature(
        f"no Paimon table can hold values of the Arrow type {t}",
        code="unsupported-type",
        column=column or None,
        hint="cast the column, e.g. a time of day to time32('ms')",
    )


def fields_from_arrow(schema: pa.Schema) -> tuple[DataField, ...]:
    """The columns of an Arrow schema; all have id 0, to be numbered."""
    return tuple(_field(f, f.name) for f in schema)


def _field(f: pa.Field, column: str) -> DataField:
    return DataField(0, f.name, from_arrow(f.type, column).with_nullable(f.nullable))
