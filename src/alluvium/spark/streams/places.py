"""Where a query's checkpoint has room for what it knows of a source: `<checkpoint>/sources/<number>`.

Spark tells that to sources that it makes itself. Ours look for the query that asks, and count its sources as it does.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from alluvium.errors import UnsupportedFeature
from alluvium.spark.jvm.gateway import JavaObject


def place_of(spark: SparkSession, query: str, source: int) -> str:
    """The place of a source.

    Args:
        spark: The session whose query it is.
        query: The query's id; empty: nobody knows which one asks.
        source: What the source answers when it is asked for its `hashCode`.

    Raises:
        UnsupportedFeature: Several queries read the source, and nobody knows which one asks (`unknown-query`).
    """
    found = {}
    for execution in _running(spark):
        number = _number_in(execution, source)
        if number is not None:
            found[str(execution.id().toString())] = f"{execution.resolvedCheckpointRoot()}/sources/{number}"
    if query in found:
        return found[query]
    if len(found) == 1:
        return next(iter(found.values()))
    raise UnsupportedFeature(
        f"{len(found)} queries read this stream, and nobody knows which one asks",
        code="unknown-query",
        features=("streams",),
        hint="load the table once for each query, or leave out PYSPARK_PIN_THREAD=false",
    )


def _running(spark: SparkSession) -> Iterator[JavaObject]:
    active = spark._jsparkSession.streams().active()
    for query in active:
        yield query.streamingQuery() if "Wrapper" in str(query.getClass().getSimpleName()) else query


def _number_in(execution: JavaObject, source: int) -> int | None:
    """Which one of the query's sources it is; one that is read twice counts once."""
    distinct = execution.sources().distinct()
    hashes = (int(distinct.apply(n).hashCode()) for n in range(distinct.size()))
    return next((n for n, each in enumerate(hashes) if each == source), None)
