"""Paimon's types as the house's logical types, and back. Lengths, precisions and ids are Paimon's alone."""

from __future__ import annotations

from dataclasses import replace

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import BINARY, CHARACTER, MAX_LENGTH, DataField, DataType
from alluvium.schema import types as t
from alluvium.schema.text_lengths import declared_type, text_limit

_PLAIN = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.BYTE,
    "SMALLINT": t.SHORT,
    "INTEGER": t.INTEGER,
    "BIGINT": t.LONG,
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "DATE": t.DATE,
    "TIME_WITHOUT_TIME_ZONE": t.TIME,
    "BLOB": t.BINARY,
    "VARIANT": t.VARIANT,
    "TIMESTAMP_WITHOUT_TIME_ZONE": t.TIMESTAMP_NTZ,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": t.TIMESTAMP,
    **dict.fromkeys(CHARACTER, t.STRING),
    **dict.fromkeys(BINARY, t.BINARY),
}
#: What Spark has no type for. Times of the day are milliseconds.
_BROUGHT_AS: dict[t.DataType, t.DataType] = {
    t.TIME: t.INTEGER,
    t.TIMESTAMP_NANOS: t.TIMESTAMP,
    t.TIMESTAMP_NTZ_NANOS: t.TIMESTAMP_NTZ,
}
_FROM_PLAIN = {
    t.STRING: DataType("VARCHAR", length=MAX_LENGTH),
    t.BINARY: DataType("VARBINARY", length=MAX_LENGTH),
    t.TIMESTAMP: DataType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=6),
    t.TIMESTAMP_NTZ: DataType("TIMESTAMP_WITHOUT_TIME_ZONE", precision=6),
    **{ours: DataType(root) for root, ours in _PLAIN.items() if root not in CHARACTER | BINARY | {"BLOB"}
       and not root.startswith("TIMESTAMP")},
}  # fmt: skip
#: Digits of a second's fraction that microseconds have.
_MICROS = 6


def to_logical(data_type: DataType) -> t.DataType:
    """The logical type of a type's values.

    Raises:
        UnsupportedFeature: `"unsupported-type"`: GEOMETRY and GEOGRAPHY have none.
    """
    if data_type.root == "DECIMAL":
        return t.Decimal(data_type.precision, data_type.scale)
    if data_type.root == "ROW":
        return t.Struct(tuple(t.Field(f.name, to_logical(f.type), f.type.nullable) for f in data_type.fields))
    if data_type.element is not None:
        element = to_logical(data_type.element)
        if data_type.root == "MULTISET":
            return t.Map(element, t.INTEGER, False)
        return t.Array(element, data_type.element.nullable)
    if data_type.key is not None and data_type.value is not None:
        return t.Map(to_logical(data_type.key), to_logical(data_type.value), data_type.value.nullable)
    known = _PLAIN.get(data_type.root)
    if data_type.root.startswith("TIMESTAMP") and data_type.precision > _MICROS:
        known = t.TIMESTAMP_NTZ_NANOS if known == t.TIMESTAMP_NTZ else t.TIMESTAMP_NANOS
    if known is None:
        raise UnsupportedFeature(f"{data_type} has no logical type", code="unsupported-type")
    return known


def logical_schema(schema: TableSchema) -> t.Struct:
    """The columns of a table as plans know them; errors as for `to_logical`."""
    return t.Struct(tuple(t.Field(f.name, to_logical(f.type), f.type.nullable) for f in schema.fields))


def fields_from_logical(schema: t.Struct) -> tuple[DataField, ...]:
    """The columns of a logical schema; all have id 0, to be numbered.

    Raises:
        UnsupportedFeature: `"unsupported-type"`: a column of nulls only (`void`).
    """
    return tuple(_field(f) for f in schema.fields)


