from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.codecs.murmur3 import SPARK_SEED, hash_texts, partition_of

_MASK = 0xFFFFFFFF


def plain_hash(data: bytes, seed: int) -> int:
    """Murmur3 as its description reads, value by value, with Spark's tail."""
    state = seed & _MASK
    whole = len(data) - len(data) % 4
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]
    words += [(byte - 256 if byte > 127 else byte) & _MASK for byte in data[whole:]]
    for word in words:
        word = word * 0xCC9E2D51 & _MASK
        word = (word << 15 | word >> 17) & _MASK
        state ^= word * 0x1B873593 & _MASK
        state = (state << 13 | state >> 19) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def test_figures_of_spark() -> None:
    """`select hash('Spark')` and `select hash('')` on Spark 4.3; a null leaves the seed."""
    assert hash_texts(pa.array(["Spark", "", None])).to_pylist() == [228093765, 142593372, SPARK_SEED]


@pytest.mark.long
@given(st.lists(st.tuples(st.none() | st.binary(max_size=40), st.integers(-(2**31), 2**31 - 1)), max_size=30))
def test_it_is_the_hash_of_each_value(rows: list[tuple[bytes | None, int]]) -> None:
    values = pa.array([value for value, _ in rows], pa.binary())
    seeds = pa.array([seed for _, seed in rows], pa.int32())
    expected = [seed if value is None else plain_hash(value, seed) for value, seed in rows]
    assert hash_texts(values, seeds).to_pylist() == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1)), st.integers(1, 1 << 20))
def test_partitions_are_remainders_that_are_not_negative(hashes: list[int], partitions: int) -> None:
    assert partition_of(pa.array(hashes, pa.int32()), partitions).to_pylist() == [h % partitions for h in hashes]
