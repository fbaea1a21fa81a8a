"""A source on the lane that a session takes by itself."""

from __future__ import annotations

import importlib

from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.sessions.session import choose_lane, is_connect


def read_own_lane(spark: SparkSession, source: ScanSource) -> DataFrame:
    """The rows of a source, by the reader of the driver's Spark or of the server's.

    Args:
        spark: A session, classic or of Connect.
        source: What to read.

    Raises:
        InvalidRequest: `"no-jvm"`: the session has been stopped.
        UnsupportedFeature: The plan has what the lane cannot do.
    """
    if not is_connect(spark):
        return read_native(spark, source)
    # Loaded by name: it needs packages that a classic session does without.
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect_frame")
    frame: DataFrame = connect.read_connect(spark, source, choose_lane(spark).why)
    return frame
