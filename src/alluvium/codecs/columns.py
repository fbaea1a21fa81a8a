"""Python values to Arrow columns: fast, without slack, and without pandas, which `pa.array` of a list imports. Pure.

A log of 300,000 files is some 150 MB of text that stays in memory, so how its buffers are allocated decides what a
table costs, and how they are filled decides what opening it takes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

_MAX_BYTES = (1 << 31) - 1


def string_column(values: Sequence[str | None]) -> pa.Array:
    """Text, in buffers that are exactly as long as they must be.

    `pa.array` doubles its buffers while it appends and then gives back the rest; over hundreds of batches the holes
    that this leaves in the allocator's memory add up to half of the table.

    Raises:
        OverflowError: More than 2 GiB of text.
    """
    try:
        text = "".join(values)  # type: ignore[arg-type]  # a None among them is what the except is for
    except TypeError:
        return _encoded_column(values, validity(values))
    if not text.isascii():
        return _encoded_column(values, None)
    return _string_column(len(values), map(len, values), text.encode("ascii"), None)  # type: ignore[arg-type]


def _encoded_column(values: Sequence[str | None], present: pa.Buffer | None) -> pa.Array:
    encoded = [b"" if value is None else value.encode() for value in values]
    return _string_column(len(values), map(len, encoded), b"".join(encoded), present)


def _string_column(count: int, lengths: Iterable[int], data: bytes, present: pa.Buffer | None) -> pa.Array:
    if len(data) > _MAX_BYTES:
        raise OverflowError(f"{len(data)} bytes of text are too many for one column")
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.fromiter(lengths, np.int32, count), out=offsets[1:])
    return pa.Array.from_buffers(pa.string(), count, [present, pa.py_buffer(offsets), pa.py_buffer(data)])


def long_column(values: Sequence[int | None]) -> pa.Array:
    """64-bit integers.

    Raises:
        OverflowError: A number does not fit.
    """
    try:
        # A None among them is what the except is for.
        numbers, present = array("q", cast("Sequence[int]", values)), None
    except TypeError:
        numbers, present = array("q", [0 if value is None else value for value in values]), validity(values)
    return pa.Array.from_buffers(pa.int64(), len(values), [present, pa.py_buffer(numbers)])


def double_column(values: Sequence[float | None]) -> pa.Array:
    """64-bit floating-point numbers; integers become the nearest one.

    Raises:
        OverflowError: An integer is beyond all of them.
    """
    try:
        numbers, present = array("d", cast("Sequence[float]", values)), None
    except TypeError:
        numbers, present = array("d", [0.0 if value is None else value for value in values]), validity(values)
    return pa.Array.from_buffers(pa.float64(), len(values), [present, pa.py_buffer(numbers)])


def boolean_column(values: Sequence[bool | None]) -> pa.Array:
    """True, false and null."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [validity(values), _bits(values)])


def integer_column(values: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """64-bit integers, as they lie in memory."""
    whole = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def scalar_of(value: object, data_type: pa.DataType) -> pa.Scalar:
    """`pa.scalar`, of the values that most predicates hold without pandas."""
    plain: pa.Array | None = None
    if value is None:
        plain = pa.nulls(1, data_type)
    elif type(value) is bool:
        plain = boolean_column([value])
    elif type(value) is int and pa.types.is_integer(data_type) and -(1 << 63) <= value < 1 << 63:
        plain = long_column([value])
    elif type(value) is float and data_type == pa.float64():
        plain = double_column([value])
    elif type(value) is str and data_type == pa.string():
        plain = string_column([value])
    return pa.scalar(value, data_type) if plain is None else plain.cast(data_type)[0]


def repeated(value: bool, count: int) -> pa.Array:
    """A boolean column of one value."""
    return pa.repeat(TRUE if value else FALSE, count)


def validity(values: Sequence[object]) -> pa.Buffer | None:
    """Arrow's bitmap of the values that are not None; None if all are."""
    return _bits([value is not None for value in values]) if None in values else None


def _bits(values: Sequence[bool | None]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.fromiter(map(bool, values), np.bool_, len(values)), bitorder="little"))


TRUE = boolean_column([True])[0]
FALSE = boolean_column([False])[0]
ZERO = long_column([0])[0]
