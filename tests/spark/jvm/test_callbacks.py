"""What the JVM's threads leave in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from alluvium.spark.scan.native_lane.native import read_native

pytestmark = pytest.mark.spark


def test_threads_that_have_ended_leave_nothing(spark: SparkSession, make_source: Callable[..., Any]) -> None:
    source = make_source([pa.table({"id": range(10)})])
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        counts = []
        for turn in range(12):
            # Each is planned in a thread of its own, which ends with it; its filter is one that nobody has asked about.
            assert read_native(spark, source).where(f"id >= {turn}").toArrow().num_rows == max(0, 10 - turn)
            counts.append(threading.active_count())
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    # The last one is known to have ended when the next calls.
    assert counts[-1] - counts[2] <= 2, counts
