"""Expressions that a table carries, as columns: what Spark understood is looked at before anything is computed.

Whoever can write a table's log can put any text there. The gate (`expr.sql.row_sql`) has read it once; but Spark has a
lexer of its own, settings that change how it reads, and variables, views and functions of the user's session. So Spark
parses and analyses the text in a private session whose settings for parsing are fixed, and each class of expression in
the tree that comes out must be one that we know. What is computed is this very tree, never the text again.

Time zone, ANSI mode and the like are those of the user's session, as with the reference engine.

Over Spark Connect nobody shows us the classes: there the text of the tree has to do (`spark.values.server_wall`), and
the gate, which is why it writes the text anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.spark.jvm.expression_classes import KNOWN, PACKAGE
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.clone import PrivateSession
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.statements.statement import settled, settled_text
from alluvium.spark.values.server_wall import ensure_read_as_written, unknown

_SETTINGS = {
    # ${env:X} stays what it is.
    "spark.sql.variable.substitute": "false",
    # "text" is a text.
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # `a.*` is a name.
    "spark.sql.parser.quotedRegexColumnNames": "false",
}


class _Node(msgspec.Struct):
    java_class: str = msgspec.field(name="class")


_nodes = msgspec.json.Decoder(list[_Node])


def table_columns(rows: DataFrame, texts: Sequence[str]) -> list[Column]:
    """Expressions of a table over rows.

    Args:
        rows: Whose columns they name. The result may be used over these rows, and over all that still have their
            columns.
        texts: In canonical form (`RowExpression.canonical`), which may have more of ours around it.

    Raises:
        InvalidRequest: `"invalid-expression"`: Spark reads more in a text than a computation on a row.
        AnalysisException: Spark cannot evaluate a text.
    """
    if not texts:
        return []
    if is_connect(rows.sparkSession):
        ensure_read_as_written(rows, texts)
        names = {name.lower() for name in rows.columns}
        return [sf.expr(settled_text(text, names)) for text in texts]
    private = PrivateSession(rows.sparkSession, _SETTINGS)
    taken = private.take(rows)
    plan = taken.select(*(sf.expr(text) for text in texts))._jdf.queryExecution().analyzed()
    # An aggregate, a window or a generator makes another plan.
    if str(plan.nodeName()) != "Project" or not plan.child().fastEquals(taken._jdf.queryExecution().analyzed()):
        raise unknown("more than one row", texts)
    found, java = plan.projectList(), java_of(rows.sparkSession)
    columns = []
    for position, text in enumerate(texts):
        expression = found.apply(position)
        ensure_known(expression, text)
        columns.append(Column(java.expression_utils.column(settled(expression, plan))))
    return columns


def ensure_known(expression: JavaObject, text: str) -> None:
    """Refuses a resolved Catalyst expression in which something is that a table's expression may not have.

    Args:
        expression: Of Catalyst.
        text: What was parsed, for the error.

    Raises:
        InvalidRequest: `"invalid-expression"`.
    """
    for name in classes_of(expression):
        if not name.startswith(PACKAGE) or name[len(PACKAGE) :] not in KNOWN:
            raise unknown(name.rpartition(".")[2], [text])


def classes_of(expression: JavaObject) -> set[str]:
    """The classes of all nodes of a Catalyst expression; one round trip to the JVM."""
    return {node.java_class for node in _nodes.decode(str(expression.toJSON()))}


def first_problem(rows: DataFrame, texts: Sequence[str]) -> tuple[int, AnalysisException] | None:
    """Which text Spark cannot evaluate, where it refused several at once."""
    for position, text in enumerate(texts):
        try:
            table_columns(rows, [text])
        except AnalysisException as error:
            return position, error
    return None
