"""The tables that statements name which only Delta knows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.api.delta.delta_access import TableAccess, named_access, over_connect, path_access
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.text.terms import PathLiteral, TableName, Target
from alluvium.errors import InvalidRequest, NotFound
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.catalog import find_table, quoted_name
from alluvium.spark.sessions.session import is_connect, session_catalog


def table_access(spark: SparkSession, target: Target) -> TableAccess | None:
    """The table of ours that a statement is about; None where the name is that of somebody else's table.

    Raises:
        NotFound: There is no table at the path, or of that name.
        InvalidRequest: The name is a view's (`expects-table`).
        UnsupportedFeature: A name of the catalog, over Spark Connect.
    """
    assert isinstance(target, (PathLiteral, TableName))  # parameters are bound
    if is_connect(spark):
        access: TableAccess | None = _over_connect(spark, target)
    elif isinstance(target, PathLiteral):
        access = path_access(spark, str(target.path))
    else:
        access = named_access(spark, quoted_name(target.parts))
        if access is None and _is_somebodys(spark, target.parts):
            return None
    if access is None or access.newest() is None:
        shown = target.path if isinstance(target, PathLiteral) else ".".join(target.parts)
        raise NotFound(
            f"there is no table called {shown!r}" if access is None else f"{shown!r} is not a Delta table",
            code="not-a-table",
            url=None if access is None else access.url,
            hint="a table is what holds a folder _delta_log",
        )
    return access


def _over_connect(spark: SparkSession, target: PathLiteral | TableName) -> TableAccess:
    """The table of a path: whose names the server's catalog has, it does not tell.

    Raises:
        UnsupportedFeature: It is another name.
    """
    if isinstance(target, PathLiteral):
        return TableAccess(spark, str(target.path))
    return over_connect(spark, target.parts)


def _is_somebodys(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Whether a name is that of a table of another format.

    Raises:
        InvalidRequest: It is that of a view.
    """
    is_temporary = session_catalog(spark).isTempView(java_of(spark).seq(list(parts)))
    found = None if is_temporary else find_table(spark, quoted_name(parts))
    if is_temporary or (found is not None and not found.provider):
        name = ".".join(parts)
        raise InvalidRequest(
            f"the statement is for tables, and {name!r} is a view",
            code="expects-table",
            hint="name the table that the view shows",
        )
    return found is not None


def delta_table(spark: SparkSession, target: Target) -> DeltaTable | None:
    """The same, for its verbs."""
    access = table_access(spark, target)
    return None if access is None else DeltaTable(spark, access)
