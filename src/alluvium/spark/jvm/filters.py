"""Catalyst's conditions as trees, with the settings under which each was resolved.

An expression of Spark keeps what it means: its time zone, and whether a failing cast is an error. The session may have
other settings by now, and the table may have been read under others still.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from alluvium.expr.sql.parse import parse_engine_filter
from alluvium.expr.tree import Call, Cast, Expression, Unknown, in_zone, walk
from alluvium.schema.types import Struct
from alluvium.spark.jvm.expression_classes import PACKAGE
from alluvium.spark.jvm.gateway import Java, JavaObject

_ZONE = re.compile(r'"timeZoneId":"([^"]*)"')
_CLASS = re.compile(r'"class":"([^"]*)"')
#: Functions whose patterns Spark reads in two ways.
_BY_PATTERN = ("date_format",)
#: Nodes that stand for code of a user, and print under whatever name that has: `year(day)`, for a fiscal year.
_OF_USERS = frozenset(
    {"PythonUDF", "PythonUDAF", "ScalaUDF", "ScalarPythonUDF", "ApplyFunctionExpression", "TransformExpression"}
)

#: Where the nodes stand that call Java by a name (`StaticInvoke`, `Invoke`).
_CALLS_OF_JAVA = PACKAGE + "objects."


def parse_condition(java: Java, condition: JavaObject, schema: Struct) -> Expression:
    """What a resolved expression says; what is not understood, or may be meant in two ways, is `Unknown`.

    Args:
        java: The session's JVM.
        condition: Catalyst's expression.
        schema: The columns that it may name.
    """
    told, settings = _json(condition), java.sql_conf.get()
    text = _printed(java, condition, told)
    # Constants are printed in the zone of the session as it is now.
    printed_in = str(settings.sessionLocalTimeZone())
    parsed = parse_engine_filter(text, schema, printed_in)
    computed = [node for node in walk(parsed) if isinstance(node, (Cast, Call))]
    if not computed:
        return parsed
    has_patterns = any(isinstance(node, Call) and node.name in _BY_PATTERN for node in computed)
    if has_patterns and str(settings.legacyTimeParserPolicy()).upper() == "LEGACY":
        return Unknown(text)
    zones = None if told is None else set(_ZONE.findall(told))
    if zones is None or len(zones) > 1:
        return Unknown(text)
    zone = next(iter(zones), printed_in)
    if zone != printed_in and parse_engine_filter(text, schema, zone) != parsed:
        # Some constant is of one zone, and what it is compared with of another.
        return Unknown(text)
    return in_zone(parsed, zone)


def _printed(java: Java, condition: JavaObject, told: str | None) -> str:
    """A resolved expression as Catalyst prints it, but for what has no name that we know, or is printed bare."""
    classes = None if told is None else set(_CLASS.findall(told))
    is_plain = classes is not None and not any(_is_of_users(c) or _is_bare(c) for c in classes)
    return str((condition if is_plain else _legible(java, condition)).sql())


def calls_users(expression: JavaObject) -> bool:
    """Whether code of a user may stand in a resolved expression."""
    return _has_users(_json(expression))


def _has_users(told: str | None) -> bool:
    return told is None or any(map(_is_of_users, set(_CLASS.findall(told))))


def _is_of_users(java_class: str) -> bool:
    # Extensions of a session bring expressions of classes of their own.
    return not java_class.startswith(PACKAGE) or java_class[len(PACKAGE) :] in _OF_USERS


def _is_bare(java_class: str) -> bool:
    """Whether it prints its arguments without quotes: a column `a.b` as a.b, a constant as whatever is in it."""
    return java_class.startswith(_CALLS_OF_JAVA)


def _legible(java: Java, expression: JavaObject) -> JavaObject:
    """The expression with something that nobody understands in the place of what is of users or cannot be read again,
    and with the columns of type char(n) under names that stand in quotes.
    """
    known, pending = java.jvm.java.util.HashMap(), [expression]
    while pending:
        node = pending.pop()
        of = str(node.getClass().getName())
        if _is_of_users(of) or _is_bare(of):
            padded = _padded_column(java, node) if _is_bare(of) else None
            known.put(node, java.bound_reference(0, node.dataType(), True) if padded is None else padded)
        else:
            children = node.children()
            pending += [children.apply(n) for n in range(children.size())]
    # A Scala map is a partial function.
    return expression.transformDown(java.python_utils.toScalaMap(known))


def _padded_column(java: Java, call: JavaObject) -> JavaObject | None:
    """A call that pads a column when it is read, over a column that is called as its name is quoted; else None."""
    if str(call.nodeName()) != "StaticInvoke" or str(call.functionName()) != "readSidePadding":
        return None
    arguments = call.arguments()
    column, length = arguments.apply(0), arguments.apply(1)
    attribute = column
    while str(attribute.nodeName()) == "GetStructField":
        attribute = attribute.child()
    if str(attribute.nodeName()) != "AttributeReference" or str(length.nodeName()) != "Literal":
        return None
    return call.withNewChildren(java.seq([attribute.withName(str(column.sql())), length]))


def meaning_of(java: Java, conditions: list[JavaObject]) -> tuple[str, ...]:
    """Equal for conditions that mean the same, under the settings under which they were resolved."""
    settings = java.sql_conf.get()
    around = (str(settings.sessionLocalTimeZone()), str(settings.legacyTimeParserPolicy()))
    # The text does not tell whether a cast fails, or in which zone; Catalyst's hash does.
    return (*around, *(part for c in conditions for part in (str(c.sql()), str(c.canonicalized().hashCode()))))


def _json(condition: JavaObject) -> str | None:
    """All that Catalyst tells of an expression; None where it does not."""
    try:
        return str(condition.toJSON())
    except Py4JJavaError:
        return None
