"""How a query of Structured Streaming is started into a sink of ours, and what PySpark's readers and writers were told.

PySpark's own reader and writer hold all that callers said in objects of the JVM. These are asked here, by their private
members, so that triggers, modes and names stay Spark's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from alluvium.errors import UnsupportedFeature
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.streams.sink import SinkProxy, WriteBatch

#: Of Spark 4.2 and later: checkpoints know sources by their names.
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@dataclass(frozen=True, slots=True)
class SaidOfReader:
    """What a reader of streams was told.

    Attributes:
        format: Behind `format`, else the session's default.
        options: As the caller spells them.
        schema: What columns the caller expects; None: it says none.
        name: Of the source, by Spark 4.2 and later; None: it has none.
    """

    format: str
    options: Mapping[str, str]
    schema: StructType | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SaidOfWriter:
    """What a writer of streams was told.

    Attributes:
        format: Behind `format`, else the session's default.
        options: As the caller spells them.
        mode: `"Append"`, `"Complete"` or `"Update"`.
        trigger: The class of Spark's trigger.
        partition_by: Partition columns.
        cluster_by: Clustering columns.
    """

    format: str
    options: Mapping[str, str]
    mode: str
    trigger: str
    partition_by: tuple[str, ...]
    cluster_by: tuple[str, ...]


def said_of_reader(reader: DataStreamReader) -> SaidOfReader:
    """What a reader was told so far."""
    members = _Members(reader._spark, reader._jreader)
    given = members.get("userSpecifiedSchema")
    schema = StructType.fromJson(json.loads(str(given.get().json()))) if given.isDefined() else None
    named = members.get("userProvidedSourceName") if members.has("userProvidedSourceName") else None
    name = str(named.get()) if named is not None and named.isDefined() else None
    return SaidOfReader(str(members.get("source")), _options(members), schema, name)


def wants_names(spark: SparkSession) -> bool:
    """Whether Spark looks for sources in checkpoints by their names."""
    return read_flag(spark, _EVOLUTION, False)


def ensure_unnamed(name: str | None, wanted: bool = False) -> None:
    """Refuses what Spark would look for in a checkpoint by its name: a source in Python is known there by its place.

    Args:
        name: What the reader was told.
        wanted: Whether the session wants streams to have one.

    Raises:
        UnsupportedFeature: `"named-stream"`.
    """
    if name is None and not wanted:
        return
    raise UnsupportedFeature(
        f"the stream cannot be called {name!r}: its checkpoint knows it by its place in the query"
        if name is not None
        else f"{_EVOLUTION} wants streams with names, and this one is known by its place in the query",
        code="named-stream",
        features=("streams",),
        hint=f"set {_EVOLUTION} to false" if wanted else "leave .name(...) out",
    )


def said_of_writer(writer: DataStreamWriter) -> SaidOfWriter:
    """What a writer was told so far."""
    members = _Members(writer._spark, writer._jwrite)
    return SaidOfWriter(
        format=str(members.get("source")),
        options=_options(members),
        mode=str(members.get("outputMode").toString()),
        trigger=str(members.get("trigger").getClass().getSimpleName()),
        partition_by=_names(members.get("partitioningColumns")),
        cluster_by=_names(members.get("clusteringColumns")),
    )


def start_query(writer: DataStreamWriter, target: WriteBatch) -> StreamingQuery:
    """Starts a query of PySpark's writer into a sink of ours; trigger, mode, name and checkpoint are the writer's.

    Raises:
        PySparkException: Spark refuses the query.
    """
    failures.install()
    spark = writer._spark
    java, members = java_of(spark), _Members(spark, writer._jwrite)
    none = java.option.empty()
    arguments = java.array_list()
    for argument in (SinkProxy(spark, target), members.get("extraOptions"), True, none, none):
        arguments.add(argument)
    return StreamingQuery(members.call("startQuery", arguments))


def _options(members: _Members) -> Mapping[str, str]:
    java = members.java
    given = java.jvm.scala.jdk.javaapi.CollectionConverters.asJava(members.get("extraOptions").originalMap())
    return {str(key): str(value) for key, value in dict(given).items()}


def _names(columns: JavaObject) -> tuple[str, ...]:
    if not columns.isDefined():
        return ()
    names = columns.get()
    return tuple(str(names.apply(n)) for n in range(names.size()))


class _Members:
    """Private members of an object of the JVM."""

    def __init__(self, spark: SparkSession, owner: JavaObject) -> None:
        self.java = java_of(spark)
        self._owner = owner
        self._methods = list(owner.getClass().getDeclaredMethods())

    def get(self, name: str) -> JavaObject:
        """What a member without arguments is."""
        return self.call(name, self.java.array_list())

    def has(self, name: str) -> bool:
        """Whether there is such a member: other versions of Spark have others."""
        return any(str(m.getName()) == name and int(m.getParameterCount()) == 0 for m in self._methods)

    def call(self, name: str, arguments: JavaObject) -> JavaObject:
        """What a method answers; its errors are raised as PySpark raises them."""
        count = len(arguments)
        method = next(m for m in self._methods if str(m.getName()) == name and int(m.getParameterCount()) == count)
        method.setAccessible(True)
        try:
            return method.invoke(self._owner, arguments.toArray())
        except Py4JJavaError as error:
            cause = error.java_exception.getCause()
            if cause is None:
                raise
            raise convert_exception(cause) from None
