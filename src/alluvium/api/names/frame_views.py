"""Temporary views of frames, and the tables of ours that they show: `spark.table("t").createOrReplaceTempView("v")`.

Spark would write the rows of an INSERT straight into files below such a view, past the log; so it is not asked to.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.api.delta.delta_access import PROVIDER, TableAccess, known_access, path_access
from alluvium.delta.view.source import DeltaSource
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.scan.native_lane.index import PlannedFiles, columns_of, items, planned_files
from alluvium.spark.sessions.catalog import quoted_name
from alluvium.spark.sessions.session import session_catalog

_CATALOG = "spark_catalog"
#: Views that a statement made of a path (`CREATE TEMPORARY VIEW v USING delta`): what the session has of it, the path.
_of_paths: WeakKeyDictionary[SparkSession, dict[tuple[str, ...], tuple[JavaObject, str]]] = WeakKeyDictionary()


def note_view(spark: SparkSession, parts: tuple[str, ...], url: str) -> None:
    """Says that a temporary view has just been made of a table's path, by which Spark would insert rows, too."""
    made = _told_of(spark, parts)
    if made is not None:
        _of_paths.setdefault(spark, {})[_key(parts)] = made, url


def _noted_access(spark: SparkSession, parts: tuple[str, ...]) -> TableAccess | None:
    """The table of such a view; a view that was made since under its name is another one."""
    made, url = _of_paths.get(spark, {}).get(_key(parts), (None, ""))
    return path_access(spark, url) if made is not None and made.equals(_told_of(spark, parts)) else None


def _told_of(spark: SparkSession, parts: tuple[str, ...]) -> JavaObject | None:
    """What the session has of a temporary view, its time among it."""
    found = session_catalog(spark).getRawLocalOrGlobalTempView(java_of(spark).seq(list(parts)))
    return found.get().tableMeta() if found.isDefined() else None


def _key(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def insertable_access(spark: SparkSession, name: str) -> TableAccess | None:
    """The table of ours of a name, be it that of a view of a frame of it."""
    access = known_access(spark, name)
    if access is not None:
        return access
    try:
        parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    except (PySparkException, Py4JJavaError):
        return None  # Spark says what is wrong with the name
    return framed_access(spark, tuple(str(parts.apply(n)) for n in range(parts.size())))


def framed_access(spark: SparkSession, parts: tuple[str, ...]) -> TableAccess | None:
    """The Delta table that a temporary view shows which was made of a frame of it, of whatever version; None: it is
    another view, one of some of its rows or columns, or none at all.
    """
    if not session_catalog(spark).isTempView(java_of(spark).seq(list(parts))):
        return None
    noted = _noted_access(spark, parts)
    if noted is not None:
        return noted
    plan = spark.table(quoted_name(parts))._jdf.queryExecution().analyzed()
    while (kind := str(plan.nodeName())) in ("SubqueryAlias", "View"):
        if kind == "View" and not bool(plan.isTempViewStoringAnalyzedPlan()):
            return None  # of a query, into which Spark inserts nothing
        name = named_table(plan)
        # Of what stands below the name of a view nothing is known yet.
        if name is not None and str(plan.child().nodeName()) != "View":
            return known_access(spark, name)
        plan = plan.child()
    return leaf_access(spark, _below_masks(plan))


def named_table(alias: JavaObject) -> str | None:
    """The name of the catalog's table whose rows a node is; None for others, and for a name that a statement gave."""
    if str(alias.nodeName()) != "SubqueryAlias":
        return None
    qualifier = alias.identifier().qualifier()
    parts = [str(qualifier.apply(n)) for n in range(qualifier.size())]
    if len(parts) == 2 and parts[0].lower() == _CATALOG and parts[1].lower() == PROVIDER and "/" in str(alias.alias()):
        # Of delta.`/path`, to which Spark puts its catalog.
        parts = parts[1:]
    return quoted_name((*parts, str(alias.alias()))) if parts else None


def leaf_access(spark: SparkSession, plan: JavaObject) -> TableAccess | None:
    """The Delta table whose files a node scans, of whatever version, as nothing but its columns; else None."""
    index = files_of(plan) or masked_files(plan)
    if index is None or not isinstance(index.made_of, DeltaSource):
        return None
    return path_access(spark, index.made_of.place)


def masked_files(plan: JavaObject) -> PlannedFiles | None:
    """The files of a table of ours of which a node leaves out deleted rows, as every frame does that may meet some: it
    hides the column that tells them above.
    """
    if str(plan.nodeName()) != "Filter":
        return None
    index = files_of(plan.child())
    return index if index is not None and not index.internal_columns.isdisjoint(columns_of(plan.condition())) else None


def _below_masks(plan: JavaObject) -> JavaObject:
    """What leaves out deleted rows, below projections that give all columns of the table as they are; of anything else
    the plan itself.
    """
    found = plan
    while str(found.nodeName()) == "Project" and all(map(_is_passed_on, items(found.projectList()))):
        found = found.child()
    index = masked_files(found)
    names = tuple(str(a.name()) for a in items(plan.output()))
    return found if index is not None and names == index.columns else plan


def _is_passed_on(column: JavaObject) -> bool:
    """Whether a projection gives a column of what is below as it is, under its name."""
    inner = column.child() if str(column.nodeName()) == "Alias" else column
    return str(inner.nodeName()) == "AttributeReference" and str(inner.name()) == str(column.name())


def files_of(plan: JavaObject) -> PlannedFiles | None:
    """The files of a table of ours that a node scans."""
    if str(plan.getClass().getSimpleName()) != "LogicalRelation":
        return None
    relation = plan.relation()
    if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
        return None
    return planned_files(str(relation.location().toString()))
