"""Blocks of bits, as Spark's bitmap aggregates give them, to roaring bitmaps: without a loop over positions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from alluvium.errors import CorruptTable

#: Bits of a block: what Spark's `bitmap_construct_agg` makes, 4 KB.
BLOCK_BITS = 32768


def roaring_of_blocks(blocks: Iterable[tuple[int, bytes]]) -> tuple[bytes, int]:
    """One bitmap (portable 64-bit format) and how many positions it holds.

    Args:
        blocks: Number of a block and its bits, least significant first: bit b of block n is position n * 32768 + b.
    """
    found = BitMap64()
    for number, bits in blocks:
        flags = pa.Array.from_buffers(pa.bool_(), 8 * len(bits), [None, pa.py_buffer(bits)])
        positions = pc.add(pc.indices_nonzero(flags), pa.scalar(number * BLOCK_BITS, pa.uint64()))
        values = array("Q")
        values.frombytes(positions.to_numpy(zero_copy_only=False).tobytes())
        found |= BitMap64(values)
    return found.serialize(), len(found)


def union(left: bytes, right: bytes) -> tuple[bytes, int]:
    """The numbers of two bitmaps (portable 64-bit format), and how many there are.

    Raises:
        CorruptTable: `"damaged-bitmap"`.
    """
    try:
        both = BitMap64.deserialize(left) | BitMap64.deserialize(right)
    except (ValueError, RuntimeError) as error:
        raise CorruptTable(f"the bitmap is damaged: {error}", code="damaged-bitmap") from None
    return both.serialize(), len(both)


def last_position(bitmap: bytes) -> int:
    """The greatest number of a bitmap (portable 64-bit format) that is not empty."""
    return int(BitMap64.deserialize(bitmap).max())
