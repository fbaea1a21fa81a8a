"""Rows that several jobs need, computed once: by the first job that asks for them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from alluvium.spark.sessions.session import is_connect

log = logging.getLogger("alluvium")


def keep_rows(rows: DataFrame) -> DataFrame:
    """The same rows, kept on the executors as they are; `release_rows` frees them.

    `DataFrame.persist` would turn them into compressed columns, which costs more than what it saves for rows that are
    read once or twice. And it would compute again what is lost with an executor: two jobs might then see different rows
    of a query that says something else each time, where this fails.

    Raises:
        PySparkException: A part of the query had to run for its plan, and failed.
    """
    return rows.localCheckpoint(eager=False)


def release_rows(rows: DataFrame) -> None:
    """Frees what `keep_rows` has kept; rows that come from it count as lost."""
    if is_connect(rows.sparkSession):
        # The client tells the server when it has forgotten the frame.
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
        return
    _free(rows.unpersist)


def _free(act: Callable[[], object]) -> None:
    """Rows are freed when a verb has ended: an error would hide how, and call a commit that stands a failure."""
    try:
        act()
    except Exception as error:  # of py4j, Spark, or the network
        log.warning("rows that were kept for a statement could not be freed: %s", error, exc_info=error)
