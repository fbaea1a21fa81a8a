"""Which scans of a plan read a table, and what of it they show: what a statement over the table has to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.scan.native_lane.describe import About, about_workers
from alluvium.spark.scan.native_lane.index import PlannedFiles, items, planned_files
from alluvium.spark.scan.own_table import OwnTable
from alluvium.storage.places import same_place

#: A scan of a table: its source, or what a scan of Python workers tells of itself; None where it is known that the
#: table's files are read, but not which version of them.
TableRead: TypeAlias = ScanSource | About | None


def reads_of(df: DataFrame, own: OwnTable) -> tuple[TableRead, ...]:
    """The scans of a table below some rows, those of subqueries included.

    Args:
        df: Of a classic session.
        own: The table.
    """
    execution = df._jdf.queryExecution()
    return _all_reads(df.sparkSession, execution.analyzed(), execution.withCachedData(), own)


def reads_of_plan(spark: SparkSession, plan: JavaObject, own: OwnTable) -> tuple[TableRead, ...]:
    """The same of a plan of Catalyst, analysed, as if nothing of it were in Spark's cache."""
    return _all_reads(spark, plan, plan, own)


def _all_reads(spark: SparkSession, plan: JavaObject, used: JavaObject, own: OwnTable) -> tuple[TableRead, ...]:
    return (*_reads(spark, plan, used, own), *reads_within(spark, plan, own))


def reads_within(spark: SparkSession, plan: JavaObject, own: OwnTable) -> Iterator[TableRead]:
    """The scans of a table in the subqueries of a plan."""
    manager = spark._jsparkSession.sharedState().cacheManager()
    for each in items(plan.subqueriesAll()):
        yield from _reads(spark, each, each if manager.isEmpty() else manager.useCachedData(each), own)


def _reads(spark: SparkSession, plan: JavaObject, used: JavaObject, own: OwnTable) -> Iterator[TableRead]:
    """The scans of a table in a plan; `used`: the plan with what is in Spark's cache."""
    root = str(java_of(spark).hadoop_path(own.url).toString())
    uncached = Counter(text for _, text, _ in _files_read(used))
    for index, text, paths in _files_read(plan):
        if index is not None:
            uncached[text] -= 1
            # In the cache are the rows of a version before, be it the first.
            yield from _read_by(index.source if uncached[text] >= 0 else index.made_of, own)
        elif any(path == root or same_place(path, own.url) for path in paths()):
            yield None
    for leaf in items(plan.collectLeaves()):
        if (
            str(leaf.getClass().getSimpleName()) == "DataSourceV2Relation"
            and (about := about_workers(leaf)) is not None
        ):
            yield from _read_by(about, own)


def _files_read(plan: JavaObject) -> Iterator[tuple[PlannedFiles | None, str, Callable[[], list[str]]]]:
    """Of each relation of files below a plan: the index if it is one of ours, what it prints as, and its paths."""
    for leaf in items(plan.collectLeaves()):
        if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
            continue
        relation = leaf.relation()
        if str(relation.getClass().getSimpleName()) == "HadoopFsRelation":
            location = relation.location()
            text = str(location.toString())
            yield planned_files(text), text, partial(_paths, location)


def _paths(location: JavaObject) -> list[str]:
    return [str(path.toString()) for path in items(location.rootPaths())]


def _read_by(scan: ScanSource | About, own: OwnTable) -> Iterator[TableRead]:
    known = own.is_read_by(scan.identity)
    if known is not False:
        yield scan if known else None
