"""Calls of PySpark that Spark plans outside of any execution: each is a query by itself.

Spark numbers what is carried out, but not the making of an RDD, nor the listing of a frame's files: those have no
number, or, in the function of `foreachBatch`, that of the batch around them, however much has been written since it
began. So that they read one version of each table, and the newest, they are marked as a query for as long as they take.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame

from alluvium.spark.scan.native_lane.query_versions import whole_query

_MARKED = "is_whole_query"


def install() -> None:
    """Has `rdd`, `toJSON` and `inputFiles` of classic frames marked; idempotent."""
    rdd = vars(DataFrame)["rdd"]
    if hasattr(rdd.func, _MARKED):
        return
    for name in ("toJSON", "inputFiles"):
        setattr(DataFrame, name, _marked(getattr(DataFrame, name)))
    made = functools.cached_property(_marked(rdd.func))
    made.__set_name__(DataFrame, "rdd")
    DataFrame.rdd = made  # type: ignore[assignment, method-assign]


def _marked(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wrapped)
    def act(self: DataFrame, *args: Any, **kwargs: Any) -> Any:
        with whole_query(self.sparkSession):
            return wrapped(self, *args, **kwargs)

    setattr(act, _MARKED, True)
    return act
