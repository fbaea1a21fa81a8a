"""Errors of Python that Spark's Scala catches by what they are: a condition and a SQL state, as handlers of scripts do.

py4j makes a `Py4JException` of what a callback raises, which is nothing to Spark. A thread's connection can be told to
throw the exception of Java that a `Py4JJavaError` holds instead. That one is Spark's own, whose text has the token of
the remembered error (`failures`): where nobody catches it, the caller gets the error as it was raised.
"""

from __future__ import annotations

import copy
from typing import Any

from py4j.clientserver import PythonParameters
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from alluvium.errors import AlluviumError
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.gateway import Java, JavaObject

#: "General error": of what has no state of its own. Without any, Spark's search for a handler fails.
_GENERAL = "HY000"
#: Parameters of the constructor that takes a text and, in Spark 4.0 and 4.1, no state.
_WITHOUT_STATE = 5


def thrown(java: Java, error: Exception, condition: tuple[str, str] | None = None) -> Exception:
    """What to raise inside a callback, so that Spark sees an error of a condition; keeps the error for the caller.

    Args:
        java: The session's classes.
        error: Ours, or PySpark's; others are no errors of a statement, and nobody is to handle them.
        condition: With its SQL state, where the error does not say it itself.
    """
    carried = failures.remember(error)
    told = condition or _condition(error)
    if told is None or not _throws_as_is(java):
        return carried
    found: Exception = Py4JJavaError(str(carried), _exception(java, str(carried), *told))
    return found


def _condition(error: Exception) -> tuple[str, str] | None:
    if isinstance(error, PySparkException) and error.getCondition() is not None:
        return str(error.getCondition()), error.getSqlState() or _GENERAL
    if isinstance(error, AlluviumError):
        return f"ALLUVIUM_{error.code.upper().replace('-', '_')}", _GENERAL
    return None


class _Once(PythonParameters):  # type: ignore[misc]  # py4j has no types
    """A connection's parameters, by which the next exception is thrown as it is, and those after it as before."""

    @property
    def propagate_java_exceptions(self) -> bool:
        """Read where an exception has come out of a callback, and nowhere else."""
        return bool(self.__dict__.pop("once", False) or self.__dict__["propagate_java_exceptions"])


def _throws_as_is(java: Java) -> bool:
    """Tells this thread's connection; False: it cannot be told, as where py4j shares connections."""
    client = java.gateway._gateway_client
    connection = client.get_thread_connection() if hasattr(client, "get_thread_connection") else None
    if connection is None:
        return False
    if not isinstance(connection.python_parameters, _Once):
        # They are all connections', and callbacks of others count on the other way.
        connection.python_parameters = copy.copy(connection.python_parameters)
        connection.python_parameters.__class__ = _Once
    connection.python_parameters.once = True
    return True


def _exception(java: Java, text: str, condition: str, state: str) -> JavaObject:
    option = java.option.apply
    kind = java.jvm.java.lang.Class.forName("org.apache.spark.SparkRuntimeException")
    # The public ones look up the text by the condition, among those that Spark itself has.
    made = next(c for c in kind.getDeclaredConstructors() if c.getParameterTypes()[1].getName() == "scala.Option")
    made.setAccessible(True)
    contexts = java.gateway.new_array(java.jvm.org.apache.spark.QueryContext, 0)
    given: list[Any] = [text, java.none, option(condition), java.no_options, contexts]
    if made.getParameterCount() == _WITHOUT_STATE:
        _know_state(java, condition, state)
    else:
        given.append(option(state))
    arguments = java.gateway.new_array(java.jvm.java.lang.Object, len(given))
    for n, value in enumerate(given):
        arguments[n] = value
    return made.newInstance(arguments)


def _know_state(java: Java, condition: str, state: str) -> None:
    """Spark looks up the state by the condition: it is told of those that it does not have."""
    name = condition.split(".")[0]
    spark = java.jvm.org.apache.spark
    reader = spark.SparkThrowableHelper.errorReader()
    if reader.errorInfoMap().contains(name) and reader.getSqlState(name) is not None:
        return
    (constructor,) = java.jvm.java.lang.Class.forName("org.apache.spark.ErrorInfo").getConstructors()
    # Since 4.1 there is a fourth: what of Spark's own behaviour has changed.
    given = [java.no_items, java.none, java.option.apply(state), java.none]
    information = spark.ErrorInfo(*given[: constructor.getParameterCount()])
    known = reader.getClass().getDeclaredField("errorInfoMap")
    known.setAccessible(True)
    known.set(reader, reader.errorInfoMap().updated(name, information))
