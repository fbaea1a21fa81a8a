"""Arrow columns to BinaryRows, and the hash of a row that chooses its bucket: the inverse of `binary_rows.binary_row`.

Specification: `org.apache.paimon.data.BinaryRowWriter`, `MurmurHashUtils.hashBytesByWords`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import null_bytes
from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal

_FIXED: dict[DataType, str] = {
    t.BOOLEAN: "u1", t.BYTE: "<i1", t.SHORT: "<i2", t.INTEGER: "<i4", t.LONG: "<i8", t.FLOAT: "<f4", t.DOUBLE: "<f8",
    t.DATE: "<i4", t.TIME: "<i4",
}  # fmt: skip
_STAMPS = (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS)
_MAX_COMPACT, _MILLIS, _NEAR = 18, 3, 7
_SEED, _C1, _C2 = 42, 0xCC9E2D51, 0x1B873593
_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Far:
    """The variable part of a column: bytes of all rows one after another, and how many of each row's are used.

    Attributes:
        content: The bytes.
        starts: Where in it each row's begin.
        lengths: How many they are.
        reserved: How many each takes in the row, a multiple of 8.
    """

    content: _Bytes
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    reserved: npt.NDArray[np.int64]


def encode_rows(columns: Sequence[pa.Array], types: Sequence[tuple[DataType, int]]) -> pa.Array:
    """Rows of columns as BinaryRows, each behind its arity (4 bytes, big endian), as manifests hold them.

    Args:
        columns: Of equal lengths, of the Arrow types of `types`; at least one.
        types: Of each column the logical type, and the precision (of timestamps; else 0).

    Raises:
        UnsupportedFeature: A type that stands in no key and no partition.
    """
    count, arity = len(columns[0]), len(columns)
    head = null_bytes(arity)
    fixed = np.zeros((count, head + 8 * arity), np.uint8)
    ends = np.full(count, head + 8 * arity, np.int64)
    parts: list[tuple[_Far, npt.NDArray[np.int64]]] = []
    for index, (values, (kind, precision)) in enumerate(zip(columns, types, strict=True)):
        valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)
        bit = index + 8
        fixed[~valid, bit // 8] |= np.uint8(1 << bit % 8)
        slot = fixed[:, head + 8 * index : head + 8 * index + 8]
        far = _write_slot(values, valid, kind, precision, slot, ends)
        if far is not None:
            parts.append((far, ends.copy()))
            ends = ends + far.reserved
    return _assembled(fixed, ends, parts, arity)


def _write_slot(
    values: pa.Array,
    valid: npt.NDArray[np.bool_],
    kind: DataType,
    precision: int,
    slot: _Bytes,
    ends: npt.NDArray[np.int64],
) -> _Far | None:
    """Fills a column's slots; what lies in the variable part, if any, begins at `ends`."""
    if kind in _FIXED:
        raw = values.cast(pa.int32()) if kind in (t.DATE, t.TIME) else values
        zero = pa.scalar(False if kind == t.BOOLEAN else 0, raw.type)
        numbers = np.asarray(pc.fill_null(raw, zero).to_numpy(zero_copy_only=False)).astype(_FIXED[kind])
        width = numbers.dtype.itemsize
        slot[:, :width] = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, width)
        slot[~valid] = 0
        return None
    if isinstance(kind, Decimal):
        return _write_decimal(values, valid, kind, slot, ends)
    if kind in _STAMPS:
        return _write_stamp(values, valid, precision, slot, ends)
    if kind in (t.STRING, t.BINARY):
        return _write_bytes(values, valid, slot, ends)
    raise UnsupportedFeature(f"rows of keys with values of type {kind}", code="unsupported-type")


def _put(slot: _Bytes, numbers: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> None:
    slot[where] = np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)[where]


def _write_decimal(
    values: pa.Array, valid: npt.NDArray[np.bool_], kind: Decimal, slot: _Bytes, ends: npt.NDArray[np.int64]
) -> _Far | None:
    whole = pa.concat_arrays([values, values.slice(0, 0)])
    words = np.frombuffer(whole.buffers()[1], "<i8")[: 2 * len(whole)].reshape(-1, 2)
    if kind.precision <= _MAX_COMPACT:
        _put(slot, words[:, 0], valid)
        return None
    # Big endian, as few bytes as hold the sign; "null still reserves the 16 bytes and stores offset<<32".
    wide = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 16)[:, ::-1]
    sign = np.where(wide[:, 0] > 127, 0xFF, 0).astype(np.uint8)
    filler = np.cumprod(wide == sign[:, None], axis=1).sum(axis=1)
    first = np.minimum(filler, 15)
    kept = np.take_along_axis(wide, first[:, None], axis=1)[:, 0]
    first = first - ((first > 0) & ((kept > 127) != (sign == 0xFF)))
    lengths = np.where(valid, 16 - first, 0).astype(np.int64)
    _put(slot, ends << 32 | lengths, np.ones(len(valid), bool))
    starts = np.arange(len(valid), dtype=np.int64) * 16 + first
    return _Far(np.ascontiguousarray(wide).reshape(-1), starts, lengths, np.full(len(valid), 16, np.int64))


