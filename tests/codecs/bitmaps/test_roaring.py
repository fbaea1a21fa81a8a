"""Roaring bitmaps against pyroaring (CRoaring) and plain sets."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from alluvium.codecs.bitmaps.roaring import (
    bits_of,
    highest_of,
    parse_bitmap,
    parse_bitmap_list,
    positions_of,
    size_of_bits,
    subtract,
    window,
)
from alluvium.errors import CorruptTable

#: Containers of all kinds: single values, runs, dense and thinned ranges, high keys.
_BLOCKS = st.one_of(
    st.sets(st.integers(0, 300_000), max_size=20),
    st.sets(st.integers(0, (1 << 63) - 1), max_size=5),
    st.builds(
        lambda start, length, step: set(range(start, start + length, step)),
        st.integers(0, 200_000) | st.integers((1 << 32) - 5000, (1 << 32) + 5000),
        st.integers(0, 30_000),
        st.integers(1, 7),
    ),
)
_SETS = st.lists(_BLOCKS, max_size=4).map(lambda blocks: set().union(*blocks))


def serialized(values: set[int], runs: bool = True) -> bytes:
    bitmap = BitMap64(values)
    if runs:
        bitmap.run_optimize()
    return bytes(bitmap.serialize())


@given(_SETS, st.booleans())
def test_what_others_write_is_read(values: set[int], runs: bool) -> None:
    data = serialized(values, runs)
    bitmap = parse_bitmap(data)
    assert bitmap.cardinality == len(values)
    assert bitmap.data == data
    assert list(positions_of(bitmap.data)) == sorted(values)


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_the_greatest_array_and_the_least_bitset(count: int) -> None:
    values = set(range(0, 3 * count, 3))
    bitmap = parse_bitmap(serialized(values, runs=False))
    assert list(positions_of(bitmap.data)) == sorted(values)


@pytest.mark.long
@given(st.lists(st.sets(st.integers(0, 100_000), max_size=30), max_size=4), st.sampled_from(["<", ">"]))
def test_a_list_of_bitmaps_is_the_same_in_the_portable_format(buckets: list[set[int]], order: str) -> None:
    byte_order = "little" if order == "<" else "big"
    data = len(buckets).to_bytes(4, byte_order)  # type: ignore[arg-type]
    for bucket in buckets:
        part = BitMap(bucket).serialize()
        data += len(part).to_bytes(4, byte_order) + part  # type: ignore[arg-type]
    expected = {high << 32 | low for high, bucket in enumerate(buckets) for low in bucket}
    bitmap = parse_bitmap_list(data, order)
    assert bitmap.cardinality == len(expected)
    assert list(positions_of(bitmap.data)) == sorted(expected)
    with pytest.raises(CorruptTable):
        parse_bitmap_list(data + b"\0", order)


def test_empty_buckets_are_dropped() -> None:
    """Writers that keep an array of 32-bit bitmaps write the empty ones, too."""
    empty, one = BitMap().serialize(), BitMap([7]).serialize()
    data = (3).to_bytes(8, "little") + b"".join(
        key.to_bytes(4, "little") + part for key, part in enumerate((empty, empty, one))
    )
    bitmap = parse_bitmap(data)
    assert list(positions_of(bitmap.data)) == [(2 << 32) + 7]
    assert parse_bitmap(bytes(8)).cardinality == 0


SAMPLES = [
    serialized({1, 5, 70_000, 1 << 40}),
    serialized(set(range(10, 5000)) | {70_000, 140_000, 210_000, 280_000}),
    serialized(set(range(0, 60_000, 3)), runs=False),
]


@pytest.mark.parametrize("data", SAMPLES)
def test_every_truncation_is_found(data: bytes) -> None:
    for length in [*range(min(len(data), 300)), *range(300, len(data), 97)]:
        with pytest.raises(CorruptTable) as caught:
            parse_bitmap(data[:length])
        assert caught.value.code == "damaged-bitmap"
    with pytest.raises(CorruptTable, match="it ends after"):
        parse_bitmap(data + b"\0")


@given(st.sampled_from(SAMPLES), st.data())
def test_a_flipped_bit_is_found_or_gives_another_well_formed_set(data: bytes, draw: st.DataObject) -> None:
    """Nothing in the format protects the low bits of a value; but no flip may give a set out of order, or crash."""
    at = draw.draw(st.integers(0, 8 * len(data) - 1))
    flipped = bytearray(data)
    flipped[at // 8] ^= 1 << at % 8
    try:
        bitmap = parse_bitmap(bytes(flipped))
    except CorruptTable:
        return
    found = list(positions_of(bitmap.data))
    assert found == sorted(set(found))
    assert len(found) == bitmap.cardinality


def bucket(content: str, high: int = 0) -> bytes:
    return (1).to_bytes(8, "little") + high.to_bytes(4, "little") + bytes.fromhex(content)


ONE = "3a300000 01000000 0000 0000 10000000 0700"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bucket(ONE, high=1 << 31), "the bucket 2147483648"),
        ((2).to_bytes(8, "little") + bucket(ONE)[8:] * 2, "the bucket 0 follows 0"),
        (bucket("3c300000 00000000"), "begins no bitmap"),
        (bucket("3a300000 01000100"), "65537 containers"),
        (bucket("3a300000 02000000 0100 0000 0000 0000 18000000 1a000000 0000 0000"), "containers are out of order"),
        (bucket("3a300000 01000000 0000 0100 10000000 0700 0700"), "numbers are out of order"),
        (bucket("3a300000 01000000 0000 0000 11000000 0700"), "not where the header says"),
        (bucket("3b300000 01 0000 0300 0200 0000 0100 0100 0100"), "runs are out of order"),
        (bucket("3b300000 01 0000 0100 0100 ffff 0100"), "runs are out of order"),
        (bucket("3b300000 01 0000 0500 0100 0000 0100"), "a container of 6 numbers holds 2"),
        (bucket("3a300000 01000000 0000 ffff 10000000" + "00" * 8192), "a container of 65536 numbers holds 0"),
        (b"\xff" * 8, "cut off"),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes, reason: str) -> None:
    assert list(positions_of(parse_bitmap(bucket(ONE)).data)) == [7]
    with pytest.raises(CorruptTable, match=reason):
        parse_bitmap(data)


@pytest.mark.long
@given(_SETS, _SETS)
def test_subtraction(left: set[int], right: set[int]) -> None:
    found = subtract(serialized(left), serialized(right))
    assert (set() if found is None else set(positions_of(found))) == left - right
    assert found is None or found == parse_bitmap(found).data


def test_subtraction_of_what_is_no_bitmap() -> None:
    with pytest.raises(CorruptTable):
        subtract(serialized({1}), b"xx")


@given(
    st.sets(st.integers(0, 5000))
    | st.builds(lambda first, count: set(range(first, first + count)), *[st.integers(0, 9000)] * 2)
)
@settings(deadline=None)
def test_bits(numbers: set[int]) -> None:
    bits = bits_of(BitMap64(numbers).serialize())
    assert len(bits) % 8 == 0
    assert {n for n in range(len(bits) * 8) if bits[n // 8] >> n % 8 & 1} == numbers
    # What lies behind the end may be asked of the last bit.
    assert bits[-1] < 0x80
    assert len(bits) <= max(numbers, default=0) // 8 + 16


#: So many that a seed draws them: one by one they took a tenth of a second each time.
_MANY = st.builds(
    lambda seed, n: set(random.Random(seed).sample(range(65_000, 140_000), n)), st.integers(0), st.integers(5000, 6000)
)


@given(st.sets(st.integers(0, 1 << 40)) | _MANY)
@settings(deadline=None, max_examples=50)
def test_the_highest_number_is_known_beforehand(numbers: set[int]) -> None:
    bitmap, highest = BitMap64(numbers), max(numbers, default=-1)
    for optimized in (False, True):
        if optimized:
            bitmap.run_optimize()
        data = bitmap.serialize()
        assert parse_bitmap(data).highest == highest_of(data) == highest
        if highest < 1 << 20:
            assert size_of_bits(highest) == len(bits_of(data))


@given(st.sets(st.integers(0, 300) | st.integers(0, 1 << 40)), st.integers(-400, 400), st.integers(0, 400))
@settings(deadline=None, max_examples=50)
def test_a_window_begins_at_zero(numbers: set[int], first: int, count: int) -> None:
    found = window(BitMap64(numbers).serialize(), first, count)
    expected = {n - first for n in numbers if first <= n < first + count}
    assert (set() if found is None else set(positions_of(found))) == expected


def test_bits_of_what_cannot_be_row_numbers() -> None:
    for data in (
        BitMap64([1 << 31]).serialize(),
        BitMap64([(1 << 31) - 64]).serialize(),
        BitMap64([(1 << 31) - 128]).serialize(),
        BitMap64([1 << 62]).serialize(),
        b"x",
    ):
        with pytest.raises(CorruptTable) as raised:
            bits_of(data)
        assert raised.value.code == "damaged-bitmap"
