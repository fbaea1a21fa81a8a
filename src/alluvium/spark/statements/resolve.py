"""Expressions of a caller, resolved against the rows that they may name, before anything is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as s

from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.tree import Expression
from alluvium.schema.text_lengths import char_paths
from alluvium.schema.types import DataType, Field, Struct
from alluvium.schema.walk import fields_within
from alluvium.spark.jvm.failures import Unresolvable, analysis_problem
from alluvium.spark.jvm.filters import parse_condition
from alluvium.spark.jvm.frames import expression_of, select_column
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.names import to_logical
from alluvium.spark.naming.text_lengths import pads_when_reading
from alluvium.spark.naming.types import from_spark
from alluvium.spark.statements.statement import foldable, read_once, settled
from alluvium.spark.statements.subqueries import without_subqueries

#: How Catalyst prints a subquery: a number, and what it asks of the outer row.
_SUBQUERY = re.compile(r"(scalar-subquery|list|exists)#\d+ \[[^\]]*\]")
#: How rows are called in expressions: by an alias, or by a table's name with catalog and database.
Qualifier: TypeAlias = tuple[str, ...]


def named_rows(rows: DataFrame, name: Qualifier) -> DataFrame:
    """The same rows, whose columns may be called `t.id`, and `db.t.id` where the name has more parts."""
    spark, java = rows.sparkSession, java_of(rows.sparkSession)
    alias = java.alias_identifier(name[-1], java.seq(list(name[:-1])))
    plan = java.subquery_alias(alias, rows._jdf.queryExecution().analyzed())
    named = DataFrame(java.dataset.ofRows(spark._jsparkSession, plan), spark)
    # As `show_not_null` has left it.
    named.__dict__.update({key: value for key, value in rows.__dict__.items() if key == "schema"})
    return named


@dataclass(frozen=True, slots=True)
class Resolved:
    """An expression whose columns are known for good: it may be used over any rows that still have them.

    Attributes:
        column: The expression.
        type: Of its values.
        java: Catalyst's expression.
        plan: The projection in which it was resolved.
        has_subquery: Whether it looks at other rows.
    """

    column: Column
    type: s.DataType
    java: JavaObject
    plan: JavaObject
    has_subquery: bool = False

    @property
    def sql(self) -> str:
        """As Spark prints it."""
        return str(self.java.sql())

    def of(self, spark: SparkSession, expression: JavaObject) -> Resolved:
        """The same, by another expression that means the same."""
        return replace(self, java=expression, column=Column(java_of(spark).expression_utils.column(expression)))

    @property
    def is_deterministic(self) -> bool:
        """Whether it gives the same value each time for the same row."""
        return bool(self.java.deterministic())


def resolve(rows: DataFrame, expression: Column | str, what: str, subqueries: bool = False) -> Resolved:
    """Resolves one expression over single rows.

    Args:
        rows: Whose columns it may name; a join, or rows under an alias.
        expression: SQL text or a column.
        what: For errors: `"the condition of DELETE"`.
        subqueries: Whether it may have subqueries.

    Raises:
        InvalidRequest: `"invalid-expression"`: it names unknown or ambiguous columns, has a subquery, an aggregate, a
            window or a generator, or its types do not fit.
    """
    spark = rows.sparkSession
    column = expression_of(spark, read_once(expression)) if isinstance(expression, str) else expression
    try:
        selected = select_column(rows, column, "value")
    except (AnalysisException, ParseException) as error:
        raise _invalid(what, analysis_problem(error)) from None
    java = java_of(spark)
    plan, own = selected._jdf.queryExecution().analyzed(), rows._jdf.queryExecution().analyzed()
    below = str(plan.child().nodeName()) if str(plan.nodeName()) == "Project" else None
    of_rows = str(own.nodeName())
    if below == "Project" and (of_rows != "Project" or bool(plan.child().child().fastEquals(own))):
        # Arguments of a function that is written in SQL are computed below.
        raise _invalid(what, "it calls a function that is written in SQL", "write the function's expression itself")
    if below is None or below != of_rows:
        raise _invalid(what, "it is not computed from one row: an aggregate, a window or a generator")
    found = plan.expressions().head().child()
    has_subquery = bool(java.subquery_expression.hasSubquery(found))
    if has_subquery and not subqueries:
        raise _invalid(
            what, "subqueries are not supported", "run the subquery first, or join its rows to a merge's source"
        )
    found = settled(found, plan)
    data_type = selected.schema["value"].dataType
    return Resolved(Column(java.expression_utils.column(found)), data_type, found, plan, has_subquery)


def resolve_condition(rows: DataFrame, expression: Column | str, what: str, subqueries: bool = False) -> Resolved:
    """Resolves a condition; see `resolve`.

    Raises:
        InvalidRequest: `"invalid-expression"`: as of `resolve`, or it is not boolean, or not deterministic.
    """
    found = resolve(rows, expression, what, subqueries)
    if not isinstance(found.type, s.BooleanType):
        raise _invalid(what, f"it is {found.type.simpleString()}, not boolean")
    if not found.is_deterministic:
        raise _invalid(what, "it is not deterministic, so that it may say something else each time")
    return found


def shown_text(rows: DataFrame, found: Resolved, hidden: str) -> str:
    """The expression for a history: with constants computed, and columns under the names of their rows.

    Args:
        rows: For the session.
        found: The expression.
        hidden: A name of rows that nobody gave, and that is left out.
    """
    folded = _folded(rows, found.plan).expressions().head().child()
    text = str(folded.toString())
    columns = folded.references().toSeq()
    for column in (columns.apply(n) for n in range(columns.length())):
        name, qualifier = str(column.name()), column.qualifier()
        owner = "" if qualifier.isEmpty() else str(qualifier.last())
        # "name#12", and "name#12L" of a bigint; the name comes back as it is, with no say in the replacement's syntax.
        numbered = rf"({re.escape(name)})#{column.exprId().id()}L?(?!\d)"
        prefix = "" if owner in ("", hidden) else f"{owner}."
        text = re.sub(numbered, prefix.replace("\\", r"\\") + r"\1", text)
    return _SUBQUERY.sub(r"\1(...)", text) if found.has_subquery else text


def _folded(rows: DataFrame, plan: JavaObject) -> JavaObject:
    """A projection with constants computed."""
    plan = foldable(rows.sparkSession, plan)
    for rule in java_of(rows.sparkSession).folding_rules:
        try:
            plan = rule.apply(plan)
        except Py4JJavaError as error:
            # Spark 4.0 does not pass over `now()` and its like, which only a query can compute: they stay as they are.
            if "annot evaluate expression" not in str(error.java_exception):
                raise
    return plan


def outputs(rows: DataFrame) -> list[tuple[str, Column]]:
    """The columns of some rows in order, each known for good: also behind a join with rows that have columns of that
    name.
    """
    java = java_of(rows.sparkSession)
    output = rows._jdf.queryExecution().analyzed().output()
    found = (output.apply(n) for n in range(output.length()))
    return [(str(attribute.name()), Column(java.expression_utils.column(attribute))) for attribute in found]


def attributes(rows: DataFrame) -> dict[str, Column]:
    """The same by name, for rows no two of whose columns have one name."""
    return dict(outputs(rows))


def type_of(found: Resolved, what: str) -> DataType:
    """The type of the values in the words of a table."""
    return from_spark(found.type, what)


def condition_tree(rows: DataFrame, condition: Resolved, schema: Struct, name: Qualifier) -> Expression:
    """What a condition says of a table's columns, as far as it is understood; other columns are unknown.

    Args:
        rows: For the session.
        condition: Resolved over rows that have the table's columns under a name.
        schema: The table's columns.
        name: Under which they go.
    """
    wrapped = schema
    for part in reversed(name):
        wrapped = Struct((Field(part, wrapped),))
    plan = _folded(rows, condition.plan)
    folded = settled(plan.expressions().head().child(), plan)
    columns = folded.references().toSeq()
    named = [columns.apply(n) for n in range(columns.size())]
    own = rows._jdf.queryExecution().analyzed().outputSet()
    if condition.has_subquery:
        folded = without_subqueries(java_of(rows.sparkSession), folded)
    if any(_prints_as_own(a, name) for a in named if not own.contains(a)):
        parsed: Expression = tree.Unknown(str(folded.sql()))
    else:
        parsed = parse_condition(java_of(rows.sparkSession), folded, wrapped, len(name))
    chars = char_paths(schema)
    pads = not chars or pads_when_reading(rows.sparkSession)
    paths = {
        (*name, *path): tree.Column(path, f.type, chars.get(path))
        for path, f in fields_within(schema)
        if pads or path not in chars
    }
    return tree.naming(to_logical(parsed, paths), frozenset((str(a.name()),) for a in named))


def _prints_as_own(foreign: JavaObject, table: Qualifier) -> bool:
    """Whether a column of other rows may be read as one of the table's, where the condition stands as text: the field
    `s.t.id` of a column `t` ends as the table's column `t.id` does.
    """
    qualifier, wanted = foreign.qualifier(), tuple(part.lower() for part in table)
    parts = (*(str(qualifier.apply(n)) for n in range(qualifier.size())), str(foreign.name()))
    folded = tuple(part.lower() for part in parts)
    ends = (folded[start:] for start in range(len(folded)))
    return any(end[: len(wanted)] == wanted[: len(end)] for end in ends)


def equal_keys(condition: Resolved, rows: DataFrame) -> Iterator[tuple[str, Column]]:
    """Where the condition demands that a column of some rows equals something of others: the name, and that.

    Args:
        condition: Resolved over a join.
        rows: Whose columns are meant.
    """
    java = java_of(rows.sparkSession)
    own = rows._jdf.queryExecution().analyzed().outputSet()
    pending = [condition.java]
    while pending:
        node = pending.pop()
        name = str(node.nodeName())
        if name == "And":
            pending += [node.left(), node.right()]
        elif name == "EqualTo":
            for side, other in ((node.left(), node.right()), (node.right(), node.left())):
                is_own = str(side.nodeName()) == "AttributeReference" and side.references().subsetOf(own)
                if is_own and other.references().intersect(own).isEmpty() and not other.references().isEmpty():
                    yield str(side.name()), Column(java.expression_utils.column(other))


def _invalid(what: str, problem: str, hint: str | None = None) -> InvalidRequest:
    return Unresolvable(f"{what} cannot be used: {problem}", code="invalid-expression", hint=hint)
