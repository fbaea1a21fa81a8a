"""The logical types as Arrow types, and back."""

from __future__ import annotations

import pyarrow as pa

from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

_TO_ARROW: dict[DataType, pa.DataType] = {
    t.STRING: pa.string(),
    t.LONG: pa.int64(),
    t.INTEGER: pa.int32(),
    t.SHORT: pa.int16(),
    t.BYTE: pa.int8(),
    t.FLOAT: pa.float32(),
    t.DOUBLE: pa.float64(),
    t.BOOLEAN: pa.bool_(),
    t.BINARY: pa.binary(),
    t.DATE: pa.date32(),
    t.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    t.TIMESTAMP_NTZ: pa.timestamp("us"),
    t.TIMESTAMP_NANOS: pa.timestamp("ns", tz="UTC"),
    t.TIMESTAMP_NTZ_NANOS: pa.timestamp("ns"),
    # Milliseconds of the day, whatever the precision.
    t.TIME: pa.time32("ms"),
    t.VOID: pa.null(),
    # Arrow has no variant of its own: the two buffers of the Parquet encoding.
    t.VARIANT: pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
}

#: Nothing that is written has them.
_ONE_WAY = (t.VARIANT, t.TIME, t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS)

_FROM_ARROW: dict[pa.DataType, DataType] = {
    **{arrow: ours for ours, arrow in _TO_ARROW.items() if ours not in _ONE_WAY},
    pa.large_string(): t.STRING,
    pa.string_view(): t.STRING,
    pa.large_binary(): t.BINARY,
    pa.binary_view(): t.BINARY,
    pa.date64(): t.DATE,
    # Unsigned types take the next wider signed one, as Spark's Parquet reader does.
    pa.uint8(): t.SHORT,
    pa.uint16(): t.INTEGER,
    pa.uint32(): t.LONG,
    pa.uint64(): Decimal(20, 0),
}


def to_arrow(data_type: DataType) -> pa.DataType:
    """The Arrow type of a logical type; timestamps are microseconds, those with a zone in UTC."""
    if isinstance(data_type, Decimal):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, Array):
        return pa.list_(_field("element", data_type.element, data_type.contains_null))
    if isinstance(data_type, Map):
        if data_type.key == t.VOID:
            raise UnsupportedFeature("a map whose keys are void", code="unsupported-type", features=("void",))
        return pa.map_(to_arrow(data_type.key), _field("value", data_type.value, data_type.value_contains_null))
    if isinstance(data_type, Struct):
        return pa.struct([field_to_arrow(f) for f in data_type.fields])
    return _TO_ARROW[data_type]


def field_to_arrow(f: Field) -> pa.Field:
    return _field(f.name, f.type, f.nullable)


def _field(name: str, data_type: DataType, nullable: bool) -> pa.Field:
    # To Arrow a column that has nothing but nulls may be null, whatever is said of it.
    return pa.field(name, to_arrow(data_type), nullable or data_type == t.VOID)


def schema_to_arrow(schema: Struct) -> pa.Schema:
    return pa.schema([field_to_arrow(f) for f in schema.fields])


def from_arrow(data_type: pa.DataType, column: str = "") -> DataType:
    """The logical type that holds every value of an Arrow type.

    Raises:
        UnsupportedFeature: No logical type can hold it (time of day, interval, union, ...).
    """
    if known := _FROM_ARROW.get(data_type):
        return known
    if pa.types.is_decimal(data_type) and data_type.precision <= 38 and data_type.scale >= 0:
        return Decimal(data_type.precision, data_type.scale)
    if pa.types.is_timestamp(data_type):
        return t.TIMESTAMP_NTZ if data_type.tz is None else t.TIMESTAMP
    if pa.types.is_dictionary(data_type):
        return from_arrow(data_type.value_type, column)
    if pa.types.is_map(data_type):
        return Map(
            from_arrow(data_type.key_type, f"{column}.key"),
            from_arrow(data_type.item_type, f"{column}.value"),
            data_type.item_field.nullable,
        )
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return Array(from_arrow(data_type.value_type, f"{column}.element"), data_type.value_field.nullable)
    if pa.types.is_struct(data_type):
        return Struct(tuple(field_from_arrow(f, column) for f in data_type))
    raise UnsupportedFeature(
        f"Arrow type {data_type} has no counterpart in a table", code="unsupported-type", column=column or None
    )


def field_from_arrow(f: pa.Field, prefix: str = "") -> Field:
    name = f"{prefix}.{f.name}" if prefix else f.name
    return Field(f.name, from_arrow(f.type, name), f.nullable)


def schema_from_arrow(schema: pa.Schema) -> Struct:
    return Struct(tuple(field_from_arrow(f) for f in schema))
