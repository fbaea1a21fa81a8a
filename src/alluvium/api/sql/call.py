"""One statement on its way to a verb: its session, its text, what Spark's parser made of it, and the answer's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from alluvium.api.delta.delta_access import TableAccess, known_access
from alluvium.api.names.paimon_access import PaimonAccess, known_paimon
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.sessions.catalog import quoted_name
from alluvium.spark.sessions.session import session_catalog
from alluvium.spark.statements.subqueries import subqueries_of, with_plans

Arguments = Mapping[str, object] | Sequence[object]
#: Nodes of a parsed plan that stand for a table by its name.
_BY_NAME = frozenset(
    (
        "UnresolvedIdentifier",
        "UnresolvedInsertTarget",
        "UnresolvedRelation",
        "UnresolvedTable",
        "UnresolvedTableOrView",
    )
)


class Front(Protocol):
    """What carries out statements within a statement; None says that one is about somebody else's table."""

    def again(self, text: str, args: Arguments | None) -> DataFrame | None:
        """Carries out a statement that a text holds."""

    def part(self, plan: JavaObject, text: str) -> DataFrame | None:
        """Carries out one that has been parsed."""

    def knows(self, plan: JavaObject) -> bool:
        """Whether one may turn out to be about a table of ours."""


@dataclass(frozen=True)
class Call:
    """A statement that Spark's parser read.

    Attributes:
        spark: The session.
        text: As it was given, with variables put in.
        plan: The parsed plan, nothing of it resolved; parameters are bound.
        run: Carries out another statement as Spark's own `sql` does.
        queries: Where the statement stands behind `WITH`: that node, whose child is the plan.
        front: What statements within this one are given to.
        args: Values of a script's parameters, which are put into its statements one by one; else nothing.
    """

    spark: SparkSession
    text: str
    plan: JavaObject
    run: Callable[..., DataFrame]
    queries: JavaObject | None = None
    front: Front | None = None
    args: Arguments | None = None

    @cached_property
    def java(self) -> Java:
        """The classes behind the session."""
        return java_of(self.spark)

    def table(self, node: JavaObject) -> TableAccess | None:
        """The table of ours that a node names, be it under an alias; None where it is somebody else's."""
        if str(node.nodeName()) == "SubqueryAlias":
            return self.table(node.child())
        parts = self.parts(node)
        return None if parts is None else known_access(self.spark, quoted_name(parts))

    def paimon(self, node: JavaObject) -> PaimonAccess | None:
        """The Paimon table that a node names, be it under an alias; None where it is none."""
        if str(node.nodeName()) == "SubqueryAlias":
            return self.paimon(node.child())
        parts = self.parts(node)
        if parts is None or session_catalog(self.spark).isTempView(self.java.seq(list(parts))):
            return None  # as everywhere in Spark, a view hides a table of its name
        return known_paimon(self.spark, quoted_name(parts))

    def parts(self, node: JavaObject) -> tuple[str, ...] | None:
        """The parts of the name that a node stands for, be it said by `IDENTIFIER(...)`; None: it is no name."""
        return name_parts(identified(self.spark, node, self.run))

    def rows(self, query: JavaObject) -> DataFrame:
        """The rows of a query within the statement; it sees what stands behind `WITH`."""
        plan = self.with_queries(query)
        return DataFrame(self.java.dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    def with_queries(self, plan: JavaObject) -> JavaObject:
        """A part of the statement, which sees what stands behind `WITH`."""
        return plan if self.queries is None else self.queries.withNewChildren(self.java.seq([plan]))

    def column(self, expression: JavaObject) -> Column:
        """An expression of the statement, as it was parsed: nothing is turned into text and back. Its subqueries see
        what stands behind `WITH`.
        """
        if self.queries is not None and self.java.subquery_expression.hasSubquery(expression):
            seen = [(s, self.queries.withNewChildren(self.java.seq([s.plan()]))) for s in subqueries_of(expression)]
            expression = with_plans(self.java, expression, seen)
        return Column(self.java.expression_utils.column(expression))

    def constants(self, expressions: DataFrame) -> list[JavaObject]:
        """The columns of one row as constants of Catalyst, of the very types that they have."""
        fold = self.java.folding_rules[1]
        values = fold.apply(expressions._jdf.queryExecution().analyzed()).projectList()
        return [values.apply(n).child() for n in range(values.size())]

    def answer(self, **values: object) -> DataFrame:
        """One row of named values, whole numbers as BIGINT."""
        columns = [sf.lit(v).cast("bigint") if isinstance(v, int) else sf.lit(v) for v in values.values()]
        named = [column.alias(name) for name, column in zip(values, columns, strict=True)]
        return self.run("select 1").select(*named)

    def nothing(self) -> DataFrame:
        """The answer of statements that have none."""
        return self.rows_of(StructType())

    def rows_of(self, schema: StructType, rows: Sequence[Sequence[object]] = ()) -> DataFrame:
        """A few rows that are known, under columns of that schema."""
        return self.spark.createDataFrame([tuple(row) for row in rows], schema)


def name_parts(node: JavaObject) -> tuple[str, ...] | None:
    """The parts of the name that a node of a parsed plan stands for; None: it is no name.

    They are the first thing that each of these nodes has, under one name or another.
    """
    return texts(node.productElement(0)) if str(node.nodeName()) in _BY_NAME else None


def identified(spark: SparkSession, node: JavaObject, run: Callable[..., DataFrame]) -> JavaObject:
    """The node that `IDENTIFIER(...)` stands for, whose text is computed as Spark does; any other node as it is."""
    if str(node.nodeName()) != "PlanWithUnresolvedIdentifier":
        return node
    java = java_of(spark)
    (name,) = run("select 1").select(Column(java.expression_utils.column(node.identifierExpr()))).collect()[0]
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(str(name))
    # A lambda's class is hidden, so that its method is called by the interface.
    function = java.jvm.java.lang.Class.forName("scala.Function2")
    apply = next(m for m in function.getMethods() if str(m.getName()) == "apply")
    arguments = java.gateway.new_array(java.jvm.java.lang.Object, 2)
    arguments[0], arguments[1] = parts, node.children()
    return apply.invoke(node.planBuilder(), arguments)


def texts(sequence: Any) -> tuple[str, ...]:
    """The members of a short Scala sequence of texts."""
    return tuple(str(sequence.apply(n)) for n in range(sequence.size()))


def some(option: JavaObject) -> JavaObject | None:
    """What a Scala `Option` holds."""
    return option.get() if option.isDefined() else None
