from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.delta.upkeep.clustering.hilbert import hilbert_places, hilbert_steps, wide_steps
from alluvium.schema.types import INTEGER
from alluvium.spark.values.ranks import rank_among, rank_key
from alluvium.spark.values.stepped import stepped

POINTS = [((n * 37) % 1024, (n * 101) % 1024, (n * 7) % 1024, n % 1024, (n * 999) % 1024) for n in range(500)]


def test_places_are_those_that_python_finds_step_by_step(spark):
    rows = spark.createDataFrame(POINTS, "a int, b int, c int, d int, e int").coalesce(1)
    place = stepped(spark, [sf.col(c) for c in "abc"], 10, hilbert_steps(3).table)
    found = [row[0] for row in rows.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*POINTS, strict=True))[:3], 10)


def test_a_variable_of_the_session_is_no_column(spark):
    rows = spark.createDataFrame(POINTS, "a int, b int, c int, d int, e int").coalesce(1)
    spark.sql("declare or replace variable b int default 5")
    try:
        place = stepped(spark, [sf.col(c) for c in "abc"], 10, hilbert_steps(3).table)
        key = rank_key(["b"], INTEGER)
        rank = rank_among(spark, key, [100, 300], [7, 8, 9])
        found = [tuple(row) for row in rows.select(place.alias("place"), rank.alias("rank")).collect()]
    finally:
        spark.sql("drop temporary variable b")
    ranks = [7 if point[1] <= 100 else 8 if point[1] <= 300 else 9 for point in POINTS]
    assert found == list(zip(hilbert_places(list(zip(*POINTS, strict=True))[:3], 10), ranks, strict=True))


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_places_are_the_same_by_several_bits_at_once(spark, columns):
    rows = spark.createDataFrame(POINTS, "a int, b int, c int, d int, e int").coalesce(1)
    steps = wide_steps(columns, 10)
    assert (steps.bits > 1) == (columns < 5)
    place = stepped(spark, [sf.col(c) for c in "abcde"[:columns]], 10, steps.table, steps.bits)
    found = [row[0] for row in rows.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*POINTS, strict=True))[:columns], 10)
