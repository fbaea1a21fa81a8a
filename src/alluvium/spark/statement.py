"""What holds for one statement, however many jobs it takes and however often it is carried out: the time that its
expressions see, and whether it may be carried out again at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.gateway import JavaObject, java_of

#: Every expression of Spark that asks for the time; others are made of these.
_CLOCKS = ("current_timestamp()", "now()", "current_date()", "localtimestamp()")


@dataclass(slots=True)
class Statement:
    """One statement of a caller.

    Spark computes the time anew for each query. A statement of several jobs would see several times: rows that were not
    yet due when files were chosen would be due when these are written.

    Attributes:
        spark: The session.
        is_repeatable: Whether all expressions so far give the same values for the same rows.
    """

    spark: SparkSession
    is_repeatable: bool = True
    _times: JavaObject | None = None

    def settle(self, expression: JavaObject, plan: JavaObject) -> JavaObject:
        """The expression with this statement's time in place of whatever asks for it.

        Args:
            expression: Catalyst's, resolved.
            plan: The projection that it stands in.
        """
        self.is_repeatable = self.is_repeatable and bool(expression.deterministic())
        if java_of(self.spark).compute_current_time.apply(plan).fastEquals(plan):
            return expression
        return expression.transformDown(self._known_times())

    def _known_times(self) -> JavaObject:
        """A Scala map, hence a partial function, from clocks to literals."""
        if self._times is None:
            java = java_of(self.spark)
            plan = self.spark.sql(f"select {', '.join(_CLOCKS)}")._jdf.queryExecution().analyzed()
            asked, told = plan.expressions(), java.compute_current_time.apply(plan).expressions()
            known = java.jvm.java.util.HashMap()
            for n in range(len(_CLOCKS)):
                known.put(asked.apply(n).child(), told.apply(n).child())
            self._times = java.python_utils.toScalaMap(known)
        return self._times


_current: ContextVar[Statement | None] = ContextVar("statement", default=None)


@contextmanager
def one_statement(spark: SparkSession) -> Iterator[Statement]:
    """All expressions that are resolved within belong to one statement."""
    statement = Statement(spark)
    token = _current.set(statement)
    try:
        yield statement
    finally:
        _current.reset(token)


def settled(expression: JavaObject, plan: JavaObject) -> JavaObject:
    """The expression as the statement that is being carried out means it; see `Statement.settle`."""
    statement = _current.get()
    return expression if statement is None else statement.settle(expression, plan)


def reads_table(rows: DataFrame, url: str) -> bool:
    """Whether rows come, in part, out of files of the table at a URL, as far as their plan tells."""
    java = java_of(rows.sparkSession)
    leaves, root = rows._jdf.queryExecution().analyzed().collectLeaves(), java.hadoop_path(url)
    for leaf in (leaves.apply(n) for n in range(leaves.length())):
        if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
            continue
        relation = leaf.relation()
        if str(relation.getClass().getSimpleName()) == "HadoopFsRelation":
            roots = relation.location().rootPaths()
            if any(roots.apply(n).equals(root) for n in range(roots.length())):
                return True
    return False
