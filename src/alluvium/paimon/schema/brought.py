"""The types under which rows are brought, and come out of Spark: it has none for some of Paimon's."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Map, Struct

#: What Spark has no type for. Times of the day are milliseconds.
_BROUGHT_AS: Mapping[t.DataType, t.DataType] = {
    t.TIME: t.INTEGER,
    t.TIMESTAMP_NANOS: t.TIMESTAMP,
    t.TIMESTAMP_NTZ_NANOS: t.TIMESTAMP_NTZ,
}


def written_schema(schema: TableSchema) -> Struct:
    """The columns that rows bring: as they are read by Spark, so that what was read can be written again."""
    return Struct(tuple(Field(f.name, as_brought(to_logical(f.type)), f.type.nullable) for f in schema.fields))


def as_brought(kind: t.DataType) -> t.DataType:
    """A type under which rows bring the values of another."""
    if isinstance(kind, Struct):
        return Struct(tuple(Field(f.name, as_brought(f.type), f.nullable) for f in kind.fields))
    if isinstance(kind, Array):
        return Array(as_brought(kind.element), kind.contains_null)
    if isinstance(kind, Map):
        return Map(as_brought(kind.key), as_brought(kind.value), kind.value_contains_null)
    return _BROUGHT_AS.get(kind, kind)
