"""The word DEFAULT in what an INSERT gives: the value that a column has where none is given.

Where the word may stand, and which column it is for, is Spark's to say: its own rule puts a mark for each column in its
place, and the marks are then replaced by the values, computed as the writer computes them.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as s

from alluvium.api.sql.call import Call
from alluvium.api.sql.rows.insert_columns import InsertColumns
from alluvium.api.sql.text.lexer import scan_tokens
from alluvium.commands.rows.new_values import default_values
from alluvium.errors import InvalidRequest
from alluvium.plan.ports import Target
from alluvium.schema.types import Struct
from alluvium.schema.walk import as_nullable
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.types import to_spark

_DEFAULT = re.compile(r"\bdefault\b", re.IGNORECASE)
#: Where Spark looks for the default of a column.
_CURRENT = "CURRENT_DEFAULT"


def says_default(text: str) -> bool:
    """Whether DEFAULT may stand in a statement as a value: as a word of its own, not within a name."""
    if _DEFAULT.search(text) is None:
        return False
    before = ""
    tokens = pairwise(scan_tokens(text, 0))
    for token, after in tokens:
        if token.word == "DEFAULT" and before != "." and after.text != ".":
            return True
        before = token.text
    return False


def without_default_words(
    call: Call, query: JavaObject, target: Target, columns: InsertColumns
) -> tuple[JavaObject, InsertColumns]:
    """The query with values in the place of the word DEFAULT.

    Args:
        call: The statement.
        query: Its rows, not resolved.
        target: The table.
        columns: Where the query's columns go, checked.

    Returns:
        The query, and its columns: those that the table computes or numbers are left out where DEFAULT stands for them.

    Raises:
        InvalidRequest: DEFAULT and other values stand for a column that the table computes or numbers.
        AnalysisException: DEFAULT stands within an expression.
    """
    schema = target.schema
    wanted = [name for name in columns.wanted(schema) if schema.find(name) is not None]
    marks = [f"alluvium default {n} {uuid.uuid4().hex}" for n in range(len(wanted))]
    marked = _marked(call, query, wanted, marks)
    plan = target.plan_write(None, ())
    made = {d.column for d in plan.derived if not d.is_constant} | {n.column for n in plan.numbered}
    places = frozenset(n for n, name in enumerate(wanted) if name in made and _stands(marked, n, marks[n]))
    defaults = default_values(target, call.run("select 1"))
    known = call.java.jvm.java.util.HashMap()
    for n, name in enumerate(wanted):
        if n not in places:
            value = defaults.get(name, _null(schema, name))
            known.put(_expression(call, sf.lit(marks[n])), _expression(call, value))
    done = marked.transformAllExpressions(call.java.python_utils.toScalaMap(known))
    if not places and done.fastEquals(marked):
        return query, columns
    return done, replace(columns, left_out=places)


def _marked(call: Call, query: JavaObject, wanted: Sequence[str], marks: Sequence[str]) -> JavaObject:
    """The query with marks in the places where DEFAULT stands."""
    pairs = zip(wanted, marks, strict=True)
    fields = [s.StructField(name, s.StringType(), True, {_CURRENT: f"'{mark}'"}) for name, mark in pairs]
    table = call.rows_of(s.StructType(fields))._jdf.queryExecution().analyzed()
    state = call.spark._jsparkSession.sessionState()
    rule = call.java.jvm.org.apache.spark.sql.catalyst.analysis.ResolveColumnDefaultInCommandInputQuery
    if str(query.nodeName()) != "Project":
        found = rule(state.catalogManager()).apply(_insert(call, table, query)).query()
        if not found.fastEquals(query):
            return found
    # Of a projection Spark has to know first what is below it: a column of that name is meant before the default is.
    insert = call.with_queries(_insert(call, table, query))
    resolved = state.analyzer().execute(insert)
    return resolved.query() if str(resolved.nodeName()) == "InsertIntoStatement" else query


def _insert(call: Call, table: JavaObject, query: JavaObject) -> JavaObject:
    """An INSERT as Spark knows it; from 4.2 on it has two arguments more."""
    java = call.java
    made = java.jvm.org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement
    nothing = java.python_utils.toScalaMap(java.jvm.java.util.HashMap())
    given = [table, nothing, java.seq([]), query, False, False, False]
    kind = java.jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement")
    more = int(kind.getConstructors()[0].getParameterCount()) - len(given)
    return made(*given, *[java.none, False][:more])


def _stands(query: JavaObject, place: int, mark: str) -> bool:
    """Whether DEFAULT stands for a column that the table makes; then it must stand there for all rows."""
    kind = str(query.nodeName())
    if kind == "Project":
        return mark in str(query.projectList().apply(place).toString())
    if kind != "UnresolvedInlineTable":
        return False
    rows = query.rows()
    # Rows that stand in the statement's text, not those of a table.
    is_default = [mark in str(rows.apply(r).apply(place).toString()) for r in range(rows.size())]
    if any(is_default) and not all(is_default):
        raise InvalidRequest(
            "DEFAULT and other values stand for a column that the table makes itself",
            code="numbers-given",
            hint="write two statements: one that leaves the column out, and one that gives its values",
        )
    return any(is_default)


def _null(schema: Struct, name: str) -> Column:
    found = schema.find(name)
    assert found is not None, "columns have been checked"
    return sf.lit(None).cast(to_spark(as_nullable(found.type)))


def _expression(call: Call, column: Column) -> JavaObject:
    return call.spark._jsparkSession.expression(column._jc)
