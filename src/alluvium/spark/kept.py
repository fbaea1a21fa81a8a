"""Rows that several jobs need, computed once: by the first job that asks for them."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.sessions.session import is_connect

log = logging.getLogger("alluvium")

#: By session of Connect, which of the rows that its server keeps nobody has any more.
_GONE: weakref.WeakKeyDictionary[SparkSession, deque[tuple[Any, str]]] = weakref.WeakKeyDictionary()


def keep_rows(rows: DataFrame) -> DataFrame:
    """The same rows, kept on the executors as they are; `release_rows` frees them.

    `DataFrame.persist` would turn them into compressed columns, which costs more than what it saves for rows that are
    read once or twice. And it would compute again what is lost with an executor: two jobs might then see different rows
    of a query that says something else each time, where this fails.

    Raises:
        PySparkException: A part of the query had to run for its plan, and failed.
    """
    if not is_connect(rows.sparkSession):
        return rows.localCheckpoint(eager=False)
    forget_gone(rows.sparkSession)
    return _watched(rows.localCheckpoint(eager=False))


def _watched(kept: DataFrame) -> DataFrame:
    """Has the server told when nobody has the rows any more, but not by whoever finds that out.

    PySpark tells it by a call from `__del__`, which the garbage collector runs wherever it is due: in a thread that
    gRPC is just starting for another call, it waits for that call's lock, and the call for the thread, for ever.
    """
    relation: Any = kept._plan
    relation._spark_session = None
    gone = _GONE.setdefault(kept.sparkSession, deque())
    weakref.finalize(relation, gone.append, (type(relation), relation._relation_id)).atexit = False
    return kept


def forget_gone(spark: SparkSession) -> None:
    """Has the server forget the rows that nobody has any more; it forgets all with the session."""
    gone = _GONE.get(spark, deque())
    # Other threads may take of them, too.
    with suppress(IndexError):
        while True:
            kind, number = gone.popleft()
            # It ends where it begins, and tells the server so.
            kind(number, spark)


def release_rows(rows: DataFrame) -> None:
    """Frees what `keep_rows` has kept; rows that come from it count as lost."""
    if is_connect(rows.sparkSession):
        # Those of this frame when it is gone.
        forget_gone(rows.sparkSession)
        return
    _free(lambda: rows._jdf.queryExecution().analyzed().rdd().unpersist(False))


def persist_rows(rows: DataFrame) -> DataFrame:
    """Rows of whole files, computed once: as compressed columns, for they are more than fit into memory.

    Over Connect the server analyses each query anew, and so finds no rows in its cache that say something else each
    time (`uuid()`): there they are kept as they are.
    """
    return keep_rows(rows) if is_connect(rows.sparkSession) else rows.persist(StorageLevel.MEMORY_AND_DISK)


def unpersist_rows(rows: DataFrame) -> None:
    """Frees what `persist_rows` has kept."""
    if is_connect(rows.sparkSession):
        forget_gone(rows.sparkSession)
        return
    _free(rows.unpersist)


def _free(act: Callable[[], object]) -> None:
    """Rows are freed when a verb has ended: an error would hide how, and call a commit that stands a failure."""
    try:
        act()
    except Exception as error:  # of py4j, Spark, or the network
        log.warning("rows that were kept for a statement could not be freed: %s", error, exc_info=error)
