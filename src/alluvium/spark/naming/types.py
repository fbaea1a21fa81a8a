"""Our types as PySpark's, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from pyspark.sql import DataFrame
from pyspark.sql import types as s

from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

_TO_SPARK: Mapping[DataType, s.DataType] = {
    t.STRING: s.StringType(),
    t.LONG: s.LongType(),
    t.INTEGER: s.IntegerType(),
    t.SHORT: s.ShortType(),
    t.BYTE: s.ByteType(),
    t.FLOAT: s.FloatType(),
    t.DOUBLE: s.DoubleType(),
    t.BOOLEAN: s.BooleanType(),
    t.BINARY: s.BinaryType(),
    t.DATE: s.DateType(),
    t.TIMESTAMP: s.TimestampType(),
    t.TIMESTAMP_NTZ: s.TimestampNTZType(),
    t.VOID: s.NullType(),
    t.VARIANT: s.VariantType(),
}
#: What Spark has no type for is read as the nearest that it has.
_READ_AS: Mapping[DataType, s.DataType] = {
    t.TIME: s.IntegerType(),
    t.TIMESTAMP_NANOS: s.TimestampType(),
    t.TIMESTAMP_NTZ_NANOS: s.TimestampNTZType(),
}
_FROM_SPARK: Mapping[type[s.DataType], DataType] = {
    **{type(spark): ours for ours, spark in _TO_SPARK.items()},
    # Spark itself stores char(n) and varchar(n) as strings, and the length in the field's metadata.
    s.CharType: t.STRING,
    s.VarcharType: t.STRING,
}


@overload
def to_spark(data_type: Struct) -> s.StructType: ...
@overload
def to_spark(data_type: DataType) -> s.DataType: ...
def to_spark(data_type: DataType) -> s.DataType:
    """The PySpark type; field metadata and nullability are kept."""
    if isinstance(data_type, Decimal):
        return s.DecimalType(data_type.precision, data_type.scale)
    if isinstance(data_type, Array):
        return s.ArrayType(to_spark(data_type.element), data_type.contains_null)
    if isinstance(data_type, Map):
        return s.MapType(to_spark(data_type.key), to_spark(data_type.value), data_type.value_contains_null)
    if isinstance(data_type, Struct):
        return s.StructType(
            [s.StructField(f.name, to_spark(f.type), f.nullable, dict(f.metadata)) for f in data_type.fields]
        )
    return _TO_SPARK[data_type] if data_type in _TO_SPARK else _READ_AS[data_type]


def show_not_null(frame: DataFrame, schema: Struct) -> DataFrame:
    """The same rows, whose `schema` in Python says of each field whether the table lets it be null.

    Spark itself goes on taking all fields for nullable: it would believe files that do not keep the promise.
    """
    if _promises(schema):
        # PySpark asks the JVM once, and keeps the answer here.
        frame.__dict__["schema"] = _as_declared(frame.schema, schema)
    return frame


def _promises(data_type: DataType) -> bool:
    """Whether something in a type is never null."""
    if isinstance(data_type, Struct):
        return any(not f.nullable or _promises(f.type) for f in data_type.fields)
    if isinstance(data_type, Array):
        return not data_type.contains_null or _promises(data_type.element)
    if isinstance(data_type, Map):
        return not data_type.value_contains_null or _promises(data_type.key) or _promises(data_type.value)
    return False


def _as_declared(known: s.StructType, schema: Struct) -> s.StructType:
    by_name = {f.name: f for f in schema.fields}
    return s.StructType(
        [
            s.StructField(f.name, _declared(f.dataType, by_name[f.name].type), by_name[f.name].nullable, f.metadata)
            if f.name in by_name
            else f
            for f in known.fields
        ]
    )


def _declared(known: s.DataType, declared: DataType) -> s.DataType:
    if isinstance(known, s.StructType) and isinstance(declared, Struct):
        return _as_declared(known, declared)
    if isinstance(known, s.ArrayType) and isinstance(declared, Array):
        return s.ArrayType(_declared(known.elementType, declared.element), declared.contains_null)
    if isinstance(known, s.MapType) and isinstance(declared, Map):
        key, value = _declared(known.keyType, declared.key), _declared(known.valueType, declared.value)
        return s.MapType(key, value, declared.value_contains_null)
    return known


@overload
def from_spark(data_type: s.StructType, column: str = "") -> Struct: ...
@overload
def from_spark(data_type: s.DataType, column: str = "") -> DataType: ...
def from_spark(data_type: s.DataType, column: str = "") -> DataType:
    """Our type of a PySpark type; `column` is where it stands, for the error.

    Raises:
        UnsupportedFeature: `"unsupported-type"`: no table can hold it (intervals, time of day, ...).
    """
    if isinstance(data_type, s.UserDefinedType):
        return from_spark(data_type.sqlType(), column)
    if isinstance(data_type, s.DecimalType):
        return Decimal(data_type.precision, data_type.scale)
    if isinstance(data_type, s.ArrayType):
        return Array(from_spark(data_type.elementType, f"{column}.element"), data_type.containsNull)
    if isinstance(data_type, s.MapType):
        return Map(
            from_spark(data_type.keyType, f"{column}.key"),
            from_spark(data_type.valueType, f"{column}.value"),
            data_type.valueContainsNull,
        )
    if isinstance(data_type, s.StructType):
        return Struct(tuple(_field(f, f"{column}.{f.name}" if column else f.name) for f in data_type.fields))
    known = _FROM_SPARK.get(type(data_type))
    if known is None:
        raise UnsupportedFeature(
            f"no table can hold values of the Spark type {data_type.simpleString()}",
            code="unsupported-type",
            column=column or None,
            hint="cast the column to a type that tables have, such as string or bigint",
        )
    return known


def _field(f: s.StructField, column: str) -> Field:
    return Field(f.name, from_spark(f.dataType, column), f.nullable, dict(f.metadata or {}))


def from_spark_declared(schema: s.StructType) -> Struct:
    """Our columns of PySpark's, whose types may be of texts of limited lengths; errors as of `from_spark`."""
    fields = []
    for f in schema.fields:
        metadata = dict(f.metadata or {})
        if has_length(f.dataType):
            metadata[CHAR_VARCHAR] = _declared_text(f.dataType)
        fields.append(Field(f.name, from_spark(f.dataType, f.name), f.nullable, metadata))
    return Struct(tuple(fields))


def has_length(data_type: s.DataType) -> bool:
    """Whether texts in a type are of a limited length."""
    if isinstance(data_type, s.StructType):
        return any(has_length(f.dataType) for f in data_type.fields)
    if isinstance(data_type, s.ArrayType):
        return has_length(data_type.elementType)
    if isinstance(data_type, s.MapType):
        return has_length(data_type.keyType) or has_length(data_type.valueType)
    return isinstance(data_type, (s.CharType, s.VarcharType))


def _declared_text(data_type: s.DataType) -> str:
    """A type as SQL has it; PySpark itself leaves names as they are, be they words of SQL or not."""
    if isinstance(data_type, s.StructType):
        members = (f"`{f.name.replace('`', '``')}`:{_declared_text(f.dataType)}" for f in data_type.fields)
        return f"struct<{','.join(members)}>"
    if isinstance(data_type, s.ArrayType):
        return f"array<{_declared_text(data_type.elementType)}>"
    if isinstance(data_type, s.MapType):
        return f"map<{_declared_text(data_type.keyType)},{_declared_text(data_type.valueType)}>"
    return data_type.simpleString()
