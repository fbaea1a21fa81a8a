"""DESCRIBE DETAIL, DESCRIBE HISTORY and RESTORE."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.grammar.history import DescribeDetail, DescribeHistory, Restore
from alluvium.api.sql.upkeep.targets import delta_table


def run(spark: SparkSession, statement: DescribeDetail | DescribeHistory | Restore) -> DataFrame | None:
    """Carries out one of the statements."""
    table = delta_table(spark, statement.target)
    if table is None:
        return None
    if isinstance(statement, DescribeDetail):
        return table.detail()
    if isinstance(statement, DescribeHistory):
        return table.history(statement.limit)  # type: ignore[arg-type]  # parameters are bound
    return _restored(table, statement)


def _restored(table: DeltaTable, statement: Restore) -> DataFrame:
    point = statement.as_of
    if point.version is not None:
        done = table.restoreToVersion(point.version)  # type: ignore[arg-type]  # parameters are bound
    else:
        done = table.restoreToTimestamp(point.timestamp)  # type: ignore[arg-type]  # parameters are bound
    assert isinstance(done, DataFrame)
    return done
