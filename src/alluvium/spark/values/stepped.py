"""Places along a curve that a table of steps describes, computed row by row in the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.spark.values.ranks import constant_array


def stepped(spark: SparkSession, ranks: Sequence[Column], bits: int, table: Sequence[int], at_once: int = 1) -> Column:
    """The place of each row, a bigint: so many bits of every rank, looked up from the highest on.

    Args:
        spark: A session.
        ranks: A number for each dimension.
        bits: How many bits of each are used.
        table: Where the walk stands, shifted by the bits of a step, with the next bits of each rank below it, is the
            place in this. There is the next stand, shifted alike, with the next bits of the curve below it.
        at_once: How many bits of each rank a step takes; so many times a whole number are `bits`.
    """
    steps, width = constant_array(spark, table), len(ranks) * at_once
    below = (1 << width) - 1
    stand: Column | None = None
    parts = []
    for bit in reversed(range(0, bits, at_once)):
        next_bits = reduce(lambda left, right: left.bitwiseOR(right), _bits(ranks, bit, at_once))
        # In `steps[...]` Spark 4.0 takes a column for the session's variable of that name, if there is one.
        step = sf.get(steps, next_bits if stand is None else stand.bitwiseOR(next_bits))
        parts.append(sf.shiftleft(step.bitwiseAND(sf.lit(below)).cast("bigint"), bit * len(ranks)))
        stand = step.bitwiseAND(sf.lit(~below))
    return reduce(lambda left, right: left.bitwiseOR(right), parts)


def _bits(ranks: Sequence[Column], bit: int, count: int) -> list[Column]:
    """So many bits of each rank from one on, the first rank's highest."""
    taken = [sf.shiftright(rank.cast("int"), bit).bitwiseAND(sf.lit((1 << count) - 1)) for rank in ranks]
    return [sf.shiftleft(some, (len(ranks) - 1 - n) * count) for n, some in enumerate(taken)]
