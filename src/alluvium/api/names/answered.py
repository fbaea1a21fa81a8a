"""What a name in a statement of Spark means: the rows of a table of ours, at the version that is newest now."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from alluvium.api.calls import told_partitions
from alluvium.api.counterparts.raising import condition_of
from alluvium.api.doors import DELTA, PAIMON
from alluvium.api.names.change_functions import answer_changes, forget_changes
from alluvium.api.names.incremental_functions import answer_ranges, forget_ranges
from alluvium.api.names.kept_plans import forget_kept, kept_name
from alluvium.api.names.warehouses import answer_warehouses, close_warehouses
from alluvium.api.reader import read_again
from alluvium.errors import InvalidRequest, NotFound
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.cached_tables import keep_cached
from alluvium.spark.sessions.catalog import FoundEntry, entry_within, find_entry, has_database, is_path
from alluvium.spark.sessions.catalog_proxy import AskedTable, put_in_front, stands_in_front, take_away
from alluvium.spark.sessions.catalog_relations import TableEntry, table_of
from alluvium.spark.sessions.session import is_connect

PROVIDERS = (DELTA.name, PAIMON.name)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
#: Of a session, whether we know that its names are answered: set once, for a look costs several round trips.
_ANSWERED = "_alluvium_answers_names"


def answer_names(spark: SparkSession) -> None:
    """Makes names of our tables readable in a classic session, wherever a name may stand. May be called again."""
    if is_connect(spark) or _ANSWERED in spark.__dict__:
        return
    if not stands_in_front(spark):
        put_in_front(spark, partial(table_named, spark), PROVIDERS, partial(condition_of, door="query"))
        answer_changes(spark)
        answer_ranges(spark)
    answer_warehouses(spark)
    spark.__dict__[_ANSWERED] = True


def forget_names(spark: SparkSession) -> None:
    """Undoes `answer_names`."""
    if not is_connect(spark):
        spark.__dict__.pop(_ANSWERED, None)
        forget_kept(spark)
        close_warehouses(spark)
        if stands_in_front(spark):
            take_away(spark)
            forget_changes(spark)
            forget_ranges(spark)


def answers_names(spark: SparkSession) -> bool:
    """Whether names of our tables are readable in a session."""
    return not is_connect(spark) and stands_in_front(spark)


def table_named(spark: SparkSession, asked: AskedTable) -> JavaObject | None:
    """The table that Spark asks for; None where it is none of ours.

    Raises:
        NotFound: There is no table at the path that the name holds, or not that version.
        UnsupportedFeature: The table needs something that is not implemented.
        InvalidRequest: `VERSION AS OF` a text that is no version.
    """
    names_path = _names_path(spark, asked)
    entry, known = None if names_path else _entry(spark, asked), None
    if entry is not None:
        if entry.table.provider not in PROVIDERS:
            return None
        provider, url, known = entry.table.provider, entry.table.location, entry
    elif names_path:
        provider, url = asked.namespace[0].lower(), asked.name
    else:
        return None
    try:
        point = _point(provider, asked)
        kept = kept_name(spark, (provider, url, *asked.namespace, asked.name, *point.items()), known)
        rows = read_again(spark, url, kept.rows, **point)
    except NotFound as error:
        if entry is not None and error.code == "not-a-table":
            error.hint = f"the catalog has {entry.table.name}, its log is gone: DROP TABLE removes the name"
        raise
    put = kept.found(spark, rows)
    if put is not None:
        if not point:
            keep_cached(spark, url, put.plan)
        return put.table
    database = entry.table.parts[1] if entry is not None else asked.namespace[0]
    name = entry.table.parts[2] if entry is not None else asked.name
    partitions = _trailing(rows.columns, told_partitions(rows))
    put = table_of(spark, rows, TableEntry(database, name, provider, rows.schema, partitions, url, known, not point))
    kept.keep(rows, put)
    return put.table


def _entry(spark: SparkSession, asked: AskedTable) -> FoundEntry | None:
    # It is the session's own catalog that was asked: no other can be meant by a namespace of one part.
    if len(asked.namespace) == 1:
        return entry_within(spark, asked.namespace[0], asked.name)
    return find_entry(spark, (*asked.namespace, asked.name))


def _trailing(columns: Sequence[str], partitions: tuple[str, ...]) -> tuple[str, ...]:
    """The partition columns, where they are the last ones: of others Spark's entries cannot tell."""
    return partitions if partitions and tuple(columns[-len(partitions) :]) == partitions else ()


def _names_path(spark: SparkSession, asked: AskedTable) -> bool:
    """Whether ``delta.`/path` `` is asked for. A database of that name has what is called so."""
    if len(asked.namespace) != 1 or asked.namespace[0].lower() not in PROVIDERS:
        return False
    if not has_database(spark, asked.namespace[0]):
        return True
    return is_path(asked.name) and _entry(spark, asked) is None


def _point(provider: str, asked: AskedTable) -> dict[str, Any]:
    """The point in time, as arguments of `read`. Of Paimon a version that is no number is a tag."""
    if asked.timestamp_us is not None:
        return {"timestamp": _EPOCH + dt.timedelta(microseconds=asked.timestamp_us)}
    if asked.version is None:
        return {}
    if asked.version.isascii() and asked.version.isdigit():
        return {"version": int(asked.version)}
    if provider == PAIMON.name:
        return {"tag": asked.version}
    raise InvalidRequest(
        f"{asked.version!r} is not a version of a table", code="invalid-version", hint="VERSION AS OF a whole number"
    )
