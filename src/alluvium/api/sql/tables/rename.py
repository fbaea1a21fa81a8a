"""ALTER TABLE RENAME TO."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.sql.call import Call, texts
from alluvium.api.sql.kept.cached import is_cached
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.catalog import quoted_name
from alluvium.spark.sessions.entry_changes import rename_table

_SESSION_CATALOG = "spark_catalog"


def run(call: Call) -> DataFrame | None:
    """Carries out `ALTER TABLE t RENAME TO u`; what is cached of it stays so under the new name."""
    access = None if call.plan.isView() else call.table(call.plan.child())
    if access is None:
        return None
    if access.entry is None:
        raise InvalidRequest(
            "a table by its path has no name to be changed",
            code="no-name",
            url=access.url,
            hint=f"CREATE TABLE name USING delta LOCATION {access.url!r} gives it one",
        )
    old, new = access.entry.parts, texts(call.plan.newName())
    if len(new) == 3 and new[0].lower() == _SESSION_CATALOG:
        new = new[1:]
    named = quoted_name(new if len(new) > 1 else (*old[:-1], *new))
    was_cached = is_cached(access)
    if was_cached:
        call.spark.catalog.uncacheTable(quoted_name(old))
    try:
        rename_table(call.spark, old, (*old[1:-1], *new) if len(new) == 1 else new)
    except BaseException:
        named = quoted_name(old)
        raise
    finally:
        if was_cached:
            call.spark.catalog.cacheTable(named)
    return call.nothing()
