"""The tables that statements name which only Delta knows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.api.delta.delta_access import TableAccess, named_access, path_access
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.text.terms import PathLiteral, TableName, Target
from alluvium.errors import NotFound
from alluvium.spark.sessions.catalog import find_relation, quoted_name


def table_access(spark: SparkSession, target: Target) -> TableAccess | None:
    """The table of ours that a statement is about; None where the name is that of somebody else's table.

    Raises:
        NotFound: There is no table at the path, or of that name.
    """
    if isinstance(target, PathLiteral):
        access: TableAccess | None = path_access(spark, str(target.path))
    else:
        assert isinstance(target, TableName)  # parameters are bound
        name = quoted_name(target.parts)
        access = named_access(spark, name)
        if access is None and find_relation(spark, name) is not None:
            return None
    if access is None or access.newest() is None:
        shown = target.path if isinstance(target, PathLiteral) else ".".join(target.parts)
        raise NotFound(
            f"{shown!r} is not a Delta table",
            code="not-a-table",
            url=None if access is None else access.url,
            hint="a table is what holds a folder _delta_log",
        )
    return access


def delta_table(spark: SparkSession, target: Target) -> DeltaTable | None:
    """The same, for its verbs."""
    access = table_access(spark, target)
    return None if access is None else DeltaTable(spark, access)
