"""A stream of a table as Spark's `Source`: Spark asks how far it reaches, then for the rows in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource, StreamSource
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.names import nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.native_lane.native import empty_stream, read_native, unreadable
from alluvium.spark.sessions.session import ensure_native, java_schema
from alluvium.spark.streams.places import place_of
from alluvium.spark.streams.proxies import called, classes_of

#: Of a thread of a query, which one it is. Without pinned threads (`PYSPARK_PIN_THREAD=false`) nobody knows.
_QUERY = "sql.streaming.queryId"
_EVERYTHING = "ReadAllAvailable"
_numbers = itertools.count(1)


def read_stream(
    spark: SparkSession,
    stream: StreamSource,
    shape: Callable[[DataFrame], DataFrame] | None = None,
    read_other: Callable[[ScanSource], DataFrame] | None = None,
) -> DataFrame:
    """The rows of a stream, for queries to be started of.

    Args:
        spark: A classic session.
        stream: What is streamed.
        shape: Gives the rows of a source the stream's columns, row by row; None: they have them.
        read_other: Reads what Spark's own readers and operators do not do; None: that is refused.

    Raises:
        InvalidRequest: `"no-jvm"`: a session without a JVM, or one that has been stopped.
    """
    ensure_native(spark)
    failures.install()
    java = java_of(spark)
    held = java.array_list()
    held.add(StreamProxy(spark, stream, shape, read_other))
    relation = classes_of(java).relation.apply(held.get(0), spark._jsparkSession)
    return DataFrame(java.dataset.ofRows(spark._jsparkSession, relation), spark)


class StreamProxy:
    """Spark's `Source`. One object serves all queries that are started of a DataFrame."""

    def __init__(
        self,
        spark: SparkSession,
        stream: StreamSource,
        shape: Callable[[DataFrame], DataFrame] | None = None,
        read_other: Callable[[ScanSource], DataFrame] | None = None,
    ) -> None:
        self._spark = spark
        self._java = java_of(spark)
        self._classes = classes_of(self._java)
        self._stream = stream
        self._shape = shape or (lambda rows: rows)
        self._read_other = read_other
        self._schema = java_schema(spark, to_spark(nullable_schema(stream.schema)))
        self._number = next(_numbers)
        #: Queries that read what there is now and end, and how far that reaches, once it is known.
        self._ends: dict[str, str | None] = {}
        self._begun: set[str] = set()

    # The names below are those of the Java interfaces.

    @called
    def schema(self) -> JavaObject:
        """The columns."""
        return self._schema

    @called
    def prepareForTriggerAvailableNow(self) -> None:
        """The query that calls reads what there is now, and then ends."""
        self._ends[self._query()] = None

    @called
    def getDefaultReadLimit(self) -> JavaObject:
        """The stream knows its limits itself: anything but "everything"."""
        return self._classes.read_limit.maxFiles(1)

    @called
    def latestOffset(self, start: JavaObject | None, limit: JavaObject) -> JavaObject | None:
        """How far a batch from `start` on reaches; an equal offset where there is nothing new."""
        self._start()
        begin = None if start is None else str(start.json())
        query, until = self._query(), None
        if query in self._ends:
            until = self._ends[query] = self._ends[query] or self._stream.end_of_run(begin)
        limited = str(limit.getClass().getSimpleName()) != _EVERYTHING
        end = self._stream.latest(begin, limited=limited, until=until)
        return None if end is None else self._classes.offset.apply(end)

    @called
    def getBatch(self, start: JavaObject, end: JavaObject) -> JavaObject:
        """The rows between two offsets. Spark asks for the last batch again at a restart, and drops it."""
        self._start()
        begin = str(start.get().json()) if start.isDefined() else None
        return self._rows(self._stream.batch(begin, str(end.json())))._jdf

    def _rows(self, sources: Sequence[ScanSource]) -> DataFrame:
        frames = [self._shape(self._read(source)) for source in sources]
        return reduce(DataFrame.union, frames) if frames else empty_stream(self._spark, self._schema)

    def _read(self, source: ScanSource) -> DataFrame:
        plan = source.plan_scan(None)
        if self._read_other is not None and unreadable(plan) is not None:
            merged = self._read_other(source)._jdf
        elif all(part.merge is None for part in plan.parts):
            return read_native(self._spark, source, is_streaming=True)
        else:
            merged = read_native(self._spark, source)._jdf
        # Planned apart: what merges rows of files would keep them as state of the query, were it planned with it.
        rows = merged.queryExecution().toRdd()
        return DataFrame(self._spark._jsparkSession.internalCreateDataFrame(rows, merged.schema(), True), self._spark)

    @called
    def metrics(self, latest: JavaObject) -> JavaObject:
        """What a query's progress tells of the stream."""
        told = self._classes.hash_map()
        if latest.isPresent():
            for name, value in self._stream.metrics(str(latest.get().json())).items():
                told.put(name, value)
        return told

    @called
    def reportLatestOffset(self) -> None:
        """Not told: it would be asked for each trigger."""

    @called
    def commit(self, end: JavaObject) -> None:
        """All before `end` is done; what has been read is found in the table's log as long as that has it."""
        self._stream.committed(str(end.json()))

    @called
    def stop(self) -> None:
        """The query that calls has ended."""
        self._ends.pop(self._query(), None)
        self._begun.discard(self._query())

    @called
    def getOffset(self) -> None:
        """Never asked: `latestOffset` is."""
        raise NotImplementedError("latestOffset is asked instead")

    @called
    def initialOffset(self) -> None:
        """Never asked of a source of this kind."""
        raise NotImplementedError("a source of this kind has none")

    @called
    def deserializeOffset(self, json: str) -> JavaObject:
        """An offset of a checkpoint."""
        return self._classes.offset.apply(json)

    @called
    def equals(self, other: JavaObject) -> bool:
        """Whether it is this very object. It arrives as a Java proxy: its number tells."""
        return other is not None and int(other.hashCode()) == self._number

    @called
    def hashCode(self) -> int:
        """Another one for each object."""
        return self._number

    @called
    def toString(self) -> str:
        """As a query's progress shows it."""
        return self._stream.name

    def _start(self) -> None:
        query = self._query()
        if query not in self._begun:
            self._stream.started(lambda: place_of(self._spark, query, self._number))
            self._begun.add(query)

    def _query(self) -> str:
        return self._spark.sparkContext.getLocalProperty(_QUERY) or ""

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = [
            "org.apache.spark.sql.execution.streaming.Source",
            "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow",
            "org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics",
        ]
