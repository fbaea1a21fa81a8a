"""Paimon's functions in the FROM of a query that read what came in a range: `paimon_incremental_query('t', 1, 3)`.

Specification: `PaimonTableValuedFunctions`, and the options `incremental-between`, `incremental-between-timestamp` and
`incremental-to-auto-tag` that it stands for.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.api.names.paimon_access import PaimonAccess, known_paimon
from alluvium.api.names.warehouses import find_named, has_named, url_of
from alluvium.api.options import parse_timestamp_ms
from alluvium.api.paimon.paimon_range import named_range
from alluvium.api.reader import changes, read
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.upkeep.life.auto_tags import tag_before
from alluvium.paimon.view.changes import BINLOG, ROW_KIND
from alluvium.spark.sessions.catalog import parse_name
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.sessions.table_functions import Argument, Instant, forget_function, register_function

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
#: Rows that went are none of the table's (Java: "the DELETE records are not allowed to be returned").
_SHOWN = ("+I", "+U")
_AUDIT = "audit_log"
#: A snapshot, a tag or a time.
_Point: TypeAlias = "int | str | dt.datetime"


def answer_ranges(spark: SparkSession) -> None:
    """Makes the functions known to a classic session."""
    for name, (points, rows_of) in _FUNCTIONS.items():
        register_function(spark, name, partial(_rows, spark, name, points, rows_of))


def forget_ranges(spark: SparkSession) -> None:
    """Undoes `answer_ranges`."""
    for name in _FUNCTIONS:
        forget_function(spark, name)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A table that a call names.

    Attributes:
        access: The table.
        system: How it is named: `t$audit_log` and `t$binlog` have the kinds of rows first.
    """

    access: PaimonAccess
    system: str | None = None

    def between(self, start: _Point, end: _Point) -> DataFrame:
        """What came after one point up to another.

        Raises:
            UnsupportedFeature: Of `t$audit_log`, between tags of a table with a primary key: what is gone is not told.
        """
        access, mode = self.access, BINLOG if self.system == BINLOG else "auto"
        if self.system == _AUDIT and named_range(access.snapshot(), start, end, mode).mode == "diff":
            raise UnsupportedFeature(
                "the difference of two states has no rows that went",
                code="unsupported-changes",
                url=access.url,
                features=("diff",),
                hint="give snapshots, not tags",
            )
        rows = changes(access.spark, access.url, start, end, mode=mode, branch=access.branch)
        if self.system is not None:
            return rows.withColumnRenamed(ROW_KIND, "rowkind")
        return rows.where(sf.col(ROW_KIND).isin(*_SHOWN)).drop(ROW_KIND)

    def nothing(self) -> DataFrame:
        """No row, in the same columns."""
        access = self.access
        return read(access.spark, access.url, branch=access.branch, system=self.system).where(sf.lit(False))


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
    return rows_of(_asked(spark, given[0]), *given[1:])


def _asked(spark: SparkSession, name: str) -> _Asked:
    named = find_named(spark, parse_name(spark, name))
    if named is not None and named.system in (_AUDIT, BINLOG) and has_named(spark, named):
        return _Asked(PaimonAccess(spark, url_of(spark, named), branch=named.branch), named.system)
    access = known_paimon(spark, name)
    if access is None:
        raise NotFound(f"{name!r} is no Paimon table", code="not-a-table", hint="database.table, or paimon.`/path`")
    return _Asked(access)


def _between(asked: _Asked, start: Argument, end: Argument) -> DataFrame:
    """Ends are snapshots or tags."""
    first, last = (point if isinstance(point, str) else int(point) for point in (start, end))
    return asked.between(first, last)


def _between_times(asked: _Asked, start: Argument, end: Argument) -> DataFrame:
    """Ends are texts in the session's time zone, or milliseconds since 1970 UTC."""
    first, last = (_time(point, time_zone(asked.access.spark)) for point in (start, end))
    try:
        return asked.between(first, last)
    except NotFound as error:
        if error.code != "no-snapshot-before":
            raise
        return asked.nothing()


def _time(point: Argument, zone: str) -> dt.datetime:
    if isinstance(point, Instant):
        return _EPOCH + dt.timedelta(microseconds=point)
    is_number = isinstance(point, int) or point.strip().isdecimal()
    return _EPOCH + dt.timedelta(milliseconds=int(point) if is_number else parse_timestamp_ms(point, zone=zone))


def _to_tag(asked: _Asked, end: Argument) -> DataFrame:
    """From the tag of the period before, as far as there are both; else nothing came."""
    snapshot = asked.access.snapshot()
    before = tag_before(snapshot.store, snapshot.schema.options, str(end), snapshot.branch)
    return asked.nothing() if before is None else asked.between(before, str(end))


_FUNCTIONS: Mapping[str, tuple[Sequence[str], Callable[..., DataFrame]]] = {
    "paimon_incremental_query": (("start", "end"), _between),
    "paimon_incremental_between_timestamp": (("start", "end"), _between_times),
    "paimon_incremental_to_auto_tag": (("end",), _to_tag),
}
