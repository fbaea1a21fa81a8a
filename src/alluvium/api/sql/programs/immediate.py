"""EXECUTE IMMEDIATE: a statement in a text, which goes to the front again."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame

from alluvium.api.sql.call import Arguments, Call
from alluvium.api.sql.kinds import Kind, kind_of
from alluvium.api.sql.text.lexer import scan_tokens
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.errors import InvalidRequest
from alluvium.spark.jvm.gateway import JavaObject


def run(call: Call) -> DataFrame | None:
    """Carries out `EXECUTE IMMEDIATE text [INTO ...] [USING ...]`, unless the text is a query, which is Spark's."""
    text = _text(call)
    kind = Kind.QUERY if text is None else kind_of(text)
    if text is None or kind is Kind.QUERY:
        return None
    if call.plan.targetVariables().size():
        raise InvalidRequest(
            "EXECUTE IMMEDIATE ... INTO takes what a query gives, and the text is another statement",
            code="not-a-query",
            hint="leave INTO out",
        )
    assert call.front is not None, "the front makes the call"
    return call.front.again(text, _arguments(call, text, kind))


def _text(call: Call) -> str | None:
    if str(call.plan.nodeName()) == "ExecuteImmediateQuery":
        # Before Spark 4.1: a text, or the variable that holds it.
        given = call.plan.query().value()
        if isinstance(given, str):
            return given
        expression = given
    else:
        expression = call.plan.sqlStmtStr()
    (value,) = call.run("select 1").select(call.column(expression)).collect()[0]
    return None if value is None else str(value)


def _arguments(call: Call, text: str, kind: Kind) -> Arguments | None:
    """The values of parameters, as constants of Spark, or of Python where the statement is read here."""
    given = list(_members(call.plan.args()))
    if not given:
        return None
    frame = call.run("select 1").select(*map(call.column, given))
    values: list[object] = list(frame.collect()[0])
    if kind is not Kind.DELTA_ONLY:
        values = [Column(call.java.expression_utils.column(constant)) for constant in call.constants(frame)]
    if _is_positional(text):
        return values
    # A variable stands for the parameter of its name.
    return dict(zip(frame.columns, values, strict=True))


def _is_positional(text: str) -> bool:
    try:
        return any(token.text == "?" for token in scan_tokens(text, 0))
    except SqlSyntaxError:
        return False


def _members(sequence: JavaObject) -> Iterator[JavaObject]:
    return (sequence.apply(n) for n in range(sequence.size()))
