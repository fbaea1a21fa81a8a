"""Roaring bitmaps of 64-bit numbers, as tables store deleted rows: checked to the last byte before they are used.

Specification: https://github.com/RoaringBitmap/RoaringFormatSpec with its extension for 64 bits ("portable" format):
a count of buckets (8 bytes), then for each its high 32 bits (4 bytes) and a 32-bit bitmap. All numbers little endian.

C libraries check that such bytes do not lead them out of their buffer, not that they make sense; vectors that lie
in a log have no checksum. So the structure is walked here, one step a container, not a value.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from operator import ge

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, BitMap64

from alluvium.errors import CorruptTable

_COOKIE_WITH_RUNS, _COOKIE = 12347, 12346
#: With runs, offsets are written from this many containers on.
_OFFSETS_FROM = 4
#: Containers of more values than this are bitsets.
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192
_KEYS = 1 << 16
#: A key's top bit must be 0 in Delta, "so that in Java, where values are read signed, we never read negative keys".
_MAX_HIGH = (1 << 31) - 1
#: Bits are counted in 32 bits with a sign, the words' padding included.
_MAX_BIT = (1 << 31) - 1 - 2 * 64


@dataclass(frozen=True, slots=True)
class Bitmap:
    """A set of 64-bit numbers whose bytes have been checked.

    Attributes:
        data: In the portable format.
        cardinality: How many numbers.
        highest: The greatest of them; -1 for none.
    """

    data: bytes
    cardinality: int
    highest: int


def parse_bitmap(data: bytes) -> Bitmap:
    """Checks a bitmap in the portable 64-bit format.

    Raises:
        CorruptTable: `"damaged-bitmap"`: it is cut off or goes on after its end, keys or values are out of order, or
            a count is wrong.
    """
    (buckets,) = _unpack("<Q", data, 0)
    position, total, before, highest = 8, 0, -1, -1
    kept: list[bytes] = []
    for _ in range(buckets):
        (high,) = _unpack("<I", data, position)
        if not before < high <= _MAX_HIGH:
            raise _damaged(f"the bucket {high} follows {before}")
        end, cardinality, last = _check_32(data, position + 4)
        if cardinality:
            kept.append(data[position:end])
            highest = (high << 32) + last
        position, total, before = end, total + cardinality, high
    if position != len(data):
        raise _damaged(f"it ends after {position} of {len(data)} bytes")
    # Writers that keep an array of buckets write empty ones, too.
    whole = data if len(kept) == buckets else len(kept).to_bytes(8, "little") + b"".join(kept)
    return Bitmap(whole, total, highest)


def parse_bitmap_list(data: bytes, byte_order: str) -> Bitmap:
    """Checks a list of 32-bit bitmaps, of which the n-th holds the numbers whose high 32 bits are n.

    Args:
        data: How many bitmaps (4 bytes), then for each its length (4 bytes) and it.
        byte_order: `"<"` or `">"`, of counts and lengths.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    (count,) = _unpack(f"{byte_order}I", data, 0)
    position = 4
    buckets: list[bytes] = []
    for high in range(count):
        (length,) = _unpack(f"{byte_order}I", data, position)
        buckets.append(high.to_bytes(4, "little") + data[position + 4 : position + 4 + length])
        if len(buckets[-1]) != 4 + length:
            raise _damaged(f"it is cut off after {len(data)} bytes")
        position += 4 + length
    if position != len(data):
        raise _damaged(f"it ends after {position} of {len(data)} bytes")
    return parse_bitmap(count.to_bytes(8, "little") + b"".join(buckets))


def highest_of(data: bytes) -> int:
    """The greatest number of a bitmap in the portable 64-bit format; -1 for none.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    numbers = _deserialized(data)
    return int(numbers.max()) if numbers else -1


def positions_of(data: bytes) -> array[int]:
    """The numbers of a bitmap in the portable 64-bit format, ascending.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    return _deserialized(data).to_array()


def subtract(left: bytes, right: bytes) -> bytes | None:
    """The numbers of one bitmap that another does not have, None for none; all in the portable 64-bit format.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    difference = _deserialized(left) - _deserialized(right)
    return difference.serialize() if difference else None


def window(data: bytes, first: int, count: int) -> bytes | None:
    """The numbers from `first` on, at most `count` of them, each less by `first`; None for none.

    Args:
        data: A bitmap in the portable 64-bit format, as is the result.
        first: May be negative: the numbers are greater then.
        count: So many numbers can be in the result: 0 and those behind.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    room = BitMap64()
    room.add_range(0, count)
    found = _deserialized(data).shift(-first) & room
    return found.serialize() if found else None


