"""Columns of frames that a table has handed out: in the table's verbs they mean the columns of the table itself.

Every read of a table is a relation of its own, with column ids of its own. A verb reads the table anew, so that
`rows["id"]` of an earlier `toDF()` would name nothing in it; such columns are put under the names that they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.statements.resolve import Qualifier

#: Of at least so many frames columns are known, and of twice as many at most: a table hands out any number.
_FRAMES = 128


@dataclass(slots=True)
class OwnColumns:
    """What one table has handed out, by all of its aliases.

    The columns of many frames are one set of Catalyst's, for each question to it is a round trip to the JVM.
    """

    _older: JavaObject | None = None
    _newer: JavaObject | None = None
    _in_newer: int = 0

    def remember(self, rows: DataFrame) -> None:
        """Takes the columns of a frame for the table's own. Only the columns are kept, not the frame."""
        handed_out = rows._jdf.queryExecution().analyzed().outputSet()
        if self._in_newer == _FRAMES:
            self._older, self._newer, self._in_newer = self._newer, None, 0
        self._newer = handed_out if self._newer is None else getattr(self._newer, "$plus$plus")(handed_out)
        self._in_newer += 1

    def by_name(
        self, spark: SparkSession, given: Column | str, name: Qualifier, others: DataFrame | None = None
    ) -> Column | str:
        """The expression with the table's own columns called by name; SQL text is as it was.

        Args:
            spark: The session.
            given: SQL text or a column.
            name: By which the expression is resolved.
            others: Rows beside the table's, whose columns it may name: the source of a merge.

        Raises:
            InvalidRequest: `"invalid-expression"`: a column is the table's and the others' at once.
        """
        sets = [known for known in (self._older, self._newer) if known is not None]
        if isinstance(given, str) or not sets:
            return given
        found = expression = spark._jsparkSession.expression(given._jc)
        for own in sets:
            # Again, for one column may stand there as of several frames, and only equal ones go at once.
            while meant := list(_meant(found, own)):
                if others is not None:
                    _ensure_apart(meant, others)
                before, found = found, found.transformDown(_names_of(spark, meant, name))
                if found.fastEquals(before):
                    break  # it stands within a subquery, where Spark will say that it is unknown
        return given if found is expression else Column(java_of(spark).expression_utils.column(found))


def _meant(expression: JavaObject, own: JavaObject) -> Iterator[JavaObject]:
    """The columns of an expression that are in a set, as they stand in the expression (`intersect` gives the set's)."""
    named = expression.references()
    foreign = getattr(named, "$minus$minus")(own)
    return _columns(getattr(named, "$minus$minus")(foreign))


def _names_of(spark: SparkSession, meant: Iterable[JavaObject], name: Qualifier) -> JavaObject:
    """A Scala map, hence a partial function, from columns to their names."""
    java = java_of(spark)
    known = java.jvm.java.util.HashMap()
    for column in meant:
        known.put(column, java.unresolved_attribute(java.seq([*name, str(column.name())])))
    return java.python_utils.toScalaMap(known)


def _ensure_apart(meant: Iterable[JavaObject], others: DataFrame) -> None:
    output = others._jdf.queryExecution().analyzed().outputSet()
    for column in meant:
        if output.contains(column):
            raise Unresolvable(
                f"the column {str(column.name())!r} is one of the table's and one of the source's, which was read "
                "from it",
                code="invalid-expression",
                column=str(column.name()),
                hint='give both an alias, and name the column by it: "t.id = s.id"',
            )


def _columns(found: JavaObject) -> Iterator[JavaObject]:
    columns = found.toSeq()
    return (columns.apply(n) for n in range(columns.length()))
