"""Spark's Murmur3 over Arrow columns: what Spark SQL's `hash` and its hash partitioning give.

It is the 32-bit Murmur3 of Austin Appleby but for the tail: Spark mixes each of the last bytes in like a whole word.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

#: Seed of Spark's `hash` and of its hash partitioning.
SPARK_SEED = 42

_C1, _C2 = 0xCC9E2D51, 0x1B873593
_WORD = pa.uint32()


def hash_texts(texts: pa.Array, seeds: pa.Array | None = None) -> pa.Array:
    """The hash of each text (or binary value), chained to those of other columns of its row.

    Args:
        texts: Of any length.
        seeds: int32, the hashes so far; None: `SPARK_SEED`.

    Returns:
        int32; where a text is null, its seed.
    """
    before = pa.repeat(pa.scalar(SPARK_SEED, pa.int32()), len(texts)) if seeds is None else seeds
    data = pc.fill_null(texts.cast(pa.binary()), b"")
    lengths = pc.binary_length(data).cast(_WORD)
    hashes = _words(before.view(_WORD))
    longest = pc.max(lengths).as_py() or 0
    whole = pc.bit_wise_and(lengths, _scalar(0xFFFFFFFC))
    for start in range(0, longest - longest % 4, 4):
        word = _word_at(data, start, 4)
        hashes = pc.if_else(pc.greater(whole, start), _mixed(hashes, word), hashes)
    for tail in range(3):
        at = pc.add(whole, _scalar(tail))
        inside = pc.less(at, lengths)
        hashes = pc.if_else(inside, _mixed(hashes, _signed_bytes(data, lengths, tail)), hashes)
    hashes = _finished(pc.bit_wise_xor(hashes, lengths)).view(pa.int32())
    return pc.if_else(texts.is_valid(), hashes, before)


def partition_of(hashes: pa.Array, partitions: int) -> pa.Array:
    """In which of so many partitions Spark puts a row of this hash: the remainder that is not negative.

    Args:
        hashes: int32.
        partitions: How many there are, at least 1.
    """
    wide = hashes.cast(pa.int64())
    floor = pc.floor(pc.divide(wide.cast(pa.float64()), float(partitions))).cast(pa.int64())
    return pc.subtract(wide, pc.multiply(floor, partitions)).cast(pa.int32())


def _scalar(value: int) -> pa.Scalar:
    return pa.scalar(value, _WORD)


def _words(values: pa.Array) -> pa.Array:
    return values.cast(_WORD)


def _word_at(data: pa.Array, start: int, size: int) -> pa.Array:
    """Four bytes of each value as a little-endian number; those of shorter values mean nothing."""
    piece = pc.binary_slice(data, start, start + size)
    padded = pc.binary_slice(pc.binary_join_element_wise(piece, b"\0\0\0\0", b""), 0, 4)
    return padded.cast(pa.binary(4)).view(_WORD)


def _signed_bytes(data: pa.Array, lengths: pa.Array, tail: int) -> pa.Array:
    """The byte at place `tail` behind the last whole word, as the JVM widens bytes: with its sign."""
    # What is left of each value is one of four short pieces, so that slices of fixed bounds do.
    result = pa.repeat(_scalar(0), len(data))
    rest = pc.bit_wise_and(lengths, _scalar(3))
    for remaining in range(tail + 1, 4):
        start = tail - remaining
        piece = pc.binary_slice(data, start, start + 1 if start + 1 < 0 else None)
        one = pc.binary_slice(pc.binary_join_element_wise(piece, b"\0", b""), 0, 1)
        signed = one.cast(pa.binary(1)).view(pa.int8()).cast(pa.int32()).view(_WORD)
        result = pc.if_else(pc.equal(rest, remaining), signed, result)
    return result


def _rotated(values: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(values, _scalar(bits)), pc.shift_right(values, _scalar(32 - bits)))


def _mixed(hashes: pa.Array, words: pa.Array) -> pa.Array:
    word = pc.multiply(_rotated(pc.multiply(words, _scalar(_C1)), 15), _scalar(_C2))
    return pc.add(pc.multiply(_rotated(pc.bit_wise_xor(hashes, word), 13), _scalar(5)), _scalar(0xE6546B64))


def _finished(hashes: pa.Array) -> pa.Array:
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = pc.multiply(pc.bit_wise_xor(hashes, pc.shift_right(hashes, _scalar(shift))), _scalar(factor))
    return pc.bit_wise_xor(hashes, pc.shift_right(hashes, _scalar(16)))
