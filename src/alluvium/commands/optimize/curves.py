"""Curves that rows are put along: how a place on one comes out of the ranks of a row's values, in Spark and here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, SparkSession

from alluvium.delta.upkeep.clustering.hilbert import MOST_COLUMNS, hilbert_places, wide_steps
from alluvium.delta.upkeep.z_values import Ranges, interleaved
from alluvium.spark.values.ranks import RankKey, rank_among
from alluvium.spark.values.stepped import stepped


@dataclass(frozen=True, slots=True)
class Curve:
    """A way through all combinations of ranks.

    Attributes:
        spread: What stands in rows for a rank: of the rank, its column's number, how many columns there are, and how
            many bits ranks have.
        column: The place of rows in a session: of the columns of what stands for their ranks, and their bits.
        places: The places of a sample, of its ranks.
    """

    spread: Callable[[int, int, int, int], int]
    column: Callable[[SparkSession, Sequence[Column], int], Column]
    places: Callable[[Sequence[Sequence[int]], int], list[int]]

    def ranks(
        self, spark: SparkSession, keys: Sequence[RankKey], ranges: Sequence[Ranges[Any]], bits: int
    ) -> tuple[Column, ...]:
        """The columns that `column` takes.

        Args:
            spark: A session.
            keys: What stands for values of the columns.
            ranges: The ranges of each.
            bits: How many bits ranks have.
        """
        return tuple(
            rank_among(spark, key, r.bounds, [self.spread(start, n, len(keys), bits) for start in r.starts])
            for n, (key, r) in enumerate(zip(keys, ranges, strict=True))
        )


def _z_spread(rank: int, column: int, columns: int, bits: int) -> int:
    """Its bits where they stand in a place."""
    return interleaved([rank if n == column else 0 for n in range(columns)], bits)


def _z_places(ranks: Sequence[Sequence[int]], bits: int) -> list[int]:
    return [interleaved(row, bits) for row in zip(*ranks, strict=True)]


def _z_column(spark: SparkSession, ranks: Sequence[Column], bits: int) -> Column:
    return reduce(lambda left, right: left.bitwiseOR(right), (rank.cast("bigint") for rank in ranks))


def _hilbert_column(spark: SparkSession, ranks: Sequence[Column], bits: int) -> Column:
    steps = wide_steps(len(ranks), bits)
    return stepped(spark, ranks, bits, steps.table, steps.bits)


Z_CURVE = Curve(_z_spread, _z_column, _z_places)
HILBERT_CURVE = Curve(lambda rank, *_: rank, _hilbert_column, hilbert_places)


def clustering_curve(columns: int) -> Curve:
    """The curve for a table that is clustered by so many columns; through very many only the Z-curve is computed."""
    return HILBERT_CURVE if 1 < columns <= MOST_COLUMNS else Z_CURVE
