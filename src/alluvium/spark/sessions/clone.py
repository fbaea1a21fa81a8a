"""A private copy of a session: settings of our own that the user's session never sees."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.session import capabilities, is_connect

#: Since this version a Connect server copies sessions.
_CLONES_SINCE = (4, 1)
_changing_settings = threading.RLock()
#: Relations that lie in a session of the server, where no copy of the session has them: rows of `createDataFrame` above
#: a size, checkpoints, the batch of a stream.
_KEPT_ON_SERVER = frozenset({"cached_local_relation", "chunked_cached_local_relation", "cached_remote_relation"})


class PrivateSession:
    """A clone of the JVM session (1 ms) with settings changed; it has the same views, functions and cached data."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self._spark = spark
        self._dataset = java_of(spark).dataset
        self._clone = spark._jsparkSession.cloneSession()
        conf = self._clone.conf()
        for key, value in settings.items():
            conf.set(key, value)

    @property
    def java(self) -> JavaObject:
        """The JVM's session."""
        return self._clone

    def take(self, df: DataFrame) -> DataFrame:
        """The same analysed plan, to be run with this session's settings."""
        return DataFrame(self._dataset.ofRows(self._clone, df._jdf.queryExecution().analyzed()), self._spark)

    def give_back(self, df: DataFrame) -> DataFrame:
        """The same analysed plan, in the user's session."""
        jdf = self._dataset.ofRows(self._spark._jsparkSession, df._jdf.queryExecution().analyzed())
        return DataFrame(jdf, self._spark)


@contextmanager
def with_settings(df: DataFrame, settings: Mapping[str, str]) -> Iterator[DataFrame]:
    """The same query, classic or Connect, in a session that has settings of ours until the block ends."""
    spark = df.sparkSession
    if not is_connect(spark):
        yield PrivateSession(spark, settings).take(df)
    elif capabilities(spark).version >= _CLONES_SINCE and hasattr(spark, "cloneSession") and not _is_bound(df):
        with _cloned_on_server(spark) as clone:
            _set(clone, settings)
            yield _rebuilt(df, clone)
    else:
        with _changing_settings:
            before = {key: spark.conf.get(key, None) for key in settings}
            _set(spark, settings)
            try:
                yield df
            finally:
                _set(spark, before)


def _is_bound(df: Any) -> bool:
    """Whether a Connect query takes rows that only its own session has on the server."""
    # Not `to_proto`, which compresses large plans.
    return _names_any(df._plan.plan(df.sparkSession.client), _KEPT_ON_SERVER)


def _names_any(message: Any, names: frozenset[str]) -> bool:
    """Whether a message of Protocol Buffers, or one within, has one of these fields."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        if any(descriptor.name in names for descriptor, _ in current.ListFields()):
            return True
        waiting.extend(messages_in(current))
    return False


def messages_in(message: Any) -> Iterator[Any]:
    """The messages that are members of a message of Protocol Buffers."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            parts = value.values() if isinstance(value, Mapping) else value if descriptor.is_repeated else (value,)
            yield from (part for part in parts if hasattr(part, "ListFields"))


@contextmanager
def _cloned_on_server(spark: SparkSession) -> Iterator[SparkSession]:
    client: Any = spark  # PySpark types the classic session's methods only
    clone = client.cloneSession()
    try:
        yield clone
    finally:
        # Not `stop`, which ends the server of a local session.
        clone.client.release_session()
        clone.client.close()


def _rebuilt(df: Any, spark: SparkSession) -> DataFrame:
    """The same plan, which is a message to the server, to be sent by another session."""
    made: DataFrame = type(df)(df._plan, spark)
    return made


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
