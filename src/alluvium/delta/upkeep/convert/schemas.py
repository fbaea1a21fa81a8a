"""One schema out of those of many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct

#: Integers that files hold alike, and all that readers widen to the widest as they read them.
INT32: tuple[DataType, ...] = (t.BYTE, t.SHORT, t.INTEGER)
INTEGERS: tuple[DataType, ...] = (*INT32, t.LONG)


def merge_schemas(schema: Struct, other: Struct, path: str, alike: tuple[DataType, ...] = INT32) -> Struct:
    """The columns of both, as the first spells and orders them; new ones behind.

    Args:
        schema: Of the files before.
        other: Of one more.
        path: That file, for the error.
        alike: Types of which the later one stands for both.

    Raises:
        InvalidRequest: They have a column of different types (`schemas-differ`).
    """
    return schema if schema == other else _Merging(path, alike).structs(schema, other, ())


def with_partitions(schema: Struct, partitions: Sequence[Field]) -> Struct:
    """The table's columns: a partition column that files have, too, stands where they have it, the others behind."""
    by_name = {f.name.lower(): f for f in partitions}
    kept = [by_name.pop(f.name.lower(), f) for f in schema.fields]
    return Struct((*kept, *by_name.values()))


@dataclass(frozen=True, slots=True)
class _Merging:
    path: str
    alike: tuple[DataType, ...]

    def structs(self, one: Struct, other: Struct, above: tuple[str, ...]) -> Struct:
        by_name = {f.name.lower(): f for f in other.fields}
        merged = []
        for f in one.fields:
            found = by_name.pop(f.name.lower(), None)
            column = (*above, f.name)
            merged.append(f if found is None else replace(f, type=self.types(f.type, found.type, column)))
        return Struct((*merged, *by_name.values()))

    def types(self, one: DataType, other: DataType, column: tuple[str, ...]) -> DataType:
        if one == other or other == t.VOID:
            return one
        if one == t.VOID:
            return other
        if isinstance(one, Struct) and isinstance(other, Struct):
            return self.structs(one, other, column)
        if isinstance(one, Array) and isinstance(other, Array):
            return Array(self.types(one.element, other.element, (*column, "element")))
        if isinstance(one, Map) and isinstance(other, Map):
            key = self.types(one.key, other.key, (*column, "key"))
            return Map(key, self.types(one.value, other.value, (*column, "value")))
        if one in self.alike and other in self.alike:
            return max(one, other, key=self.alike.index)
        raise InvalidRequest(
            f"files have {'.'.join(column)!r} as {one} and as {other}",
            code="schemas-differ",
            path=self.path,
            column=".".join(column),
            hint="write the files with one type; a table has one",
        )
