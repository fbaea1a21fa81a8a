"""A private copy of a session: settings of our own that the user's session never sees."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.session import capabilities, is_connect

#: Since this version a Connect server copies sessions.
_CLONES_SINCE = (4, 1)
#: What clients of PySpark 4.1, and since 4.2, do at the end of the process.
_AT_EXIT = ("_cleanup_ml_cache", "_on_exit")
_changing_settings = threading.RLock()
#: Relations that lie in a session of the server, where no copy of the session has them: rows of `createDataFrame` above
#: a size, checkpoints, the batch of a stream.
_KEPT_ON_SERVER = frozenset({"cached_local_relation", "chunked_cached_local_relation", "cached_remote_relation"})
_OBSERVING = frozenset({"collect_metrics"})
#: What may name a table or a function, which a session looks for where it is at home.
_NAMING = frozenset({"sql", "named_table", "expression_string", "call_function", "unresolved_table_valued_function"})
#: Of another catalog a copy of the session has neither the state, nor that it is the current one.
_CATALOG, _DEFAULT_CATALOG = "spark_catalog", "spark.sql.defaultCatalog"


class PrivateSession:
    """A clone of the JVM session (1 ms) with settings changed; it has the same views, functions and cached data."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        java = java_of(spark)
        self._spark = spark
        self._dataset = java.dataset
        self._clone = spark._jsparkSession.cloneSession()
        if java.observers is not None:
            # Or `Observation.get` of the user's would wait for ever for what the copy's queries have observed.
            java.observers.set(self._clone, spark._jsparkSession.observationManager())
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
def with_settings(df: DataFrame, settings: Mapping[str, str], *, in_place: bool = False) -> Iterator[DataFrame]:
    """The same query, classic or Connect, in a session that has settings of ours until the block ends.

    Args:
        df: The query.
        settings: What they are.
        in_place: Whether over Connect it needs what copies of its session do not have, as its variables are.
    """
    spark = df.sparkSession
    if not is_connect(spark):
        yield PrivateSession(spark, settings).take(df)
    elif not in_place and runs_in_copy(df):
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


def runs_in_copy(df: DataFrame) -> bool:
    """Whether `with_settings` runs a query in a copy of its session.

    A copy has the session's settings, views and functions, but not its variables: where Spark does not know a name
    there, the query has to run in the session itself.
    """
    spark = df.sparkSession
    if is_connect(spark) and capabilities(spark).version >= _CLONES_SINCE and hasattr(spark, "cloneSession"):
        return not _is_bound(df)
    return False


def is_observed(df: Any) -> bool:
    """Whether somebody is told what a query observes of its rows: by the first job that runs it, even if that fails."""
    if is_connect(df.sparkSession):
        return _names_any(df._plan.plan(df.sparkSession.client), _OBSERVING)
    return "CollectMetrics" in str(df._jdf.queryExecution().analyzed().toString())


def _is_bound(df: Any) -> bool:
    """Whether a Connect query means something else in a copy of its session: it takes rows that only the session has on
    the server, or names something where the session looks for names in another catalog.
    """
    spark = df.sparkSession
    # Not `to_proto`, which compresses large plans.
    plan = df._plan.plan(spark.client)
    return _names_any(plan, _KEPT_ON_SERVER) or (_names_any(plan, _NAMING) and _is_elsewhere(spark))


def _is_elsewhere(spark: SparkSession) -> bool:
    return {spark.catalog.currentCatalog(), spark.conf.get(_DEFAULT_CATALOG, _CATALOG)} != {_CATALOG}


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
        try:
            clone.client.release_session()
        finally:
            clone.client.close()
            _forget(clone.client)


def _forget(client: Any) -> None:
    """Nothing is left to do for a closed client when the process ends; what PySpark has registered would keep it, and
    its channel, until then.
    """
    for name in _AT_EXIT:
        if hasattr(client, name):
            atexit.unregister(getattr(client, name))


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
