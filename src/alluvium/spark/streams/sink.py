"""A function of Python as Spark's `Sink`: it gets each batch as a DataFrame that can be run once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.jvm import failures
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.streams.proxies import called

#: Operators of a plan that keep state, as plans print them.
_STATEFUL = re.compile(r"StateStore|WithState|Streaming(?:Deduplicate|SymmetricHashJoin|GlobalLimit|LocalLimit)")
#: So much is told of why a batch was given up: in a long text Spark's own search overflows the stack.
_TOLD = 300
#: How Spark and Java say that somebody has stopped what they were at.
_STOPPED = re.compile(r"InterruptedException|InterruptedIOException|ClosedByInterrupt|cancelled job group")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a query.

    Attributes:
        rows: To be computed once: state is moved by computing them.
        number: Of the batch, from 0.
        query: The query's id, which it keeps when it is started again.
        seen: The batch's query as it was asked, to look at, not to run.
    """

    rows: DataFrame
    number: int
    query: str
    seen: DataFrame


class WriteBatch(Protocol):
    """What becomes of batches."""

    @property
    def name(self) -> str:
        """As a query's progress shows it."""

    def write(self, batch: Batch) -> bool:
        """Writes a batch, unless that has been done before; whether it was computed."""


class SinkProxy:
    """Spark's `Sink`."""

    def __init__(self, spark: SparkSession, target: WriteBatch) -> None:
        self._spark = spark
        self._java = java_of(spark)
        self._target = target

    # The names below are those of the Java interfaces.

    @called
    def addBatch(self, number: int, data: JavaObject) -> None:
        """Takes a batch; one that was taken before a crash comes again."""
        execution = data.queryExecution()
        try:
            self._add(number, data, execution)
        except Exception as error:
            told = _how_stopped(error)
            if told is None:
                raise
            # Somebody may have cancelled the job, not the query: then it ends of this, and says so.
            told = told[:_TOLD]
        else:
            return
        raise Stopped(f"An error occurred while calling addBatch: java.lang.InterruptedException: {told}") from None

    def _add(self, number: int, data: JavaObject, execution: JavaObject) -> None:
        session = data.sparkSession()
        spark = SparkSession(self._spark.sparkContext, session)
        # Planned as it is: planned anew, the query would ask for its state again.
        rows = DataFrame(session.internalCreateDataFrame(execution.toRdd(), data.schema(), False), spark)
        batch = Batch(rows, int(number), str(execution.queryId().toString()), DataFrame(data, spark))
        if not self._target.write(batch) and _STATEFUL.search(str(execution.executedPlan().toString())):
            # Its state is moved by running, whether or not anybody wants the rows.
            rows.write.format("noop").mode("overwrite").save()

    @called
    def name(self) -> str:
        """As `Table` has it."""
        return self._target.name

    @called
    def toString(self) -> str:
        """As a query's progress shows it."""
        return self._target.name

    @called
    def id(self) -> None:
        """None: a sink is not looked for by it."""

    @called
    def version(self) -> None:
        """None: a sink has no versions."""

    @called
    def schema(self) -> JavaObject:
        """Nobody asks: a sink takes any rows."""
        return self._java.jvm.org.apache.spark.sql.types.StructType()

    @called
    def columns(self) -> JavaObject:
        """None, as `schema`."""
        return self._array("org.apache.spark.sql.connector.catalog.Column")

    @called
    def partitioning(self) -> JavaObject:
        """None, as `schema`."""
        return self._array("org.apache.spark.sql.connector.expressions.Transform")

    @called
    def constraints(self) -> JavaObject:
        """None, as `schema`."""
        return self._array("org.apache.spark.sql.connector.catalog.constraints.Constraint")

    @called
    def properties(self) -> JavaObject:
        """None."""
        return self._java.jvm.java.util.HashMap()

    @called
    def capabilities(self) -> JavaObject:
        """None of those of tables: Spark knows the kind of sink that this is."""
        return self._java.jvm.java.util.HashSet()

    @called
    def equals(self, other: JavaObject) -> bool:
        """Whether it is this very object."""
        return other is not None and int(other.hashCode()) == self.hashCode()

    @called
    def hashCode(self) -> int:
        """Another one for each object."""
        return id(self) & 0x7FFFFFFF

    def _array(self, name: str) -> JavaObject:
        array = self._java.jvm.java.lang.reflect.Array
        return array.newInstance(self._java.jvm.java.lang.Class.forName(name), 0)

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.execution.streaming.Sink"]


class Stopped(InterruptedError):
    """Tells Spark that a batch was given up because the query was stopped, which is no failure.

    Spark knows that by the name and the text of an error, which it looks for in py4j's.
    """

    __module__ = "py4j.protocol"
    __qualname__ = "Py4JJavaError"


def _how_stopped(error: BaseException) -> str | None:
    """The line in which an error, or one behind it, says that somebody stopped this; None: none does."""
    lines = (line for each in _chain(error) for text in failures.texts_of(each) for line in text.splitlines())
    return next((line for line in lines if _STOPPED.search(line)), None)


def _chain(error: BaseException | None) -> Iterator[Exception]:
    """An error and those behind it, each once: one that is raised again while its successor is handled leads back."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Exception):
            yield error
        error = error.__cause__ or error.__context__
