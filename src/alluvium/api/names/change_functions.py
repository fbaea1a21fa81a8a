"""`table_changes('name', start[, end])` and `table_changes_by_path('path', start[, end])` in queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import named_access
from alluvium.api.reader import changes
from alluvium.errors import InvalidRequest, NotFound
from alluvium.spark.sessions.catalog import find_relation
from alluvium.spark.sessions.table_functions import Argument, Instant, forget_function, register_function

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def answer_changes(spark: SparkSession) -> None:
    """Makes the functions known to a classic session."""
    for name, url_of in _FUNCTIONS.items():
        register_function(spark, name, partial(_changes, spark, name, url_of))


def forget_changes(spark: SparkSession) -> None:
    """Undoes `answer_changes`."""
    for name in _FUNCTIONS:
        forget_function(spark, name)


def _changes(
    spark: SparkSession, function: str, url_of: Callable[[SparkSession, str], str], given: Sequence[Argument]
) -> DataFrame:
    """The change feed of a table.

    Raises:
        InvalidRequest: Other arguments (`invalid-argument`); else as `changes`.
        NotFound: There is no such table, or not that range.
    """
    if not 2 <= len(given) <= 3 or not isinstance(given[0], str):
        raise InvalidRequest(
            f"{function} takes a table and one or two points in its history, not {len(given)} arguments",
            code="invalid-argument",
            hint=f"{function}('...', start[, end])",
        )
    start, end = _bound(given[1]), _bound(given[2]) if len(given) == 3 else None
    with counterparts("changes"):
        return changes(spark, url_of(spark, given[0]), start, end)


def _bound(value: Argument) -> int | str | dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=value) if isinstance(value, Instant) else value


def _url_of_name(spark: SparkSession, name: str) -> str:
    access = named_access(spark, name)
    if access is None:
        missing = find_relation(spark, name) is None
        problem = f"there is no table called {name!r}" if missing else f"{name!r} is not a Delta table"
        raise NotFound(problem, code="not-a-table")
    return access.url


def _url_of_path(spark: SparkSession, path: str) -> str:
    return path


_FUNCTIONS: Mapping[str, Callable[[SparkSession, str], str]] = {
    "table_changes": _url_of_name,
    "table_changes_by_path": _url_of_path,
}