def unite_32(older: bytes, newer: bytes) -> bytes:
    """The union of two bitmaps of 32-bit numbers, in the portable format.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    for data in (older, newer):
        # The only bucket of a bitmap of 64-bit numbers.
        parse_bitmap((1).to_bytes(8, "little") + bytes(4) + data)
    both = BitMap.deserialize(older) | BitMap.deserialize(newer)
    both.run_optimize()
    return bytes(both.serialize())


def bits_of(data: bytes) -> bytes:
    """The numbers of a bitmap in the portable 64-bit format as bits: `n % 8` of byte `n // 8`, in whole 64-bit words.

    One bit more than the highest number at least, so that the last bit is never set.

    Raises:
        CorruptTable: `"damaged-bitmap"`, or it has numbers of more than 31 bits, which would take a lot of memory.
    """
    numbers = _deserialized(data)
    size = 8 * size_of_bits(int(numbers.max()) if numbers else -1)
    # Where a run of set bits begins or ends: dense sets have few such places.
    edges = (numbers ^ numbers.shift(1)).to_array()
    edges.append(size)
    starts_set = edges[0] == 0
    # Arrow reads Python's array where it lies.
    ends = pa.Array.from_buffers(pa.int64(), len(edges), [None, pa.py_buffer(edges)])[int(starts_set) :]
    alternating = (b"\x55" if starts_set else b"\xaa") * (len(ends) // 8 + 1)
    is_set = pa.Array.from_buffers(pa.bool_(), len(ends), [None, pa.py_buffer(alternating)])
    bits = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, is_set)).buffers()[1]
    return bytes(bits.slice(0, size // 8).to_pybytes())


def size_of_bits(highest: int) -> int:
    """How many bytes `bits_of` gives for a bitmap of this highest number (-1: of none).

    Raises:
        CorruptTable: `"damaged-bitmap"`, as `bits_of`.
    """
    if highest > _MAX_BIT:
        raise _damaged(f"it holds {highest}")
    # One bit more, which is never set, in whole words.
    return ((highest + 1) // 64 + 1) * 8


def _deserialized(data: bytes) -> BitMap64:
    try:
        return BitMap64.deserialize(data)
    except (ValueError, RuntimeError) as error:
        raise _damaged(str(error)) from None


def _check_32(data: bytes, start: int) -> tuple[int, int, int]:
    """Where the 32-bit bitmap that begins at `start` ends, how many numbers it holds, and the highest (-1: none)."""
    (cookie,) = _unpack("<I", data, start)
    position, runs = start + 4, b""
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = _take(data, position, (count + 7) // 8)
        position += len(runs)
    elif cookie == _COOKIE:
        (count,) = _unpack("<I", data, position)
        position += 4
    else:
        raise _damaged(f"{cookie:#x} begins no bitmap")
    if count > _KEYS:
        raise _damaged(f"it has {count} containers")
    described = _shorts(data, position, 2 * count)
    position += 4 * count
    keys, cardinalities = described[::2], [less_one + 1 for less_one in described[1::2]]
    if not _ascending(keys):
        raise _damaged("its containers are out of order")
    offsets: tuple[int, ...] | None = None
    last = 0
    if not runs or count >= _OFFSETS_FROM:
        offsets = _unpack(f"<{count}I", data, position)
        position += 4 * count
    for index, cardinality in enumerate(cardinalities):
        if offsets is not None and offsets[index] != position - start:
            raise _damaged(f"container {index} is not where the header says")
        if runs and runs[index // 8] >> index % 8 & 1:
            position, last = _check_runs(data, position, cardinality)
        elif cardinality <= _MAX_ARRAY:
            position, last = _check_array(data, position, cardinality)
        else:
            position, last = _check_bitset(data, position, cardinality)
    return position, sum(cardinalities), (keys[-1] << 16) + last if keys else -1


# Each gives where the container ends, and its last number.


def _check_runs(data: bytes, position: int, cardinality: int) -> tuple[int, int]:
    (count,) = _unpack("<H", data, position)
    described = _shorts(data, position + 2, 2 * count)
    firsts, lengths = described[::2], described[1::2]
    # Runs that touch would be one run.
    ends = [first + length + 1 for first, length in zip(firsts, lengths, strict=True)]
    if any(map(ge, ends, firsts[1:])) or (ends and ends[-1] > _KEYS):
        raise _damaged("its runs are out of order")
    if sum(lengths) + count != cardinality:
        raise _damaged(f"a container of {cardinality} numbers holds {sum(lengths) + count}")
    return position + 2 + 4 * count, ends[-1] - 1


def _check_array(data: bytes, position: int, cardinality: int) -> tuple[int, int]:
    numbers = _shorts(data, position, cardinality)
    if not _ascending(numbers):
        raise _damaged("its numbers are out of order")
    return position + 2 * cardinality, numbers[-1]


def _check_bitset(data: bytes, position: int, cardinality: int) -> tuple[int, int]:
    bits = int.from_bytes(_take(data, position, _BITSET_BYTES), "little")
    if bits.bit_count() != cardinality:
        raise _damaged(f"a container of {cardinality} numbers holds {bits.bit_count()}")
    return position + _BITSET_BYTES, bits.bit_length() - 1


def _ascending(values: tuple[int, ...]) -> bool:
    return not any(map(ge, values, values[1:]))


def _take(data: bytes, start: int, length: int) -> bytes:
    taken = data[start : start + length]
    if len(taken) != length:
        raise _damaged(f"it is cut off after {len(data)} bytes")
    return taken


def _shorts(data: bytes, start: int, count: int) -> tuple[int, ...]:
    return _unpack(f"<{count}H", data, start)


def _unpack(layout: str, data: bytes, start: int) -> tuple[int, ...]:
    return struct.unpack(layout, _take(data, start, struct.calcsize(layout)))


def _damaged(reason: str) -> CorruptTable:
    return CorruptTable(
        f"the bitmap is damaged: {reason}",
        code="damaged-bitmap",
        hint="restore it from a copy, or travel to a version of the table before it",
    )
