from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.delta.upkeep.clustering.hilbert import hilbert_places, hilbert_steps, wide_steps
from alluvium.spark.values.stepped import stepped

POINTS = [((n * 37) % 1024, (n * 101) % 1024, (n * 7) % 1024, n % 1024, (n * 999) % 1024) for n in range(500)]


def test_places_are_those_that_python_finds_step_by_step(spark):
    rows = spark.createDataFrame(POINTS, "a int, b int, c int, d int, e int").coalesce(1)
    place = stepped(spark, [sf.col(c) for c in "abc"], 10, hilbert_steps(3).table)
    found = [row[0] for row in rows.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*POINTS, strict=True))[:3], 10)


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_places_are_the_same_by_several_bits_at_once(spark, columns):
    rows = spark.createDataFrame(POINTS, "a int, b int, c int, d int, e int").coalesce(1)
    steps = wide_steps(columns, 10)
    assert (steps.bits > 1) == (columns < 5)
    place = stepped(spark, [sf.col(c) for c in "abcde"[:columns]], 10, steps.table, steps.bits)
    found = [row[0] for row in rows.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*POINTS, strict=True))[:columns], 10)
