"""At which version the tables of a query stand whose frames follow what is committed.

Spark asks for the files of each relation by itself, in threads of its own, and a table may be several relations of a
query. They belong together by what Spark's threads inherit from each other: the number of the execution, or the mark of
the statement of ours that it is part of, or of a call that no execution is of (`whole_calls`). What a statement changes
it reads at its base.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from alluvium.plan.ports import FollowedSource
from alluvium.storage.places import same_place, without_links

#: Names a query, or a statement of several, among all of the process.
QueryId: TypeAlias = str

_STATEMENT = "alluvium.statement"
_WHOLE = "alluvium.query"
_EXECUTION = "spark.sql.execution.id"
#: Numbers, of which a query needs a few while it is planned.
_KEPT = 10_000

_versions: OrderedDict[tuple[QueryId, str], int] = OrderedDict()
#: Marks of ours that mean something still: a thread that was made meanwhile keeps what it has inherited.
_marked: set[QueryId] = set()
_bases: dict[QueryId, tuple[str, int]] = {}
_changing = threading.Lock()
#: What each context calls itself: as long as it lives, which it does not say without three round trips.
_applications: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()


def current_query(spark: SparkSession) -> QueryId | None:
    """What is carried out in this thread, or in the JVM's thread that calls from it; None: no query of Spark's is.

    Args:
        spark: A classic session.
    """
    context = spark.sparkContext
    # Spark asks the relations of a query again and again: where nothing is marked, one round trip says all.
    for name in (_STATEMENT, _WHOLE) if _marked else ():
        if (told := context.getLocalProperty(name)) and (query := _id(spark, name, told)) in _marked:
            return query
    told = context.getLocalProperty(_EXECUTION)
    return _id(spark, _EXECUTION, told) if told else None


def _id(spark: SparkSession, kind: str, number: str) -> QueryId:
    # Executions are numbered anew in each context.
    context = spark.sparkContext
    application = _applications.get(context)
    if application is None:
        application = _applications[context] = str(context.applicationId)
    return f"{application} {kind} {number}"


def version_in(query: QueryId, made: FollowedSource, find: Callable[[], int]) -> int:
    """The version of a table in a query: its base, or the newest one when the query first asked for it.

    Args:
        query: The query.
        made: The version that a frame of the table was made on, be it while the query went on: it shows none before.
        find: Finds the newest version.
    """
    base = _bases.get(query)
    if base is not None and same_place(base[0], made.place):
        return base[1]
    key = (query, str(without_links(made.place)))
    with _changing:
        known = _versions.get(key)
        if known is not None:
            _versions.move_to_end(key)
    if known is not None:
        return max(known, made.version)
    # Without the lock, for it reads a log. Of two threads of a query one is first.
    found = find()
    with _changing:
        version = _versions.setdefault(key, found)
        while len(_versions) > _KEPT:
            _versions.popitem(last=False)
    return version


@dataclass(frozen=True, slots=True)
class MarkedStatement:
    """A statement's queries.

    Attributes:
        query: What they are together.
        within: The query that it is part of, as the batch of a stream is that its sink writes; None: it is none's.
    """

    query: QueryId
    within: QueryId | None

    def stand_on(self, place: str, version: int) -> None:
        """Has its queries read the table that it changes at its base, from now on."""
        _bases[self.query] = (place, version)

    def seen_before(self, place: str) -> int | None:
        """The version of a table that the query has read that the statement is part of; None: it has not read it."""
        if self.within is None:
            return None
        with _changing:
            found = [(url, version) for (query, url), version in _versions.items() if query == self.within]
        return next((version for url, version in found if same_place(url, place)), None)


@contextmanager
def marked_statement(spark: SparkSession) -> Iterator[MarkedStatement]:
    """All queries that this thread begins within are one statement.

    Args:
        spark: A classic session.
    """
    within = current_query(spark)
    with _mark(spark, _STATEMENT) as query:
        try:
            yield MarkedStatement(query, within)
        finally:
            _bases.pop(query, None)


@contextmanager
def whole_query(spark: SparkSession) -> Iterator[None]:
    """What Spark plans within is one query, and no part of the one that may be carried out around it.

    Args:
        spark: A classic session.
    """
    with _mark(spark, _WHOLE):
        yield


@contextmanager
def _mark(spark: SparkSession, name: str) -> Iterator[QueryId]:
    context, number = spark.sparkContext, uuid.uuid4().hex
    before, query = context.getLocalProperty(name), _id(spark, name, number)
    _marked.add(query)
    context.setLocalProperty(name, number)
    try:
        yield query
    finally:
        # Nothing takes a property away that was not there.
        context.setLocalProperty(name, before)  # type: ignore[arg-type]
        _marked.discard(query)
