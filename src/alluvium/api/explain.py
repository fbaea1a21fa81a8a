"""explain: which lane reads a table, which files it touches, and why the others are left out."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

from alluvium.api.doors import format_at
from alluvium.api.stores import storage_for
from alluvium.api.views.explanation import Explanation
from alluvium.errors import InvalidRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@overload
def explain(
    df_or_url: str, where: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Explanation: ...
@overload
def explain(df_or_url: DataFrame, where: None = None, storage_options: None = None) -> tuple[Explanation, ...]: ...
def explain(
    df_or_url: DataFrame | str, where: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Explanation | tuple[Explanation, ...]:
    """Explains how a table, or each table under a DataFrame, will be read. Nothing of it is read.

    Args:
        df_or_url: A DataFrame over tables read by Alluvium, or the URL of a table.
        where: With a URL: the predicate to read it with.
        storage_options: With a URL: credentials and settings of the object store.

    Returns:
        One explanation for a URL; for a DataFrame one a scan in its plan.

    Raises:
        InvalidRequest: The DataFrame reads no table of ours, or `where` was given with a DataFrame.

    Example:
        >>> print(alluvium.explain("/data/flights", "month = 1"))
    """
    if isinstance(df_or_url, str):
        return _explain_url(df_or_url, where, storage_options)
    if where is not None:
        raise InvalidRequest("where goes with a URL", code="explain-where", hint="explain(df.where(...))")
    # A DataFrame is here, so pyspark is loaded already; without one this module must not need it.
    is_connect = type(df_or_url).__module__.startswith(("pyspark.sql.connect.", "alluvium.spark.scan.connect_lane."))
    describe = importlib.import_module(
        f"alluvium.spark.scan.{'connect_lane.connect_describe' if is_connect else 'native_lane.describe'}"
    )
    scans = describe.describe_scans(df_or_url)
    if not scans:
        raise InvalidRequest("the DataFrame reads no table through alluvium", code="nothing-to-explain")
    return tuple(
        Explanation(
            lane=s.lane,
            why=s.why,
            url=s.identity[0],
            version=s.identity[1],
            files=s.files,
            size_bytes=s.size_bytes,
            skipped=dict(s.skipped),
            filters=s.filters,
        )
        for s in scans
    )


def _explain_url(url: str, where: str | None, storage_options: Mapping[str, str] | None) -> Explanation:
    store = storage_for(url, storage_options, None)
    return format_at(store).door.explain(store, where)
