"""Many values as ranges of one stretch of bytes: what columns of encoded values are cut from and put together as.

Everything here is numpy over all values at once; positions are checked by the callers, who know what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

#: Bytes copied in one step: each costs three indices meanwhile.
_BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Ranges:
    """Values, each a range of bytes; one of no bytes is missing.

    Attributes:
        data: The bytes that the ranges lie in.
        starts: First byte of each value.
        lengths: Its bytes; 0 where there is none.
    """

    data: Bytes
    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def present(self) -> Mask:
        """Which values are there."""
        return self.lengths > 0

    def only(self, mask: Mask) -> Ranges:
        """The values where the mask is true; the others missing."""
        return Ranges(self.data, self.starts, np.where(mask, self.lengths, 0))

    def at(self, rows: npt.NDArray[np.int64] | Mask) -> Ranges:
        """The values of some rows."""
        return Ranges(self.data, self.starts[rows], self.lengths[rows])


def missing(count: int) -> Ranges:
    """So many missing values."""
    return Ranges(np.zeros(0, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))


def packed(data: Bytes, lengths: Ints) -> Ranges:
    """Values that lie one behind the other."""
    return Ranges(data, starts_of(lengths), lengths)


def starts_of(lengths: Ints) -> Ints:
    """Where each of several things begins that lie one behind the other."""
    return np.cumsum(lengths) - lengths


def within(counts: Ints) -> Ints:
    """0, 1, 2 ... anew for each group of so many members."""
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts_of(counts), counts)


def ranges_of(values: pa.Array) -> Ranges:
    """An Arrow column of text or binaries; null is missing, and so is an empty value."""
    values = values.cast(pa.large_binary())
    count = len(values)
    if count == 0:
        return missing(0)
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + count + 1]
    valid = np.asarray(values.is_valid())
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Ranges(held, ends[:-1], np.where(valid, np.diff(ends), 0))


def to_binary(values: Ranges, kind: pa.DataType) -> pa.Array:
    """The values as an Arrow column of large binaries or binaries, none of them null."""
    offsets = np.concatenate(([0], np.cumsum(values.lengths)))
    data = np.empty(int(offsets[-1]), np.uint8)
    copy_ranges(values, data, offsets[:-1])
    width = np.int64 if pa.types.is_large_binary(kind) else np.int32
    buffers = [None, pa.py_buffer(offsets.astype(width)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def concat(parts: Sequence[Ranges]) -> Ranges:
    """The values of all parts, one part behind the other, over one stretch of bytes."""
    first = starts_of(np.array([len(part.data) for part in parts], np.int64))
    return Ranges(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.starts + start for part, start in zip(parts, first, strict=True)]),
        np.concatenate([part.lengths for part in parts]),
    )


def coalesce(first: Ranges, second: Ranges) -> Ranges:
    """The first value of each row, or the second where the first is missing."""
    if not second.present.any():
        return first
    both, count = concat([first, second]), len(first)
    return both.at(np.arange(count) + np.where(first.present, 0, count))


def copy_ranges(values: Ranges, out: Bytes, places: Ints) -> None:
    """Copies each value to its place in `out`."""
    ends = np.cumsum(values.lengths)
    low = 0
    while low < len(values):
        done = ends[low] - values.lengths[low]
        high = max(low + 1, int(np.searchsorted(ends, done + _BYTES_AT_ONCE, side="right")))
        if high == low + 1:
            start, place, length = int(values.starts[low]), int(places[low]), int(values.lengths[low])
            out[place : place + length] = values.data[start : start + length]
        else:
            lengths = values.lengths[low:high]
            first = starts_of(lengths)
            steps = np.arange(int(lengths.sum()), dtype=np.int64)
            source = np.repeat(values.starts[low:high] - first, lengths) + steps
            out[np.repeat(places[low:high] - first, lengths) + steps] = values.data[source]
        low = high


def read_ints(data: Bytes, places: Ints, widths: Ints) -> Ints:
    """Unsigned little-endian integers of 1 to 4 bytes, each of its own width."""
    found = np.zeros(len(places), np.int64)
    for step in range(int(widths.max(initial=0))):
        wide = widths > step
        found[wide] |= data[places[wide] + step].astype(np.int64) << (8 * step)
    return found


def write_ints(out: Bytes, places: Ints, values: Ints, widths: Ints) -> None:
    """As `read_ints`, the other way; negative values as two's complement, and up to 8 bytes."""
    write_rows(out, places, np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8), widths)


def write_rows(out: Bytes, places: Ints, rows: Bytes, widths: Ints) -> None:
    """The first bytes of each row of a matrix, so many as its width says."""
    for step in range(int(widths.max(initial=0))):
        wide = widths > step
        out[places[wide] + step] = rows[wide, step]
