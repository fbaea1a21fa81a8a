"""VACUUM."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.upkeep.vacuum import vacuum_in_session
from alluvium.api.sql.grammar.vacuum import Vacuum
from alluvium.api.sql.text.terms import PathLiteral, SqlText, TableName
from alluvium.api.sql.upkeep.targets import table_access
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview
from alluvium.spark.sessions.catalog import quoted_name


def run(spark: SparkSession, statement: Vacuum) -> DataFrame | None:
    """Carries it out: the answer is the table's path, or with DRY RUN what would go, in a column `path`."""
    with counterparts("path" if isinstance(statement.target, PathLiteral) else "vacuum"):
        access = table_access(spark, statement.target)
        if access is None:
            return None
        hours = statement.retain_hours
        assert hours is None or isinstance(hours, (int, float))  # parameters are bound
        inventory = _inventory(spark, statement.inventory)
        done = vacuum_in_session(spark, access, hours, statement.lite is True, inventory, statement.dry_run)
        return spark.createDataFrame(pa.table({"path": _paths(access, done)}), "path string")


def _paths(access: TableAccess, done: object) -> pa.Array:
    store = access.store()
    if not isinstance(done, VacuumPreview):
        return pa.array([store.uri("")], pa.string())
    found = [*done.files.column("path").to_pylist(), *done.directories]
    return pa.array([store.uri(path) for path in found], pa.string())


def _inventory(spark: SparkSession, inventory: object) -> DataFrame | None:
    if inventory is None:
        return None
    if isinstance(inventory, SqlText):
        return spark.sql(inventory.text)
    assert isinstance(inventory, TableName)  # parameters are bound
    return spark.table(quoted_name(inventory.parts))
