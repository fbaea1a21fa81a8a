from __future__ import annotations

from pyspark.sql import functions as sf

from alluvium.delta.upkeep.clustering.hilbert import hilbert_places, hilbert_steps
from alluvium.spark.values.stepped import stepped


def test_places_are_those_that_python_finds(spark):
    points = [((n * 37) % 1024, (n * 101) % 1024, (n * 7) % 1024) for n in range(500)]
    rows = spark.createDataFrame(points, "x int, y int, z int").coalesce(1)
    place = stepped(spark, [sf.col(c) for c in "xyz"], 10, hilbert_steps(3).table)
    found = [row[0] for row in rows.select(place.alias("place")).collect()]
    assert found == hilbert_places(list(zip(*points, strict=True)), 10)
