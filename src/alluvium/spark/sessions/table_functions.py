"""Functions in the FROM of a query whose rows come from Python: `SELECT * FROM table_changes('t', 0)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from alluvium.errors import InvalidRequest
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.gateway import JavaObject, java_of

#: As Spark calls functions that it did not get from a user.
_SOURCE = "built-in"
#: A function of Spark's own.
_SPARKS = "range"
#: A constant argument: a number, or text; of a time its microseconds since 1970 UTC, as `Instant`.
Argument: TypeAlias = "int | str | Instant"
#: From the arguments of a call to its rows.
RowsOf: TypeAlias = Callable[[Sequence[Argument]], DataFrame]


class Instant(int):
    """A point in time: microseconds since 1970 UTC."""


class _Builder:
    """A function of Scala, from the expressions of a call to a plan."""

    def __init__(self, spark: SparkSession, name: str, rows_of: RowsOf) -> None:
        self._java = java_of(spark)
        self._name = name
        self._rows_of = rows_of

    def apply(self, expressions: JavaObject) -> JavaObject:
        """The plan of the rows; an error reaches the caller of the statement as it was raised."""
        know_caller(self._java)
        try:
            given = [expressions.apply(n) for n in range(expressions.size())]
            rows = self._rows_of([_constant(self._name, expression) for expression in given])
        except failures.CarriedError:
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise failures.remember(error) from None
        return rows._jdf.queryExecution().analyzed()

    def toString(self) -> str:
        """For debugging in the JVM."""
        return f"Alluvium's {self._name}"

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["scala.Function1"]


def _constant(function: str, expression: JavaObject) -> Argument:
    if not bool(expression.foldable()):
        raise InvalidRequest(
            f"{function} takes constants, not {expression.sql()}",
            code="invalid-argument",
            hint="write the value, or give it as a parameter: args=",
        )
    value, kind = expression.eval(None), str(expression.dataType().typeName())
    if value is None or kind not in ("byte", "short", "integer", "long", "string", "timestamp"):
        raise InvalidRequest(
            f"{function} takes names, versions and times, not {expression.sql()}", code="invalid-argument"
        )
    if kind == "timestamp":
        return Instant(value)
    return str(value) if kind == "string" else int(value)


def register_function(spark: SparkSession, name: str, rows_of: RowsOf) -> None:
    """Makes a function known to a classic session, as one of Spark's own; one of that name is replaced."""
    failures.install()
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    # From 4.2 on a function's name has a catalog and a schema before it. Beside those of the session Spark has its own
    # functions: persisted views may name these alone.
    known = registry.listFunction()
    own = next(f for f in (known.apply(n) for n in range(known.size())) if str(f.funcName()) == _SPARKS)
    info = java_of(spark).jvm.org.apache.spark.sql.catalyst.expressions.ExpressionInfo
    described = info(__name__, None, name, "", "", "", "", "", "", "", _SOURCE)
    registry.registerFunction(own.copy(name, own.database(), own.catalog()), described, _Builder(spark, name, rows_of))


def forget_function(spark: SparkSession, name: str) -> None:
    """Undoes `register_function`."""
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    known = registry.listFunction()
    # From 4.2 on a function's name has a catalog and a schema before it, which Spark puts there.
    for identifier in [known.apply(n) for n in range(known.size())]:
        if str(identifier.funcName()) == name:
            registry.dropFunction(identifier)
