"""What holds for one statement, however many jobs it takes and however often it is carried out: the time that its
expressions see, and whether it may be carried out again at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark.sql import SparkSession

from alluvium.plan.ports import ScanSource
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.scan.native_lane.describe import About, about_workers
from alluvium.spark.scan.native_lane.index import items, planned_files

#: Every expression of Spark that asks for the time; others are made of these.
_CLOCKS = ("current_timestamp()", "now()", "current_date()", "localtimestamp()")

#: A scan of a table: its source, or what a scan of Python workers tells of itself; None where it is known that the
#: table's files are read, but not which version of them.
TableRead: TypeAlias = ScanSource | About | None


@dataclass(slots=True)
class Statement:
    """One statement of a caller.

    Spark computes the time anew for each query. A statement of several jobs would see several times: rows that were not
    yet due when files were chosen would be due when these are written.

    Attributes:
        spark: The session.
        url: The table that it is about.
        is_repeatable: Whether all expressions so far give the same values for the same rows.
        reads: What subqueries of expressions so far have read of the table itself, by the scans' identities.
    """

    spark: SparkSession
    url: str
    is_repeatable: bool = True
    reads: dict[tuple[str, ...] | None, TableRead] = field(default_factory=dict)
    _times: JavaObject | None = None

    def settle(self, expression: JavaObject, plan: JavaObject) -> JavaObject:
        """The expression with this statement's time in place of whatever asks for it.

        Args:
            expression: Catalyst's, resolved.
            plan: The projection that it stands in.
        """
        self.is_repeatable = self.is_repeatable and bool(expression.deterministic())
        if java_of(self.spark).subquery_expression.hasSubquery(expression):
            found = _reads(self.spark, items(plan.subqueriesAll()), self.url)
            self.reads |= {None if read is None else read.identity: read for read in found}
        if java_of(self.spark).compute_current_time.apply(plan).fastEquals(plan):
            return expression
        return expression.transformDown(self._known_times())

    def _known_times(self) -> JavaObject:
        """A Scala map, hence a partial function, from clocks to literals."""
        if self._times is None:
            java = java_of(self.spark)
            plan = self.spark.sql(f"select {', '.join(_CLOCKS)}")._jdf.queryExecution().analyzed()
            clocks, literals = plan.expressions(), java.compute_current_time.apply(plan).expressions()
            known = java.jvm.java.util.HashMap()
            for n in range(len(_CLOCKS)):
                known.put(clocks.apply(n).child(), literals.apply(n).child())
            self._times = java.python_utils.toScalaMap(known)
        return self._times


_current: ContextVar[Statement | None] = ContextVar("statement", default=None)


@contextmanager
def one_statement(spark: SparkSession, url: str) -> Iterator[Statement]:
    """All expressions that are resolved within belong to one statement about the table at a URL."""
    statement = Statement(spark, url)
    token = _current.set(statement)
    try:
        yield statement
    finally:
        _current.reset(token)


def reads_so_far() -> tuple[TableRead, ...]:
    """What the statement that is being carried out has read of its table beside the rows that it is about."""
    statement = _current.get()
    return () if statement is None else tuple(statement.reads.values())


def settled(expression: JavaObject, plan: JavaObject) -> JavaObject:
    """The expression as the statement that is being carried out means it; see `Statement.settle`."""
    statement = _current.get()
    return expression if statement is None else statement.settle(expression, plan)


def reads_of(spark: SparkSession, plan: JavaObject, url: str) -> tuple[TableRead, ...]:
    """The scans of a table below a plan, those of subqueries included.

    Args:
        spark: The session.
        plan: Catalyst's, analysed.
        url: The table's root.
    """
    return tuple(_reads(spark, (plan, *items(plan.subqueriesAll())), url))


def _reads(spark: SparkSession, plans: Iterable[JavaObject], url: str) -> Iterator[TableRead]:
    root = java_of(spark).hadoop_path(url)
    for leaf in (leaf for plan in plans for leaf in items(plan.collectLeaves())):
        kind = str(leaf.getClass().getSimpleName())
        if kind == "LogicalRelation":
            relation = leaf.relation()
            if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
                continue
            if any(path.equals(root) for path in items(relation.location().rootPaths())):
                index = planned_files(str(relation.location().toString()))
                yield None if index is None else index.source
        elif kind == "DataSourceV2Relation" and (about := about_workers(leaf)) is not None and about.identity[0] == url:
            yield about
