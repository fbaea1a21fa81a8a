"""Rows in Spark's cache that come from frames which follow their tables: computed anew once a verb has changed one.

Spark finds what it has cached by its plan, and would give those who ask by the same frame again what the table had
before their own commit. It is dropped then, and computed by the next query that asks. What others
commit nobody tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import SparkSession

from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.scan.native_lane.index import PlannedFiles, items, planned_files
from alluvium.spark.sessions.session import is_connect


def renew_cached_rows(spark: SparkSession, url: str) -> None:
    """Has rows computed anew that are in Spark's cache, and were read by frames that follow a table.

    Args:
        spark: A session; nothing is known of what the server of Spark Connect has cached.
        url: The table, which has a new version.
    """
    if is_connect(spark):
        return
    session, manager = spark._jsparkSession, spark._jsparkSession.sharedState().cacheManager()
    if manager.isEmpty():
        return
    plans = [entry.plan() for entry in items(_entries_of(java_of(spark).gateway).get(manager))]
    known: set[str] = set()
    within: list[JavaObject] = []
    for plan in plans:
        leaves = list(_reading(plan, url))
        for index, leaf in leaves:
            # Spark drops whatever has it, before it plans any of that anew.
            if index.toString() not in known:
                known.add(index.toString())
                manager.recacheByPlan(session, leaf)
        if not leaves and any(True for each in items(plan.subqueriesAll()) for _ in _reading(each, url)):
            within.append(plan)
    for plan in within:  # Spark does not look into subqueries
        manager.recacheByPlan(session, plan)


def _reading(plan: JavaObject, url: str) -> Iterator[tuple[PlannedFiles, JavaObject]]:
    """The relations of a plan that follow a table, each with its index."""
    for leaf in items(plan.collectLeaves()):
        if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
            continue
        relation = leaf.relation()
        if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
            continue
        index = planned_files(str(relation.location().toString()))
        if index is not None and index.follows(url):
            yield index, leaf


_known_fields: WeakKeyDictionary[JavaGateway, JavaObject] = WeakKeyDictionary()


def _entries_of(gateway: JavaGateway) -> JavaObject:
    """The field of Spark's cache that holds its entries, which no method tells."""
    found = _known_fields.get(gateway)
    if found is None:
        jvm = gateway.jvm
        load = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass
        found = load("org.apache.spark.sql.execution.CacheManager").getDeclaredField("cachedData")
        found.setAccessible(True)
        _known_fields[gateway] = found
    return found
