"""Paimon's functions in the FROM of a query that read what came in a range: `paimon_incremental_query('t', 1, 3)`.

Specification: `PaimonTableValuedFunctions`, and the options `incremental-between`, `incremental-between-timestamp` and
`incremental-to-auto-tag` that it stands for.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.api.names.paimon_access import PaimonAccess, known_paimon
from alluvium.api.options import parse_timestamp_ms
from alluvium.api.reader import changes, read
from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.upkeep.life.auto_tags import tag_before
from alluvium.paimon.view.changes import ROW_KIND
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.sessions.table_functions import Argument, Instant, forget_function, register_function

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
#: Rows that went are none of the table's (Java: "the DELETE records are not allowed to be returned").
_SHOWN = ("+I", "+U")


def answer_ranges(spark: SparkSession) -> None:
    """Makes the functions known to a classic session."""
    for name, (points, rows_of) in _FUNCTIONS.items():
        register_function(spark, name, partial(_rows, spark, name, points, rows_of))


def forget_ranges(spark: SparkSession) -> None:
    """Undoes `answer_ranges`."""
    for name in _FUNCTIONS:
        forget_function(spark, name)


def _rows(
    spark: SparkSession,
    function: str,
    points: Sequence[str],
    rows_of: Callable[..., DataFrame],
    given: Sequence[Argument],
) -> DataFrame:
    """The rows that a range brought, in the table's columns.

    Raises:
        InvalidRequest: Other arguments (`"invalid-argument"`); else as of `changes`.
        NotFound: There is no Paimon table of that name (`"not-a-table"`), or not that range.
    """
    if len(given) != len(points) + 1 or not isinstance(given[0], str):
        raise InvalidRequest(
            f"{function} takes a table and {' and '.join(points)}, not {len(given)} arguments",
            code="invalid-argument",
            hint=f"{function}('...', {', '.join(points)})",
        )
    access = known_paimon(spark, given[0])
    if access is None:
        raise NotFound(f"{given[0]!r} is no Paimon table", code="not-a-table", hint="database.table, or paimon.`/path`")
    return rows_of(access, *given[1:])


def _between(access: PaimonAccess, start: Argument, end: Argument) -> DataFrame:
    """Ends are snapshots or tags."""
    return _changed(access, *(point if isinstance(point, str) else int(point) for point in (start, end)))


def _between_times(access: PaimonAccess, start: Argument, end: Argument) -> DataFrame:
    """Ends are texts in the session's time zone, or milliseconds since 1970 UTC."""
    return _changed(access, *(_time(point, time_zone(access.spark)) for point in (start, end)))


def _time(point: Argument, zone: str) -> dt.datetime:
    if isinstance(point, Instant):
        return _EPOCH + dt.timedelta(microseconds=point)
    is_number = isinstance(point, int) or point.strip().isdecimal()
    return _EPOCH + dt.timedelta(milliseconds=int(point) if is_number else parse_timestamp_ms(point, zone))


def _to_tag(access: PaimonAccess, end: Argument) -> DataFrame:
    """From the tag of the period before, as far as there are both; else nothing came."""
    snapshot = access.snapshot()
    before = tag_before(snapshot.store, snapshot.schema.options, str(end), snapshot.branch)
    if before is None:
        return read(access.spark, access.url, branch=access.branch).where(sf.lit(False))
    return _changed(access, before, str(end), "diff")


def _changed(
    access: PaimonAccess, start: int | str | dt.datetime, end: int | str | dt.datetime, mode: str = "auto"
) -> DataFrame:
    rows = changes(access.spark, access.url, start, end, mode=mode, branch=access.branch)
    return rows.where(sf.col(ROW_KIND).isin(*_SHOWN)).drop(ROW_KIND)


_FUNCTIONS: Mapping[str, tuple[Sequence[str], Callable[..., DataFrame]]] = {
    "paimon_incremental_query": (("start", "end"), _between),
    "paimon_incremental_between_timestamp": (("start", "end"), _between_times),
    "paimon_incremental_to_auto_tag": (("end",), _to_tag),
}
