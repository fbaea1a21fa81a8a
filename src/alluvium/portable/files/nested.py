"""Arrays of nested types, made anew of their members."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def holds(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is, or has anywhere in it, one of a sort."""
    return is_one(kind) or any(holds(kind.field(n).type, is_one) for n in range(kind.num_fields))


def with_members(values: pa.Array, made: Callable[[int, pa.Array], pa.Array]) -> pa.Array:
    """The same rows with other values in them; values that have no members are given back.

    Args:
        values: Lists in it begin where their buffers do, as in what a file was read into.
        made: From the number of a member (fields of a struct; elements; keys, then values) and its values the new
            ones, as many and of the same type.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        members = [made(number, member) for number, member in enumerate(values.flatten())]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=values.is_null())
    if pa.types.is_map(kind):
        keys, items = made(0, values.keys), made(1, values.items)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
    if pa.types.is_list(kind):
        elements = made(0, values.values)
        return pa.ListArray.from_arrays(values.offsets, elements, type=kind, mask=values.is_null())
    return values
