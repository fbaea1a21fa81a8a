"""GENERATE."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.sql.grammar.generate import Generate
from alluvium.api.sql.upkeep.targets import delta_table


def run(spark: SparkSession, statement: Generate) -> DataFrame | None:
    """Carries out `GENERATE symlink_format_manifest FOR TABLE t`; the answer has no columns."""
    table = delta_table(spark, statement.target)
    if table is None:
        return None
    table.generate(statement.mode)
    return spark.createDataFrame([], StructType())
