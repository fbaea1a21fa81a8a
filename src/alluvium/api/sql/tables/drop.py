"""DROP TABLE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.sql.call import Call
from alluvium.api.sql.kept.cached import is_cached
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.catalog import drop_table, quoted_name


def run(call: Call) -> DataFrame | None:
    """Carries out `DROP TABLE [IF EXISTS] t [PURGE]`.

    Spark is not asked as well: what it would find under the name by then is a table that somebody has just made.
    """
    access = call.table(call.plan.child())
    if access is None:
        return None
    if access.entry is None:
        return _without_entry(call, access)
    if is_cached(access):
        call.spark.catalog.uncacheTable(quoted_name(access.entry.parts))
    drop_table(call.spark, access.entry)
    return call.nothing()


def _without_entry(call: Call, access: TableAccess) -> DataFrame:
    """By its path a table has no entry to drop, and its files are not the catalog's."""
    if call.plan.ifExists() or access.newest() is None:
        # Spark says that there is none; of the statement alone, for the text may be that of a whole script.
        return call.nothing() if call.plan.ifExists() else call.rows(call.plan)
    raise InvalidRequest(
        "a table by its path has no entry in the catalog that could be dropped",
        code="no-name",
        url=access.url,
        hint="delete the folder, if its files are to go",
    )