def from_logical(data_type: t.DataType, column: str = "") -> DataType:
    """The type that holds every value of a logical type; errors as for `fields_from_logical`."""
    if isinstance(data_type, t.Decimal):
        return DataType("DECIMAL", precision=data_type.precision, scale=data_type.scale)
    if isinstance(data_type, t.Array):
        return DataType("ARRAY", element=from_logical(data_type.element, column).with_nullable(data_type.contains_null))
    if isinstance(data_type, t.Map):
        key = from_logical(data_type.key, column).with_nullable(False)
        value = from_logical(data_type.value, column).with_nullable(data_type.value_contains_null)
        return DataType("MAP", key=key, value=value)
    if isinstance(data_type, t.Struct):
        return DataType("ROW", fields=fields_from_logical(data_type))
    known = _FROM_PLAIN.get(data_type)
    if known is None:
        raise UnsupportedFeature(
            f"no Paimon table can hold a column of type {data_type}", code="unsupported-type", column=column or None
        )
    return known


def _field(f: t.Field) -> DataField:
    comment = f.metadata.get("comment")
    data_type = from_logical(f.type, f.name).with_nullable(f.nullable)
    declared = declared_type(f)
    data_type = data_type if declared is None else _with_lengths(data_type, declared)
    return DataField(0, f.name, data_type, comment if isinstance(comment, str) else None)


def _with_lengths(data_type: DataType, declared: t.DataType) -> DataType:
    """A type whose texts are as long as was declared (`schema.text_lengths.declared_type`)."""
    if (limit := text_limit(declared)) is not None and data_type.root == "VARCHAR":
        return replace(data_type, root=limit[0].upper(), length=limit[1])
    if isinstance(declared, t.Struct):
        known = {f.name: f.type for f in declared.fields}
        fields = (replace(f, type=_with_lengths(f.type, known.get(f.name, t.VOID))) for f in data_type.fields)
        return replace(data_type, fields=tuple(fields))
    if isinstance(declared, t.Array) and data_type.element is not None:
        return replace(data_type, element=_with_lengths(data_type.element, declared.element))
    if isinstance(declared, t.Map) and data_type.key is not None and data_type.value is not None:
        key, value = _with_lengths(data_type.key, declared.key), _with_lengths(data_type.value, declared.value)
        return replace(data_type, key=key, value=value)
    return data_type


def declared_text(data_type: DataType) -> str | None:
    """What Spark keeps beside a column of a type (`schema.ddl.CHAR_VARCHAR`); None: no text in it has a length."""
    return _declared(data_type) if _has_length(data_type) else None


def _has_length(data_type: DataType) -> bool:
    is_limited = data_type.root in CHARACTER and data_type.length < MAX_LENGTH
    return is_limited or any(map(_has_length, data_type.children()))


def _declared(data_type: DataType) -> str:
    if data_type.root == "ROW":
        members = (f"`{f.name.replace('`', '``')}`:{_declared(f.type)}" for f in data_type.fields)
        return f"struct<{','.join(members)}>"
    if data_type.key is not None and data_type.value is not None:
        return f"map<{_declared(data_type.key)},{_declared(data_type.value)}>"
    if data_type.element is not None:
        element = _declared(data_type.element)
        return f"map<{element},int>" if data_type.root == "MULTISET" else f"array<{element}>"
    if data_type.root in CHARACTER and data_type.length < MAX_LENGTH:
        return f"{data_type.root.lower()}({data_type.length})"
    return str(as_brought(to_logical(data_type)))


def written_schema(schema: TableSchema) -> t.Struct:
    """The columns that rows bring: as they are read by Spark, so that what was read can be written again."""
    return t.Struct(tuple(t.Field(f.name, as_brought(to_logical(f.type)), f.type.nullable) for f in schema.fields))


def as_brought(kind: t.DataType) -> t.DataType:
    """A type under which rows bring the values of another."""
    if isinstance(kind, t.Struct):
        return t.Struct(tuple(t.Field(f.name, as_brought(f.type), f.nullable) for f in kind.fields))
    if isinstance(kind, t.Array):
        return t.Array(as_brought(kind.element), kind.contains_null)
    if isinstance(kind, t.Map):
        return t.Map(as_brought(kind.key), as_brought(kind.value), kind.value_contains_null)
    return _BROUGHT_AS.get(kind, kind)
