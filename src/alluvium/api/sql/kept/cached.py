"""CACHE TABLE of tables of ours, which stay cached when they change; whether rows are cached under a name."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.delta_access import TableAccess, known_access
from alluvium.api.sql.call import Call, texts
from alluvium.spark.sessions.cached_tables import note_cached
from alluvium.spark.sessions.catalog import quoted_name


def run(call: Call) -> DataFrame | None:
    """Carries out `CACHE [LAZY] TABLE t [OPTIONS (...)]`, by Spark."""
    name = quoted_name(texts(call.plan.multipartIdentifier()))
    if known_access(call.spark, name) is None:
        return None
    done = call.rows(call.plan)
    note_table(call.spark, name)
    return done


def note_table(spark: SparkSession, name: str) -> None:
    """Notes that Spark has cached what has this name, if it is a table of ours."""
    access = known_access(spark, name)
    if access is not None:
        note_cached(spark, access.url, spark.table(name)._jdf.queryExecution().analyzed())


def is_cached(access: TableAccess) -> bool:
    """Whether `CACHE TABLE` was said of a table of the catalog's; one whose log is gone is not read for it."""
    assert access.entry is not None
    spark = access.spark
    if spark._jsparkSession.sharedState().cacheManager().isEmpty() or access.newest() is None:
        return False
    return spark.catalog.isCached(quoted_name(access.entry.parts))
