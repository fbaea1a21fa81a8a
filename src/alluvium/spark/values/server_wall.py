"""The second wall for SQL of a table over Spark Connect: what the server tells of how it reads a text.

A client cannot see the tree of classes that a classic session checks (`spark.values.table_sql`). It sees two things:
the plan that the server makes of the text, as a tree of texts, in which a subquery or a variable of the session stands
out; and which class stands behind the name of each function that the text calls. What no one tells is of which class
the nodes of an expression are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.row_functions import JOB, ROW
from alluvium.expr.sql.sql_tokens import read_tokens
from alluvium.spark.scan.connect_lane.explained import analysed_tree, is_over_rows
from alluvium.spark.sessions.readings import foreign_function

#: How Spark prints a variable of the session.
_VARIABLE = "variablereference("


def ensure_read_as_written(rows: DataFrame, texts: Sequence[str]) -> None:
    """Asks the server what it makes of expressions over rows.

    Args:
        rows: Whose columns they name; they are not run.
        texts: Canonical (`RowExpression.canonical`), which may have more of ours around it.

    Raises:
        InvalidRequest: `"invalid-expression"`: more than a computation on a row, by functions of Spark alone.
        AnalysisException: Spark cannot evaluate a text.
    """
    session = rows.sparkSession
    nothing: Any = session.createDataFrame([], rows.schema)
    columns = [sf.expr(text) for text in texts]
    # Names are whole expressions, where trees leave out arguments that are many (`spark.sql.debug.maxToStringFields`).
    if any(_VARIABLE in name for name in nothing.select(*columns).columns):
        raise unknown("a variable of the session", texts)
    named = nothing.select(*(column.alias(f"c{n}") for n, column in enumerate(columns)))
    tree = analysed_tree(named._explain_string(extended=True))
    if tree is None:
        raise unknown("what it does not show, perhaps by spark.sql.maxPlanStringLength,", texts)
    # An aggregate, a window or a generator makes another plan, and a subquery has leaves of its own.
    if not is_over_rows(tree, "Project"):
        raise unknown("more than one row", texts)
    if (foreign := foreign_function(session, called_functions(texts))) is not None:
        raise unknown(f"a function {foreign}() that is not Spark's own", texts)


def called_functions(texts: Iterable[str]) -> frozenset[str]:
    """Functions that texts call by name, in lower case: not `in` and `case`, which are words of the language."""
    return (ROW | JOB) & frozenset(
        word.folded for text in texts for word, follower in pairwise(read_tokens(text)) if follower.text == "("
    )


def unknown(what: str, texts: Sequence[str]) -> InvalidRequest:
    """The error for a text in which Spark reads what a table's expression may not have."""
    shown = ", ".join(texts)
    return InvalidRequest(
        f"not an expression over a row: Spark reads {what} in it: {shown[:200]}",
        code="invalid-expression",
        hint="the table's constraint, default or generated column does more than compute a value; drop it, or write "
        "with the engine that made it",
    )
