"""Whether rows of a table are cached under its name, asked before the name changes or goes."""

from __future__ import annotations

from alluvium.api.delta.delta_access import TableAccess
from alluvium.spark.sessions.catalog import quoted_name


def is_cached(access: TableAccess) -> bool:
    """Whether `CACHE TABLE` was said of a table of the catalog's; one whose log is gone is not read for it."""
    assert access.entry is not None
    spark = access.spark
    if spark._jsparkSession.sharedState().cacheManager().isEmpty() or access.newest() is None:
        return False
    return spark.catalog.isCached(quoted_name(access.entry.parts))
