"""One schema out of those of many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct

#: Integers that files hold alike.
_INT32 = (t.BYTE, t.SHORT, t.INTEGER)


def merge_schemas(schema: Struct, other: Struct, path: str) -> Struct:
    """The columns of both, as the first spells and orders them; new ones behind.

    Args:
        schema: Of the files before.
        other: Of one more.
        path: That file, for the error.

    Raises:
        InvalidRequest: They have a column of different types (`schemas-differ`).
    """
    return schema if schema == other else _merged_struct(schema, other, (), path)


def with_partitions(schema: Struct, partitions: Sequence[Field]) -> Struct:
    """The table's columns: a partition column that files have, too, stands where they have it, the others behind."""
    by_name = {f.name.lower(): f for f in partitions}
    kept = [by_name.pop(f.name.lower(), f) for f in schema.fields]
    return Struct((*kept, *by_name.values()))


def _merged_struct(one: Struct, other: Struct, above: tuple[str, ...], path: str) -> Struct:
    by_name = {f.name.lower(): f for f in other.fields}
    merged = []
    for f in one.fields:
        found = by_name.pop(f.name.lower(), None)
        merged.append(f if found is None else replace(f, type=_merged(f.type, found.type, (*above, f.name), path)))
    return Struct((*merged, *by_name.values()))


def _merged(one: DataType, other: DataType, column: tuple[str, ...], path: str) -> DataType:
    if one == other or other == t.VOID:
        return one
    if one == t.VOID:
        return other
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _merged_struct(one, other, column, path)
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(_merged(one.element, other.element, (*column, "element"), path))
    if isinstance(one, Map) and isinstance(other, Map):
        key = _merged(one.key, other.key, (*column, "key"), path)
        return Map(key, _merged(one.value, other.value, (*column, "value"), path))
    if one in _INT32 and other in _INT32:
        return max(one, other, key=_INT32.index)
    raise InvalidRequest(
        f"files have {'.'.join(column)!r} as {one} and as {other}",
        code="schemas-differ",
        path=path,
        column=".".join(column),
        hint="write the files with one type; a table has one",
    )
