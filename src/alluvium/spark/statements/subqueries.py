"""Subqueries in the conditions of a statement: what they say is found out once, however often rows are judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.kept import keep_rows

#: Catalyst's expressions that hold a query.
_HOLDERS = frozenset({"Exists", "ListQuery", "ScalarSubquery", "LateralSubquery"})
#: What asks a list whether it has a value; without its list it is no expression any more.
_ASKS_LIST = "InSubquery"


def subqueries_of(expression: JavaObject) -> Iterator[JavaObject]:
    """The parts of an expression that hold a query; those within these queries are their own affair."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if _kind(node) in _HOLDERS:
            yield node
        else:
            children = node.children()
            pending += [children.apply(n) for n in range(children.size())]


def without_subqueries(java: Java, expression: JavaObject) -> JavaObject:
    """The expression with something that nobody understands in the place of each subquery."""
    known, pending = java.jvm.java.util.HashMap(), [expression]
    while pending:
        node = pending.pop()
        if _kind(node) in _HOLDERS or _kind(node) == _ASKS_LIST:
            known.put(node, java.bound_reference(0, node.dataType(), True))
        else:
            children = node.children()
            pending += [children.apply(n) for n in range(children.size())]
    return expression.transformDown(java.python_utils.toScalaMap(known))


def with_plans(java: Java, expression: JavaObject, plans: Iterable[tuple[JavaObject, JavaObject]]) -> JavaObject:
    """The expression with other queries in some of its parts: pairs of such a part, of `subqueries_of`, and a plan."""
    known = java.jvm.java.util.HashMap()
    for subquery, plan in plans:
        known.put(subquery, subquery.withNewPlan(plan))
    # A Scala map is a partial function.
    return expression.transformDown(java.python_utils.toScalaMap(known))


def keep_subqueries(spark: SparkSession, expression: JavaObject) -> tuple[JavaObject, tuple[DataFrame, ...]]:
    """The expression with subqueries whose rows are kept by the first job that asks for them, and these rows.

    A query may say something else each time that it is run, be it only because of a `limit` without an order. One that
    asks about the outer row cannot be run by itself: it is left as it is, over the versions that it was resolved on.

    Args:
        spark: The session.
        expression: Catalyst's, resolved.

    Returns:
        The expression; what is to be freed by `release_rows`.
    """
    java = java_of(spark)
    kept = [
        (subquery, keep_rows(DataFrame(java.dataset.ofRows(spark._jsparkSession, subquery.plan()), spark)))
        for subquery in subqueries_of(expression)
        if not subquery.isCorrelated()
    ]
    plans = [(subquery, rows._jdf.queryExecution().analyzed()) for subquery, rows in kept]
    return with_plans(java, expression, plans), tuple(rows for _, rows in kept)


def with_identities(rows: DataFrame, first: DataFrame) -> DataFrame:
    """The same rows, with columns under the identities that those of the same names have in other rows.

    Each read of a table has columns of its own. An expression that was resolved over one cannot be used over another,
    and to resolve it anew may say something else, where it looks at other rows.

    Args:
        rows: A later read.
        first: The rows over which the expression was resolved.
    """
    spark, java = rows.sparkSession, java_of(rows.sparkSession)
    catalyst = java.jvm.org.apache.spark.sql.catalyst
    plan = rows._jdf.queryExecution().analyzed()
    known = {str(a.name()): a for a in _columns(first._jdf.queryExecution().analyzed())}
    nothing, no_metadata = java.seq([]), java.none
    columns = [
        catalyst.expressions.Alias(a, a.name(), known[str(a.name())].exprId(), nothing, no_metadata, nothing)
        if str(a.name()) in known
        else a
        for a in _columns(plan)
    ]
    project = catalyst.plans.logical.Project(java.seq(columns), plan)
    return DataFrame(java.dataset.ofRows(spark._jsparkSession, project), spark)


def _columns(plan: JavaObject) -> list[JavaObject]:
    output = plan.output()
    return [output.apply(n) for n in range(output.size())]


def _kind(node: JavaObject) -> str:
    return str(node.getClass().getSimpleName())
