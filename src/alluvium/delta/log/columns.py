"""Python values to Arrow columns, without slack.

A log of 300,000 files is some 150 MB of text that stays in memory, so how its buffers are allocated decides what a
table costs. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.spec import DELETION_VECTOR, STRING_MAP, DeletionVector


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


def string_column(values: Sequence[str | None]) -> pa.Array:
    """Text, in buffers that are exactly as long as they must be.

    `pa.array` doubles its buffers while it appends and then gives back the rest; over hundreds of batches the holes
    that this leaves in the allocator's memory add up to half of the table. (Its first call also imports pandas.)
    """
    try:
        text = "".join(values)  # type: ignore[arg-type]  # a None among them is what the except is for
    except TypeError:
        text = ""
    if (text or not values) and text.isascii():
        lengths: Iterable[int] = map(len, values)  # type: ignore[arg-type]  # no None here
        data = text.encode("ascii")
    else:
        encoded = [b"" if value is None else value.encode() for value in values]
        lengths, data = map(len, encoded), b"".join(encoded)
    offsets = array("i", accumulate(lengths, initial=0))
    buffers = [_validity(values), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def long_column(values: Sequence[int | None]) -> pa.Array:
    """64-bit integers."""
    validity = _validity(values)
    numbers = array("q", [0 if value is None else value for value in values])
    return pa.Array.from_buffers(pa.int64(), len(values), [validity, pa.py_buffer(numbers)])


def boolean_column(values: Sequence[bool | None]) -> pa.Array:
    """True, false and null."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(values), _bits([bool(v) for v in values])])


def map_column(values: Sequence[dict[str, str | None] | None]) -> pa.Array:
    """String maps, in the order of their keys' appearance."""
    keys: list[str] = []
    items: list[str | None] = []
    offsets = array("i", [0])
    for value in values:
        if value:
            keys.extend(value)
            items.extend(value.values())
        offsets.append(len(keys))
    pairs = pa.StructArray.from_arrays(
        [string_column(keys), string_column(items)], fields=[STRING_MAP.key_field, STRING_MAP.item_field]
    )
    return pa.Array.from_buffers(STRING_MAP, len(values), [_validity(values), pa.py_buffer(offsets)], children=[pairs])


def deletion_vector_column(values: Sequence[DeletionVector | None]) -> pa.Array:
    """Deletion vector descriptors as structs."""
    children = [
        string_column([None if v is None else v.storage_type for v in values]),
        string_column([None if v is None else v.path_or_inline_dv for v in values]),
        long_column([None if v is None else v.offset for v in values]).cast(pa.int32()),
        long_column([None if v is None else v.size_in_bytes for v in values]).cast(pa.int32()),
        long_column([None if v is None else v.cardinality for v in values]),
    ]
    return pa.Array.from_buffers(DELETION_VECTOR, len(values), [_validity(values)], children=children)


def _validity(values: Sequence[object]) -> pa.Buffer | None:
    return _bits([value is not None for value in values]) if None in values else None


def _bits(values: Sequence[bool]) -> pa.Buffer:
    small = pa.Array.from_buffers(pa.int8(), len(values), [None, pa.py_buffer(array("b", values))], null_count=0)
    return small.cast(pa.bool_()).buffers()[1]


def conform(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """A column of another writer in our type: members found by name, missing ones null, others left out.

    Raises:
        pyarrow.ArrowInvalid: A value does not fit.
    """
    if column.type == data_type:
        return column
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
