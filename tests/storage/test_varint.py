"""Whole numbers of variable length, as Protocol Buffers write them: beside the rule, digit by digit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.storage.varint import read_signed, read_unsigned


def written(number: int) -> bytes:
    digits = []
    while True:
        number, digit = divmod(number, 128)
        digits.append(digit + (128 if number else 0))
        if not number:
            return bytes(digits)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_numbers_stand_anywhere(number: int, before: bytes, behind: bytes) -> None:
    data = before + written(number) + behind
    assert read_unsigned(data, len(before)) == (number, len(data) - len(behind))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signs_are_the_last_bit(number: int) -> None:
    zigzag = 2 * number if number >= 0 else -2 * number - 1
    data = written(zigzag)
    assert read_signed(data, 0) == (number, len(data))


def test_numbers_that_do_not_end() -> None:
    for data in (b"", b"\x80", b"\xff" * 9):
        with pytest.raises(IndexError):
            read_unsigned(data, 0)
    for data in (b"\x80" * 10 + b"\x01", b"\xff" * 20):
        with pytest.raises(ValueError, match="64 bits"):
            read_unsigned(b"x" + data, 1)
    assert read_unsigned(b"\x80" * 9 + b"\x01", 0) == (1 << 63, 10)
