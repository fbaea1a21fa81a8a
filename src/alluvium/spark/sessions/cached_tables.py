"""Tables that are cached by name (`CACHE TABLE`): they stay so when they change, with the rows that they have then.

Spark finds cached rows by the plan that they were made of, and ours is another for each version. So what was cached is
noted here, and when the table is read at another version, that is cached in its place, on the next read of its rows.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import SparkSession

from alluvium.spark.jvm.gateway import JavaObject, java_of

#: By gateway and URL the plan whose rows are cached.
_cached: WeakKeyDictionary[JavaGateway, dict[str, JavaObject]] = WeakKeyDictionary()


def note_cached(spark: SparkSession, url: str, plan: JavaObject) -> None:
    """Says that the rows of a table have been cached by its name.

    Args:
        spark: A classic session.
        url: The table.
        plan: What a query by that name reads, analysed.
    """
    _cached.setdefault(java_of(spark).gateway, {})[url] = plan


def keep_cached(spark: SparkSession, url: str, plan: JavaObject) -> None:
    """Has the rows of a plan cached, where those of the same table have been until now.

    Args:
        spark: A classic session.
        url: The table.
        plan: What a query is about to read, analysed: the newest version.
    """
    known = _cached.get(java_of(spark).gateway, {})
    before = known.get(url)
    if before is None:
        return
    # No lock of ours is held meanwhile: who plans what is cached may be asked for tables. Two threads that come at once
    # do the same, and Spark takes it once.
    session, manager = spark._jsparkSession, spark._jsparkSession.sharedState().cacheManager()
    if manager.lookupCachedData(session, plan).isDefined():
        return
    found = manager.lookupCachedData(session, before)
    if found.isEmpty():
        if known.get(url) is before:  # UNCACHE TABLE, or CLEAR CACHE
            known.pop(url, None)
        return
    made = found.get().cachedRepresentation().cacheBuilder()
    manager.uncacheQuery(session, before, False)
    manager.cacheQuery(session, plan, made.tableName(), made.storageLevel())
    known[url] = plan
