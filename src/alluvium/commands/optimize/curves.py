"""Curves that rows are put along: how a place on one comes out of the ranks of a row's values, in Spark and here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession

from alluvium.delta.upkeep.clustering.hilbert import MOST_COLUMNS, hilbert_places, hilbert_steps
from alluvium.delta.upkeep.z_values import interleaved
from alluvium.spark.values.ranks import interleave
from alluvium.spark.values.stepped import stepped


@dataclass(frozen=True, slots=True)
class Curve:
    """A way through all combinations of ranks.

    Attributes:
        column: Of rows in a classic session: the columns of their ranks, and how many bits these have.
        places: The same of a sample.
    """

    column: Callable[[SparkSession, Sequence[Column], int], Column]
    places: Callable[[Sequence[Sequence[int]], int], list[int]]


def _z_places(ranks: Sequence[Sequence[int]], bits: int) -> list[int]:
    return [interleaved(row, bits) for row in zip(*ranks, strict=True)]


def _z_column(spark: SparkSession, ranks: Sequence[Column], bits: int) -> Column:
    return interleave(ranks, bits)


def _hilbert_column(spark: SparkSession, ranks: Sequence[Column], bits: int) -> Column:
    return stepped(spark, ranks, bits, hilbert_steps(len(ranks)).table)


Z_CURVE = Curve(_z_column, _z_places)
HILBERT_CURVE = Curve(_hilbert_column, hilbert_places)


def clustering_curve(columns: int) -> Curve:
    """The curve for a table that is clustered by so many columns; through very many only the Z-curve is computed."""
    return HILBERT_CURVE if 1 < columns <= MOST_COLUMNS else Z_CURVE
