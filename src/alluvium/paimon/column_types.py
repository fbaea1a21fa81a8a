"""Paimon's column types as the reader needs them, and the logical types that their values have.

Specification: `org.apache.paimon.types`; schema files spell them as text or as objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

#: Digits of a second's fraction that microseconds have.
_MICROS = 6

_LOGICAL: dict[str, DataType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.BYTE,
    "SMALLINT": t.SHORT,
    "INTEGER": t.INTEGER,
    "BIGINT": t.LONG,
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "CHAR": t.STRING,
    "VARCHAR": t.STRING,
    "BINARY": t.BINARY,
    "VARBINARY": t.BINARY,
    "BLOB": t.BINARY,
    "DATE": t.DATE,
    "TIME_WITHOUT_TIME_ZONE": t.TIME,
    "VARIANT": t.VARIANT,
}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type by its root and what the root takes.

    Attributes:
        root: Paimon's `DataTypeRoot`, e.g. `INTEGER`, `TIMESTAMP_WITH_LOCAL_TIME_ZONE`.
        nullable: Whether null is a value.
        length: Of CHAR, VARCHAR, BINARY, VARBINARY, VECTOR.
        precision: Of DECIMAL, TIME and the timestamps.
        scale: Of DECIMAL.
        element: Of ARRAY, VECTOR, MULTISET.
        key: Of MAP.
        value: Of MAP.
        fields: Of ROW.
    """

    root: str
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    element: ColumnType | None = None
    key: ColumnType | None = None
    value: ColumnType | None = None
    fields: tuple[ColumnField, ...] = ()

    @property
    def shape(self) -> ColumnType:
        """The type without its own nullability, for comparisons."""
        return ColumnType(
            self.root, True, self.length, self.precision, self.scale, self.element, self.key, self.value, self.fields
        )


@dataclass(frozen=True, slots=True)
class ColumnField:
    """A column, or a field of a row type; `id` stays the same through renames."""

    id: int
    name: str
    type: ColumnType


def logical_type(column: ColumnType) -> DataType:
    """The type of a column's values in plans.

    Raises:
        UnsupportedFeature: No plan can carry it (GEOMETRY, GEOGRAPHY).
    """
    if column.root in _LOGICAL:
        return _LOGICAL[column.root]
    if column.root == "DECIMAL":
        return Decimal(column.precision, column.scale)
    if column.root == "TIMESTAMP_WITHOUT_TIME_ZONE":
        return t.TIMESTAMP_NTZ if column.precision <= _MICROS else t.TIMESTAMP_NTZ_NANOS
    if column.root == "TIMESTAMP_WITH_LOCAL_TIME_ZONE":
        return t.TIMESTAMP if column.precision <= _MICROS else t.TIMESTAMP_NANOS
    if column.root in ("ARRAY", "VECTOR"):
        assert column.element is not None
        return Array(logical_type(column.element), column.element.nullable)
    if column.root == "MULTISET":
        assert column.element is not None
        return Map(logical_type(column.element), t.INTEGER, False)
    if column.root == "MAP":
        assert column.key is not None
        assert column.value is not None
        return Map(logical_type(column.key), logical_type(column.value), column.value.nullable)
    if column.root == "ROW":
        return Struct(tuple(logical_field(f) for f in column.fields))
    raise UnsupportedFeature(
        f"columns of type {column.root} cannot be read", code="unsupported-type", features=(column.root,)
    )


def logical_field(column: ColumnField) -> Field:
    return Field(column.name, logical_type(column.type), column.type.nullable)


def types_within(column: ColumnType) -> Iterator[ColumnType]:
    """The type and all in it, depth first."""
    yield column
    for child in (column.element, column.key, column.value):
        if child is not None:
            yield from types_within(child)
    for f in column.fields:
        yield from types_within(f.type)
