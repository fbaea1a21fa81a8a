"""Expressions of Spark that its public functions cannot say: calls of Java methods."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import Column, SparkSession

from alluvium.spark.jvm.gateway import Java, JavaObject, java_of


class Catalyst:
    """Builds expressions of one gateway's Catalyst."""

    def __init__(self, java: Java) -> None:
        sql = java.jvm.org.apache.spark.sql
        self._java = java
        self._parser = getattr(getattr(sql.catalyst.parser, "CatalystSqlParser$"), "MODULE$")
        self._invoke = sql.catalyst.expressions.objects.Invoke
        self._static_invoke = sql.catalyst.expressions.objects.StaticInvoke
        self._columns = sql.classic.ExpressionUtils
        self._nothing = java.seq([])
        self._types: dict[str, JavaObject] = {}
        self._classes: dict[str, JavaObject] = {}

    def parse(self, text: str) -> JavaObject:
        """The expression that SQL text says, its columns not resolved yet."""
        return self._parser.parseExpression(text)

    def expression(self, column: Column) -> JavaObject:
        """A column of PySpark as an expression."""
        return self._columns.expression(column._jc)

    def column(self, expression: JavaObject) -> Column:
        """The expression as a column of PySpark."""
        return Column(self._columns.column(expression))

    def static_call(self, owner: str, method: str, result: str, arguments: list[JavaObject]) -> JavaObject:
        """A call of a static method of a class that every executor has; null where an argument is null.

        Args:
            owner: Name of the class.
            method: Name of the method, which is public and has no side effects.
            result: Its type, as SQL spells it. It never returns null.
            arguments: Expressions.
        """
        if owner not in self._classes:
            self._classes[owner] = self._java.jvm.java.lang.Class.forName(owner)
        # Behind the arguments: types to cast to (none), whether null gives null, may be returned, and whether the
        # method is deterministic; then the function of a catalog that this stands for (none).
        call = (self._java.seq(arguments), self._nothing, True, False, True, self._java.none)
        return self._static_invoke(self._classes[owner], self._type(result), method, *call)

    def call(self, target: JavaObject, method: str, result: str) -> JavaObject:
        """A call of a method without arguments of the object that an expression gives; as `static_call`."""
        return self._invoke(target, method, self._type(result), self._nothing, self._nothing, True, False, True)

    def _type(self, text: str) -> JavaObject:
        if text not in self._types:
            self._types[text] = self._parser.parseDataType(text)
        return self._types[text]


_known: WeakKeyDictionary[JavaGateway, Catalyst] = WeakKeyDictionary()


def catalyst_of(spark: SparkSession) -> Catalyst:
    """The Catalyst behind a classic session."""
    java = java_of(spark)
    found = _known.get(java.gateway)
    if found is None:
        found = _known[java.gateway] = Catalyst(java)
    return found
