"""DESCRIBE DETAIL, DESCRIBE HISTORY and RESTORE."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, path_access
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.delta.told.detail import DETAIL
from alluvium.api.sql.grammar.history import DescribeDetail, DescribeHistory, Restore
from alluvium.api.sql.text.terms import PathLiteral, TableName, Target
from alluvium.api.sql.upkeep.targets import delta_table
from alluvium.errors import NotFound
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.catalog import find_table, quoted_name
from alluvium.spark.sessions.session import is_connect


def run(spark: SparkSession, statement: DescribeDetail | DescribeHistory | Restore) -> DataFrame | None:
    """Carries out one of the statements."""
    is_detail = isinstance(statement, DescribeDetail)
    if is_detail and isinstance(statement.target, PathLiteral) and not is_connect(spark):
        return _of_path(spark, str(statement.target.path))
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
    return len(target.parts) == 2 and target.parts[0].lower() == PROVIDER


def _of_path(spark: SparkSession, path: str) -> DataFrame:
    """What there is to say of a path: of a folder that is no table, as in the reference, where it is.

    Raises:
        NotFound: `"not-a-table"`: there is nothing.
    """
    access = path_access(spark, path)
    if access.newest() is not None:
        return DeltaTable(spark, access).detail()
    if not _exists(spark, access):
        with counterparts("detail"):
            raise NotFound(
                f"there is nothing at {path!r}",
                code="not-a-table",
                url=access.url,
                hint="a table is what holds a folder _delta_log",
            )
    row: dict[str, object] = {**dict.fromkeys(DETAIL.names), "location": path, "properties": {}}
    return spark.createDataFrame([row], to_spark(DETAIL))


def _exists(spark: SparkSession, access: TableAccess) -> bool:
    """Whether something lies there, be it an empty folder; Hadoop is asked, for which there are such in any store."""
    path = java_of(spark).hadoop_path(access.url)
    return bool(path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path))


def _of_another(spark: SparkSession, target: Target) -> DataFrame | None:
    """What there is to say of a table of another format: as in the reference, little."""
    found = find_table(spark, quoted_name(target.parts)) if isinstance(target, TableName) else None
    if found is None:
        return None
    known = {"format": found.provider, "name": found.name, "description": "", "location": found.location}
    row: dict[str, object] = {**dict.fromkeys(DETAIL.names), "partitionColumns": [], "properties": {}, **known}
    return spark.createDataFrame([row], to_spark(DETAIL))


def _restored(table: DeltaTable, statement: Restore) -> DataFrame:
    point = statement.as_of
    if point.version is not None:
        done = table.restoreToVersion(point.version)  # type: ignore[arg-type]  # parameters are bound
    else:
        done = table.restoreToTimestamp(point.timestamp)  # type: ignore[arg-type]  # parameters are bound
    assert isinstance(done, DataFrame)
    return done