def _write_stamp(
    values: pa.Array, valid: npt.NDArray[np.bool_], precision: int, slot: _Bytes, ends: npt.NDArray[np.int64]
) -> _Far | None:
    per_milli = {"s": 0, "ms": 1, "us": 1_000, "ns": 1_000_000}[values.type.unit]
    units = np.asarray(pc.fill_null(values.cast(pa.int64()), 0).to_numpy(), np.int64)
    millis, rest = np.divmod(units, per_milli)
    if precision <= _MILLIS:
        _put(slot, millis, valid)
        return None
    nanos = np.where(valid, rest * (1_000_000 // per_milli), 0)
    _put(slot, ends << 32 | nanos, np.ones(len(valid), bool))
    content = np.ascontiguousarray(np.where(valid, millis, 0).astype("<i8")).view(np.uint8)
    eight = np.full(len(valid), 8, np.int64)
    return _Far(content, np.arange(len(valid), dtype=np.int64) * 8, eight, eight)


def _write_bytes(values: pa.Array, valid: npt.NDArray[np.bool_], slot: _Bytes, ends: npt.NDArray[np.int64]) -> _Far:
    data = pc.fill_null(values.cast(pa.large_binary()), b"")
    data = pa.concat_arrays([data, data.slice(0, 0)])
    offsets = np.frombuffer(data.buffers()[1], np.int64)[: len(data) + 1]
    buffer = data.buffers()[2]
    content = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    near = valid & (lengths <= _NEAR)
    for place in range(int(lengths[near].max(initial=0))):
        has = near & (lengths > place)
        slot[has, place] = content[starts[has] + place]
    slot[near, 7] = (0x80 | lengths[near]).astype(np.uint8)
    far = valid & ~near
    _put(slot, ends << 32 | lengths, far)
    used = np.where(far, lengths, 0)
    return _Far(content, starts, used, (used + 7) // 8 * 8)


def _assembled(
    fixed: _Bytes, ends: npt.NDArray[np.int64], parts: Sequence[tuple[_Far, npt.NDArray[np.int64]]], arity: int
) -> pa.Array:
    count, width = fixed.shape
    offsets = np.concatenate([[0], np.cumsum(ends + 4)]).astype(np.int64)
    joined = np.zeros(int(offsets[-1]), np.uint8)
    begins = offsets[:-1]
    joined[begins[:, None] + np.arange(4)] = np.frombuffer(arity.to_bytes(4, "big"), np.uint8)
    joined[begins[:, None] + 4 + np.arange(width)] = fixed
    for far, places in parts:
        total = int(far.lengths.sum())
        within = np.arange(total) - np.repeat(np.cumsum(far.lengths) - far.lengths, far.lengths)
        joined[np.repeat(begins + 4 + places, far.lengths) + within] = far.content[
            np.repeat(far.starts, far.lengths) + within
        ]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers).cast(pa.binary())


def hash_rows(rows: pa.Array) -> pa.Array:
    """`BinaryRow.hashCode` of rows as `encode_rows` gives them: Murmur3 word by word, without the arity; int32."""
    data = rows.cast(pa.large_binary())
    data = pa.concat_arrays([data, data.slice(0, 0)])
    offsets = np.frombuffer(data.buffers()[1], np.int64)[: len(data) + 1]
    content = np.frombuffer(data.buffers()[2], np.uint8)
    starts, lengths = offsets[:-1] + 4, np.diff(offsets) - 4
    hashes = np.full(len(data), _SEED, np.uint32)
    with np.errstate(over="ignore"):
        for place in range(0, int(lengths.max(initial=0)), 4):
            inside = lengths > place
            four = content[np.where(inside, starts + place, 4)[:, None] + np.arange(4)]
            word = np.ascontiguousarray(four).view("<u4").reshape(-1)
            word = _rotated(word * np.uint32(_C1), 15) * np.uint32(_C2)
            mixed = _rotated(hashes ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)
            hashes = np.where(inside, mixed, hashes)
        hashes = hashes ^ lengths.astype(np.uint32)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            hashes = (hashes ^ hashes >> np.uint32(shift)) * np.uint32(factor)
        hashes = hashes ^ hashes >> np.uint32(16)
    return pa.array(hashes.view(np.int32))


def _rotated(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return np.asarray(words << np.uint32(bits) | words >> np.uint32(32 - bits), np.uint32)


def buckets_of(hashes: pa.Array, buckets: int) -> pa.Array:
    """`abs(hash % N)` with Java's remainder: the bucket of each row; int32."""
    wide = np.asarray(hashes.to_numpy(), np.int64)
    return pa.array(np.abs(np.fmod(wide, buckets)).astype(np.int32))
