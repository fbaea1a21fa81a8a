"""DESCRIBE DETAIL, DESCRIBE HISTORY and RESTORE."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import PROVIDER
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.delta.delta_views import DETAIL
from alluvium.api.sql.grammar.history import DescribeDetail, DescribeHistory, Restore
from alluvium.api.sql.text.terms import PathLiteral, TableName, Target
from alluvium.api.sql.upkeep.targets import delta_table
from alluvium.spark.sessions.catalog import find_table, quoted_name


def run(spark: SparkSession, statement: DescribeDetail | DescribeHistory | Restore) -> DataFrame | None:
    """Carries out one of the statements."""
    with _door(statement):
        table = delta_table(spark, statement.target)
    if table is None:
        return _of_another(spark, statement.target) if isinstance(statement, DescribeDetail) else None
    if isinstance(statement, DescribeDetail):
        return table.detail()
    if isinstance(statement, DescribeHistory):
        return table.history(statement.limit)  # type: ignore[arg-type]  # parameters are bound
    return _restored(table, statement)


def _door(statement: DescribeDetail | DescribeHistory | Restore) -> AbstractContextManager[None]:
    if isinstance(statement, Restore):
        return counterparts("restore")
    target = statement.target
    is_path = isinstance(target, PathLiteral) or (isinstance(target, TableName) and _names_path(target))
    return counterparts("path") if is_path and isinstance(statement, DescribeHistory) else nullcontext()


def _names_path(target: TableName) -> bool:
    """Whether it is delta.`/path`."""
    return len(target.parts) == 2 and target.parts[0].casefold() == PROVIDER


def _of_another(spark: SparkSession, target: Target) -> DataFrame | None:
    """What there is to say of a table of another format: as in the reference, little."""
    found = find_table(spark, quoted_name(target.parts)) if isinstance(target, TableName) else None
    if found is None:
        return None
    known = {"format": found.provider, "name": found.name, "description": "", "location": found.location}
    row: dict[str, object] = {**dict.fromkeys(DETAIL.names), "partitionColumns": [], "properties": {}, **known}
    return spark.createDataFrame([row], DETAIL)


def _restored(table: DeltaTable, statement: Restore) -> DataFrame:
    point = statement.as_of
    if point.version is not None:
        done = table.restoreToVersion(point.version)  # type: ignore[arg-type]  # parameters are bound
    else:
        done = table.restoreToTimestamp(point.timestamp)  # type: ignore[arg-type]  # parameters are bound
    assert isinstance(done, DataFrame)
    return done
