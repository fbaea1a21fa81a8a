"""Whole numbers of variable length, as Protocol Buffers, Avro and Paimon's files hold them."""

from __future__ import annotations

#: Seven bits a byte: ten bytes hold the 64 bits of any number.
_MOST_BYTES = 10


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """The number that begins at a position, and where the next thing begins.

    Raises:
        IndexError: The data end before the number does.
        ValueError: It has more than 64 bits.
    """
    value = 0
    for n in range(_MOST_BYTES):
        byte = data[position + n]
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value, position + n + 1
    raise ValueError(f"a number at byte {position} has more than 64 bits")


def read_signed(data: bytes, position: int) -> tuple[int, int]:
    """As `read_unsigned`, of a number written in zigzag: 0, -1, 1, -2, ..."""
    value, after = read_unsigned(data, position)
    return (value >> 1) ^ -(value & 1), after
