from __future__ import annotations

from pyspark.sql import functions as sf

from alluvium.commands.optimize.bins import Order, task_key


def test_a_row_goes_to_the_part_that_its_place_is_in_however_many_bins_there_are(spark):
    """Cases within each other would overflow the stack of Spark's analysis."""
    bins = 250
    first, keys = range(0, 3 * bins, 3), range(100, 100 + 3 * bins)
    order = Order(sf.col("place"), {n: (10, 20) if n % 2 else (10,) for n in range(bins)})
    rows = [(100 + 3 * n, place) for n in (0, 1, bins - 1) for place in (0, 9, 10, 20)] + [(7, 10)]
    df = spark.createDataFrame(rows, "own long, place long").coalesce(1)
    found = df.select(task_key(sf.col("own"), sf.col("place"), order, keys, first).alias("key")).collect()
    last = 100 + 3 * (bins - 1)
    assert [row["key"] for row in found] == [
        100, 100, 101, 101, 103, 103, 104, 105, last, last, last + 1, last + 2, 7
    ]  # fmt: skip
