"""Blocks of bits to roaring bitmaps."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from alluvium.codecs.bitmaps.bits import BLOCK_BITS, last_position, roaring_of_blocks, union
from alluvium.codecs.bitmaps.roaring import parse_bitmap, positions_of
from alluvium.errors import CorruptTable


def block(*positions: int) -> bytes:
    bits = bytearray(BLOCK_BITS // 8)
    for position in positions:
        bits[position // 8] |= 1 << position % 8
    return bytes(bits)


def test_bits_are_positions_in_their_block():
    data, count = roaring_of_blocks([(0, block(0, 7, 8, 32767)), (3, block(1)), (1 << 20, block(5))])
    wanted = [0, 7, 8, 32767, 3 * 32768 + 1, (1 << 20) * 32768 + 5]
    assert list(positions_of(data)) == wanted
    assert (count, parse_bitmap(data).cardinality) == (6, 6)


def test_full_and_empty_blocks():
    data, count = roaring_of_blocks([(0, b"\xff" * 4096), (1, bytes(4096))])
    assert count == 32768
    assert positions_of(data)[-1] == 32767
    assert roaring_of_blocks([])[1] == 0


def test_union():
    left, right = BitMap64([1, 5]).serialize(), BitMap64([5, 1 << 40]).serialize()
    data, count = union(left, right)
    assert (list(positions_of(data)), count, last_position(data)) == ([1, 5, 1 << 40], 3, 1 << 40)
    with pytest.raises(CorruptTable) as caught:
        union(left, b"nonsense")
    assert caught.value.code == "damaged-bitmap"
