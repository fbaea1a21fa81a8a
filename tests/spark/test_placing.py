from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.spark.placing import place_rows, task_keys


@pytest.mark.parametrize("tasks", [1, 2, 3, 200])
def test_each_task_has_a_key(tasks):
    assert len(set(task_keys(tasks))) == tasks


def test_spark_sends_rows_where_their_keys_say(spark):
    for tasks in (1, 7):
        keys = task_keys(tasks)
        rows = spark.createDataFrame([(key, n) for n, key in enumerate(keys)], "key long, task int")
        placed = place_rows(rows, sf.col("key"), tasks).select("task", sf.spark_partition_id().alias("at"))
        assert all(task == at for task, at in placed.collect())
