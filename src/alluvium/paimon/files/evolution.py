"""How the columns of today come out of a file that was written with another schema.

Specification: "load schema-`_SCHEMA_ID`, map wanted id to old name/type (recursively in rows, list elements, map
values), read by the old name, cast, missing: null".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from alluvium.paimon.casts.cast import cast_between
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.plan.scan import ColumnValue, Converted, FileConstant, Literal, OutputColumn, Physical
from alluvium.schema.types import Field, Struct


def file_columns(file_schema: TableSchema, write_cols: Sequence[str] | None) -> dict[int, DataField]:
    """The columns that a file holds, by id; `write_cols` are names of its schema, None: all of them."""
    wanted = None if write_cols is None else set(write_cols)
    return {f.id: f for f in file_schema.fields if wanted is None or f.name in wanted}


def output_column(column: DataField, held: dict[int, DataField], partition_keys: Collection[str]) -> OutputColumn:
    """One column of the table out of a file.

    Raises:
        UnsupportedFeature: The file has it under a type from which there is no cast.
    """
    kind = to_logical(column.type)
    return OutputColumn(column.name, kind, column.type.nullable, _value(column, held, partition_keys))


def _value(column: DataField, held: dict[int, DataField], partition_keys: Collection[str]) -> ColumnValue:
    kind = to_logical(column.type)
    if column.name in partition_keys:
        return FileConstant(column.name, kind)
    old = held.get(column.id)
    if old is None:
        return Literal(None, kind)
    conversion = cast_between(old.type, column.type)
    physical = Physical((old.name,), to_logical(old.type))
    return physical if conversion is None else Converted(physical, conversion, kind)


def read_schema(outputs: Sequence[OutputColumn]) -> Struct:
    """The columns of the file that the outputs read."""
    found: dict[str, Field] = {}
    for output in outputs:
        for value in _physicals(output.value):
            found.setdefault(value.path[0], Field(value.path[0], value.type))
    return Struct(tuple(found.values()))


def _physicals(value: ColumnValue) -> list[Physical]:
    if isinstance(value, Physical):
        return [value]
    if isinstance(value, Converted):
        return _physicals(value.value)
    return [one for part in getattr(value, "values", ()) for one in _physicals(part)]
