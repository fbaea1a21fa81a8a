"""Columns of the log's own types: maps, deletion vectors, and columns of other writers made to be of them. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import long_column, string_column, validity
from alluvium.delta.terms.spec import DELETION_VECTOR, STRING_MAP, DeletionVector


class Nulls:
    """Null columns that share their memory: a log has several columns that nearly no table uses."""

    def __init__(self) -> None:
        self._longest: dict[pa.DataType, pa.Array] = {}

    def take(self, count: int, data_type: pa.DataType) -> pa.Array:
        """`count` nulls of a type."""
        longest = self._longest.get(data_type)
        if longest is None or len(longest) < count:
            longest = self._longest[data_type] = pa.nulls(count, data_type)
        return longest.slice(0, count)


def map_column(values: Sequence[dict[str, str | None] | None]) -> pa.Array:
    """String maps, in the order of their keys' appearance."""
    keys: list[str] = []
    items: list[str | None] = []
    offsets = array("i", [0])
    if any(values):
        for value in values:
            if value:
                keys.extend(value)
                items.extend(value.values())
            offsets.append(len(keys))
    else:
        offsets *= len(values) + 1
    pairs = pa.StructArray.from_arrays(
        [string_column(keys), string_column(items)], fields=[STRING_MAP.key_field, STRING_MAP.item_field]
    )
    return pa.Array.from_buffers(STRING_MAP, len(values), [validity(values), pa.py_buffer(offsets)], children=[pairs])


def deletion_vector_column(values: Sequence[DeletionVector | None]) -> pa.Array:
    """Deletion vector descriptors as structs."""
    children = [
        string_column([None if v is None else v.storage_type for v in values]),
        string_column([None if v is None else v.path_or_inline_dv for v in values]),
        long_column([None if v is None else v.offset for v in values]).cast(pa.int32()),
        long_column([None if v is None else v.size_in_bytes for v in values]).cast(pa.int32()),
        long_column([None if v is None else v.cardinality for v in values]),
    ]
    return pa.Array.from_buffers(DELETION_VECTOR, len(values), [validity(values)], children=children)


def conform(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """A column of another writer in our type: members found by name, missing ones null, others left out.

    Raises:
        pyarrow.ArrowInvalid: A value does not fit.
    """
    if column.type == data_type:
        return column
    if pa.types.is_null(data_type):
        return pa.nulls(len(column))
    if pa.types.is_struct(data_type) and pa.types.is_struct(column.type):
        found = {column.type.field(i).name: child for i, child in enumerate(column.flatten())}
        children = [
            conform(found[f.name], f.type) if f.name in found else pa.nulls(len(column), f.type) for f in data_type
        ]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=pc.is_null(column))
    if data_type == STRING_MAP and pa.types.is_map(column.type):
        # Names and nullability of a map's members differ between writers, and Arrow counts them as part of the type.
        filled = column if column.offset == 0 else pa.concat_arrays([column])
        keys, items = filled.keys.cast(pa.string()), filled.items.cast(pa.string())
        return pa.Array.from_buffers(
            data_type, len(filled), filled.buffers()[:2], filled.null_count,
            children=[pa.StructArray.from_arrays([keys, items], fields=[data_type.key_field, data_type.item_field])],
        )  # fmt: skip
    return column.cast(data_type)


def holding_all(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that can hold each of some statistics as it is, null if none can; members without one are left out.

    Parts of a checkpoint may be older than a change of a column's type, and its bounds in them of the type before.
    """
    return reduce(lambda one, other: _holding_both(one, other) or pa.null(), types)


def _holding_both(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other:
        return one
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        members = {f.name: f.type for f in one}
        found = {f.name: _holding_both(members.get(f.name, f.type), f.type) for f in other}
        return pa.struct([(name, kept) for name, kept in {**members, **found}.items() if kept is not None]) or None
    schemas = [pa.schema([("bound", data_type)]) for data_type in (one, other)]
    try:
        wider = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    # Not every number of so many digits is a floating one.
    is_rounded = pa.types.is_floating(wider) and any(_has_digits(t, wider) for t in (one, other))
    return None if is_rounded or pa.types.is_decimal256(wider) else wider


def _has_digits(exact: pa.DataType, floating: pa.DataType) -> bool:
    """Whether a type has numbers that are none of a floating type."""
    least = 64 if pa.types.is_float64(floating) else 32
    return bool(pa.types.is_decimal(exact) or (pa.types.is_integer(exact) and exact.bit_width >= least))


def conform_fitting(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """As `conform`, of statistics: members of which a value does not fit are null, as if nobody had told them.

    Not every value of a type that Arrow takes for the narrower one is one of the other: 300 of 16 bits is no
    DECIMAL(3, 1), and the year 3000 has no nanoseconds.
    """
    try:
        return conform(column, data_type)
    except pa.ArrowInvalid:
        if not (pa.types.is_struct(data_type) and pa.types.is_struct(column.type)):
            return pa.nulls(len(column), data_type)
    found = {column.type.field(i).name: child for i, child in enumerate(column.flatten())}
    children = [
        conform_fitting(found[f.name], f.type) if f.name in found else pa.nulls(len(column), f.type) for f in data_type
    ]
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=pc.is_null(column))


def settled(column: pa.Array) -> pa.Array:
    """The same column in buffers of exact size, outside of Arrow's allocator.

    What a Parquet reader allocates for a batch is then given back before the next one, instead of lying between
    what is kept: the same columns in two thirds of the memory. Structs are rare, and stay as they are.
    """
    if column.offset or pa.types.is_struct(column.type):
        return column
    own = column.buffers()[:2] if column.type == STRING_MAP else column.buffers()
    buffers = [None if buffer is None else pa.py_buffer(buffer.to_pybytes()) for buffer in own]
    if column.type != STRING_MAP:
        return pa.Array.from_buffers(column.type, len(column), buffers, column.null_count)
    pairs = pa.StructArray.from_arrays(
        [settled(column.keys), settled(column.items)], fields=[STRING_MAP.key_field, STRING_MAP.item_field]
    )
    return pa.Array.from_buffers(STRING_MAP, len(column), buffers, column.null_count, children=[pairs])
