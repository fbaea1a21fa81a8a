"""What OPTIMIZE answers, as a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.delta_views import few_rows
from alluvium.api.delta.optimize.metrics import MEASURED, RESULT, optimized_row
from alluvium.commands.optimize.outcome import Optimized
from alluvium.spark.naming.types import to_spark


def optimized_frame(spark: SparkSession, url: str, done: Optimized, measures: bool = False) -> DataFrame:
    """One row: where the table is, and what was done.

    Args:
        spark: The session.
        url: Where the table is.
        done: What was done.
        measures: Whether a column `lookUps` is added: how many files were opened for a value, and are now.
    """
    shown = MEASURED if measures else RESULT
    row = optimized_row(url, done)
    return few_rows(spark, [{name: row[name] for name in shown.names}], to_spark(shown))
