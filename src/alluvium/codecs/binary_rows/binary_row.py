"""Paimon's BinaryRow as manifests hold it: rows of bytes to Arrow columns and back, and the hash that chooses buckets.

Specification: `org.apache.paimon.data.BinaryRow`: 4 bytes of arity (big endian, as `SerializationUtils` puts before the
row), then one byte of row kind and the null bits, padded to words of 8 bytes, 8 bytes a field, and the variable part.

Columns are cut out of all rows at once: the slots of a field lie at the same place of every row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

_ARITY = 4
#: Decimals of more digits lie in the variable part.
_MAX_COMPACT = 18
_FIXED: dict[DataType, str] = {
    t.BOOLEAN: "u1", t.BYTE: "<i1", t.SHORT: "<i2", t.INTEGER: "<i4", t.LONG: "<i8", t.FLOAT: "<f4", t.DOUBLE: "<f8",
    t.DATE: "<i4", t.TIME: "<i4",
}  # fmt: skip
_TIMESTAMPS = (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS)
_MILLIS = 3


def null_bytes(arity: int) -> int:
    """Bytes of the row kind and the null bits: whole words."""
    return (arity + 63 + 8) // 64 * 8


def decode_rows(
    rows: pa.Array, types: Sequence[tuple[DataType, int]], only: Collection[int] | None = None
) -> list[pa.Array]:
    """The fields of serialized rows, one Arrow array a field.

    Args:
        rows: Binary; null where there is no row (all its fields are null then).
        types: Of each field the logical type, and the precision (of timestamps; else 0). Fields behind the last are
            not looked at.
        only: Places of the fields wanted; None: all.

    Raises:
        CorruptTable: Rows are cut short (`"damaged-row"`).
    """
    data = rows.cast(pa.large_binary())
    offsets = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
    buffer = data.buffers()[2]
    content = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    present = np.asarray(data.is_valid().to_numpy(zero_copy_only=False), bool)
    lengths = np.diff(offsets)
    reader = _Rows(content, offsets[:-1] + _ARITY, lengths - _ARITY, present, len(types))
    reader.ensure_whole()
    return [reader.column(i, kind, precision) for i, (kind, precision) in enumerate(types) if only is None or i in only]


class _Rows:
    """Rows of bytes, each from `starts` on (behind the arity)."""

    def __init__(
        self,
        content: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        present: npt.NDArray[np.bool_],
        wanted: int,
    ) -> None:
        self._content = content
        self._starts = np.where(present, starts, 0)
        self._lengths = lengths
        self._present = present
        self._wanted = wanted
        self._arity = self._arities()
        self._nulls = (self._arity + 63 + 8) // 64 * 8

    def _arities(self) -> npt.NDArray[np.int64]:
        if not self._present.any():
            return np.full(len(self._starts), self._wanted, np.int64)
        if (self._lengths[self._present] < 0).any():
            raise _damaged("shorter than its arity")
        places = np.where(self._present, self._starts - _ARITY, 0)
        four = self._content[places[:, None] + np.arange(_ARITY)]
        return four.astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1], np.int64)

    def ensure_whole(self) -> None:
        if (self._arity[self._present] < self._wanted).any():
            raise _damaged("fewer fields than the schema has")
        if (self._lengths < self._nulls + 8 * self._arity)[self._present].any():
            raise _damaged("cut short")

    def column(self, index: int, kind: DataType, precision: int) -> pa.Array:
        valid = self._present & ~self._is_null(index)
        slots = np.where(valid, self._starts + self._nulls + 8 * index, 0)
        mask = ~valid
        if kind in _FIXED:
            values = self._fixed(slots, valid, _FIXED[kind])
            if kind == t.BOOLEAN:
                return pa.array(values.astype(bool), mask=mask)
            return pa.array(values, mask=mask).cast(_physical(kind)).cast(to_arrow(kind))
        if isinstance(kind, Decimal):
            return self._decimal(slots, valid, kind)
        if kind in _TIMESTAMPS:
            return self._timestamp(slots, valid, kind, precision)
        if kind in (t.STRING, t.BINARY):
            return self._bytes(slots, valid, to_arrow(kind))
        return pa.nulls(len(valid), to_arrow(kind))

    def _is_null(self, index: int) -> npt.NDArray[np.bool_]:
        bit = index + 8
        places = np.where(self._present, self._starts + bit // 8, 0)
        if not self._present.any():
            return np.ones(len(places), bool)
        return np.asarray(self._content[places] >> (bit % 8) & 1, np.uint8).astype(bool)

    def _fixed(self, slots: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], layout: str) -> npt.NDArray[Any]:
        width = np.dtype(layout).itemsize
        if not valid.any():
            return np.zeros(len(slots), layout)
        found = np.ascontiguousarray(self._content[slots[:, None] + np.arange(width)])
        return np.where(valid, found.view(layout).reshape(-1), np.zeros(1, layout))

    def _far(
        self, slots: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where in the content the variable parts begin, and their lengths."""
        word = self._fixed(slots, valid, "<u8")
        offset = (word >> np.uint64(32)).astype(np.int64)
        length = (word & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return np.where(valid, self._starts + offset, 0), np.where(valid, length, 0)

    def _bytes(self, slots: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
        starts, lengths = self._far(slots, valid)
        last = self._fixed(np.where(valid, slots + 7, 0), valid, "u1")
        # Values of at most 7 bytes lie in the slot; its last byte is 0x80 and their length.
        near = valid & (last & 0x80 > 0)
        starts = np.where(near, slots, starts)
        lengths = np.where(near, last & 0x7F, lengths)
        if (starts + lengths)[valid].max(initial=0) > len(self._content):
            raise _damaged("a value leads out of it")
        ends = np.cumsum(lengths)
        begin = np.concatenate([[0], ends]).astype(np.int64)
        within = np.arange(begin[-1]) - np.repeat(begin[:-1], lengths)
        joined = self._content[np.repeat(starts, lengths) + within]
        wide = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
        buffers = [_bitmap(valid), pa.py_buffer(begin), pa.py_buffer(np.ascontiguousarray(joined))]
        made = pa.Array.from_buffers(wide, len(valid), buffers)
        try:
            made.validate(full=True)
        except pa.ArrowInvalid as error:
            raise _damaged(str(error)) from None
        return made.cast(kind)

    def _decimal(self, slots: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], kind: Decimal) -> pa.Array:
        sixteen = np.zeros((len(valid), 2), "<i8")
        if kind.precision <= _MAX_COMPACT:
            sixteen[:, 0] = self._fixed(slots, valid, "<i8")
            sixteen[:, 1] = sixteen[:, 0] >> 63
        else:
            starts, lengths = self._far(slots, valid)
            if (starts + 16)[valid].max(initial=0) > len(self._content) or (lengths > 16).any():
                raise _damaged("a value leads out of it")
            # Big endian and no longer than need be: aligned to the right, filled with the sign.
            place = np.arange(16) - (16 - lengths[:, None])
            inside = valid[:, None] & (place >= 0)
            taken = self._content[np.where(inside, starts[:, None] + place, 0)] if len(self._content) else 0
            first = self._content[starts] if len(self._content) else np.zeros(len(starts), np.uint8)
            sign = np.where(valid & (lengths > 0) & (first > 127), 0xFF, 0).astype(np.uint8)
            whole = np.where(inside, taken, sign[:, None]).astype(np.uint8)
            sixteen = np.ascontiguousarray(whole[:, ::-1]).view("<i8")
        buffers = [_bitmap(valid), pa.py_buffer(np.ascontiguousarray(sixteen))]
        made = pa.Array.from_buffers(to_arrow(kind), len(valid), buffers)
        try:
            made.validate(full=True)
        except pa.ArrowInvalid as error:
            raise _damaged(str(error)) from None
        return made

    def _timestamp(
        self, slots: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], kind: DataType, precision: int
    ) -> pa.Array:
        target = to_arrow(kind)
        if precision <= _MILLIS:
            millis, nanos = self._fixed(slots, valid, "<i8"), np.zeros(len(valid), np.int64)
        else:
            # The slot: where the milliseconds are, and the nanoseconds within their millisecond.
            starts, nanos = self._far(slots, valid)
            if (starts + 8)[valid].max(initial=0) > len(self._content):
                raise _damaged("a value leads out of it")
            millis = self._fixed(starts, valid, "<i8")
        per_milli, nanos_per_unit = (1_000_000, 1) if target.unit == "ns" else (1_000, 1_000)
        units = millis * per_milli + nanos // nanos_per_unit
        return pa.array(units, mask=~valid).cast(target)


def _bitmap(valid: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _physical(kind: DataType) -> pa.DataType:
    return pa.int32() if kind in (t.DATE, t.TIME) else to_arrow(kind)


def _damaged(reason: str) -> CorruptTable:
    return CorruptTable(f"a binary row is damaged: {reason}", code="damaged-row", hint="the manifest was overwritten")
