"""ALTER TABLE ADD | DROP CONSTRAINT and ADD | DROP FEATURE."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.sql.grammar.alter import AddConstraint, AddFeature, DropConstraint, DropFeature
from alluvium.api.sql.upkeep.targets import delta_table


def run(spark: SparkSession, statement: AddConstraint | AddFeature | DropConstraint | DropFeature) -> DataFrame | None:
    """Carries out one of the statements; the answer has no columns."""
    table = delta_table(spark, statement.target)
    if table is None:
        return None
    if isinstance(statement, AddConstraint):
        table.addConstraint(statement.name, statement.check.text)
    elif isinstance(statement, DropConstraint):
        table.dropConstraint(statement.name, ifExists=statement.if_exists)
    elif isinstance(statement, AddFeature):
        table.addFeatureSupport(statement.feature)
    else:
        table.dropFeatureSupport(statement.feature, statement.truncate_history or None)
    return spark.createDataFrame([], StructType())
