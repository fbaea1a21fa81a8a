"""Sessions that come to be after `install_as_delta`: they start without the JAR, and are enabled.

PySpark's classes are wrapped once, at the few places that every classic session passes through: `SparkContext`, which
starts the JVM with the settings; `SparkSession`, which each object of a session is made by (a builder's, one of
`newSession()`, one made by hand); the builder, which tells an existing session its settings, too.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from alluvium.api.as_delta.settings import left_of, submit_args_without_jar, without_jar
from alluvium.api.session.delta_settings import SET_STATEMENT, tell_of_unread
from alluvium.api.session.enable import enable, is_enabled
from alluvium.spark.sessions.session import is_connect

log = logging.getLogger("alluvium")

_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_LOG_STORE = "spark.delta.logStore."
_hooked: list[type] = []


def hook_sessions() -> None:
    """Wraps PySpark's classes, once, and adopts the sessions that there are."""
    if not _hooked:
        _hooked.append(SparkSession)
        _wrap(SparkContext, "__init__", _init_context)
        _wrap(SparkSession, "__init__", _init_session)
        _wrap(SparkSession.Builder, "getOrCreate", _build)
        _wrap(SparkSession.Builder, "create", _build)
        _wrap(RuntimeConfig, "set", _set)
        _wrap(SparkSession, "sql", _sql)
    for session in _existing():
        adopt(session)


def adopt(spark: SparkSession) -> None:
    """Enables a session, and has its catalog be Spark's own where a class of the JAR was to be."""
    if not is_connect(spark) and not is_enabled(spark):
        settings = spark.conf.getAll
        if left_of(_SESSION_CATALOG, settings.get(_SESSION_CATALOG, "")) is None:
            # The class is looked for at the first use of the catalog, not before.
            spark.conf.unset(_SESSION_CATALOG)
        _warn_of_log_stores(settings)
    enable(spark)


def _existing() -> list[SparkSession]:
    known = [SparkSession._instantiatedSession]
    connect = sys.modules.get("pyspark.sql.connect.session")
    if connect is not None:
        known.append(connect.SparkSession._default_session)
    return [s for s in known if s is not None and (is_connect(s) or s.sparkContext._jsc is not None)]


def _wrap(owner: type, name: str, ours: Callable[..., object]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(self: Any, *args: object, **kwargs: object) -> object:
        return ours(original, self, *args, **kwargs)

    setattr(owner, name, wrapper)


def _init_context(original: Callable[..., object], self: SparkContext, *args: object, **kwargs: object) -> None:
    given = inspect.signature(original).bind(self, *args, **kwargs)
    conf = given.arguments.get("conf")
    if isinstance(conf, SparkConf):
        given.arguments["conf"] = _conf_without_jar(conf)
    with _submit_args_without_jar():
        original(*given.args, **given.kwargs)


def _conf_without_jar(conf: SparkConf) -> SparkConf:
    """The same object where there is nothing to leave out: it belongs to the caller, and is seen by it."""
    said = dict(conf.getAll())
    kept = without_jar(said)
    if kept == said:
        return conf
    log.info("settings of Delta's JAR are left out: %s", ", ".join(n for n in said if kept.get(n) != said[n]))
    return SparkConf(loadDefaults=False).setAll([(name, str(value)) for name, value in kept.items()])


@contextmanager
def _submit_args_without_jar() -> Iterator[None]:
    said = os.environ.get(_SUBMIT_ARGS)
    if said is None:
        yield
        return
    os.environ[_SUBMIT_ARGS] = submit_args_without_jar(said)
    try:
        yield
    finally:
        os.environ[_SUBMIT_ARGS] = said


def _init_session(original: Callable[..., object], self: SparkSession, *args: object, **kwargs: object) -> None:
    original(self, *args, **kwargs)
    adopt(self)


def _build(original: Callable[..., object], self: SparkSession.Builder, *args: object, **kwargs: object) -> object:
    kept = without_jar(self._options)
    self._options.clear()
    self._options.update(kept)
    session = original(self, *args, **kwargs)
    # A classic one has come by `SparkSession`, but maybe before this was installed.
    adopt(session)  # type: ignore[arg-type]
    # One that was enabled before takes further settings from a builder.
    tell_of_unread(kept)
    return session


def _set(original: Callable[..., object], self: RuntimeConfig, key: str, value: object) -> object:
    """A class of the JAR as a catalog is left out, also where it is set later."""
    if key == _SESSION_CATALOG and left_of(key, str(value)) is None:
        log.info("%s = %s is left out", key, value)
        return None
    return original(self, key, value)


def _sql(original: Callable[..., object], self: SparkSession, sqlQuery: str, *args: object, **kwargs: object) -> object:
    """`SET name = value` is the same as `spark.conf.set`."""
    found = SET_STATEMENT.match(sqlQuery) if isinstance(sqlQuery, str) else None
    if found is None:
        return original(self, sqlQuery, *args, **kwargs)
    key = found["quoted"] or found["plain"]
    if key == _SESSION_CATALOG and left_of(key, found["value"].strip("`'\"; \n")) is None:
        log.info("%s is left out", sqlQuery)
        return original(self, f"SET {key}")
    return original(self, sqlQuery, *args, **kwargs)


def _warn_of_log_stores(settings: Mapping[str, str]) -> None:
    """A store that others lock by a database is one where our put-if-absent is not seen by them."""
    for name, value in settings.items():
        if name.startswith(_LOG_STORE) and "Dynamo" in value:
            warnings.warn(
                f"{name} = {value}: Alluvium does not use DynamoDB; tables that others write by it at the same time "
                "can lose commits",
                stacklevel=3,
            )
