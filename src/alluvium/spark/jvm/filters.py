"""Catalyst's conditions as trees, with the settings under which each was resolved.

An expression of Spark keeps what it means: its time zone, and whether a failing cast is an error. The session may have
other settings by now, and the table may have been read under others still.
"""

from __future__ import annotations

import decimal
import json
import re
from itertools import repeat

from py4j.protocol import Py4JJavaError

from alluvium.codecs.temporal_text import parse_zone
from alluvium.expr.bind import number_literal
from alluvium.expr.functions import decimal_of
from alluvium.expr.skipping.monotone import local_parts
from alluvium.expr.sql.parse import parse_engine_filter
from alluvium.expr.tree import Call, Cast, Column, Expression, Literal, Unknown, in_zone, walk
from alluvium.schema import types as t
from alluvium.schema.types import Struct
from alluvium.spark.jvm.clocks import shares_clock
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

#: A cast to a struct, an array or a map, which Catalyst prints as what is cast: its members may go under other names.
_CAST_OF_PARTS = re.compile(r'\.Cast","num-children":1,"child":0,"dataType":\{')
_PARTS = frozenset({"StructType", "ArrayType", "MapType"})
#: Of a decimal constant its digits, and the precision and scale of its type.
_DECIMAL = re.compile(r'\.Literal","num-children":0,"value":"([^"]*)","dataType":"decimal\((\d+),(\d+)\)"')
_ARITHMETIC = ("+", "-", "*")
_MOST_DIGITS = 38
#: The name of each column in what Catalyst tells of an expression.
_COLUMN = re.compile(r'\.AttributeReference","num-children":0,"name":("(?:[^"\\]|\\.)*")')
#: Where the nodes stand that call Java by a name (`StaticInvoke`, `Invoke`).
_CALLS_OF_JAVA = PACKAGE + "objects."
#: A variable of the session, which prints as a column would that has its name.
_VARIABLE = PACKAGE + "VariableReference"
_CAST = PACKAGE + "Cast"


def parse_condition(java: Java, condition: JavaObject, schema: Struct, depth: int = 0) -> Expression:
    """What a resolved expression says; what is not understood, or may be meant in two ways, is `Unknown`.

    Args:
        java: The session's JVM.
        condition: Catalyst's expression.
        schema: The columns that it may name.
        depth: How many names stand before a column in the schema, which are its qualifiers.
    """
    told, settings = _json(condition), java.sql_conf.get()
    text = _printed(java, condition, told)
    # Constants are printed in the zone of the session as it is now.
    printed_in = str(settings.sessionLocalTimeZone())
    parsed = parse_engine_filter(text, schema, printed_in)
    if told is not None and not _reads_same(parsed, told, depth):
        return Unknown(text)
    computed = [node for node in walk(parsed) if isinstance(node, (Cast, Call))]
    if not computed:
        return parsed if _is_by(java, parsed, printed_in) else Unknown(text)
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
    return in_zone(parsed, zone) if _is_by(java, parsed, zone) else Unknown(text)


def _is_by(java: Java, parsed: Expression, zone: str) -> bool:
    """Whether local times of a zone mean to Spark what they mean here, or there are none."""
    is_timed = any(isinstance(node, Literal) and node.type == t.TIMESTAMP for node in walk(parsed))
    return not (is_timed or any(local_parts(parsed, parse_zone(zone)))) or shares_clock(java, zone)


def _reads_same(parsed: Expression, told: str, depth: int) -> bool:
    """Whether the text was read as one about the columns that Catalyst speaks of, with constants of its types.

    A name that reads as something else, whatever it is, makes another column of a column, or a constant.
    """
    named = {str(json.loads(name)).lower() for name in _COLUMN.findall(told)}
    nodes = list(walk(parsed))
    read = {".".join(node.path[depth : depth + 1]).lower() for node in nodes if isinstance(node, Column)}
    if not read <= named or (named - read and not any(isinstance(node, Unknown) for node in nodes)):
        return False
    return not any(map(_may_round, nodes, repeat(_misprinted(told))))


def _misprinted(told: str) -> frozenset[object]:
    """The decimal constants whose type has more digits than are printed: it says how Spark rounds a product."""
    found = set()
    for digits, precision, scale in _DECIMAL.findall(told):
        value = decimal.Decimal(digits)
        seen = decimal_of(number_literal(digits).type) if len(value.as_tuple().digits) <= _MOST_DIGITS else None
        if seen is None or int(precision) > seen.precision or int(scale) > seen.scale:
            found.add(value)
    return frozenset(found)


def _may_round(node: Expression, misprinted: frozenset[object]) -> bool:
    """Whether decimals are computed, one of them being of a type that we do not see."""
    if not misprinted or not isinstance(node, Call) or node.name not in _ARITHMETIC:
        return False
    return any(isinstance(n, Literal) and n.value in misprinted for arg in node.args for n in walk(arg))


def _printed(java: Java, condition: JavaObject, told: str | None) -> str:
    """A resolved expression as Catalyst prints it, but for what has no name that we know, or is printed bare."""
    if told is None or _CAST_OF_PARTS.search(told) or any(map(_is_illegible, set(_CLASS.findall(told)))):
        condition = _legible(java, condition)
    return str(condition.sql())


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


def _is_illegible(java_class: str) -> bool:
    """Whether what it prints may be read as something else."""
    return _is_of_users(java_class) or _is_bare(java_class) or java_class == _VARIABLE


def _casts_parts(node: JavaObject, java_class: str) -> bool:
    return java_class == _CAST and str(node.dataType().getClass().getSimpleName()) in _PARTS


def _legible(java: Java, expression: JavaObject) -> JavaObject:
    """The expression with something that nobody understands in the place of what is of users or cannot be read again,
    and with the columns of type char(n) under names that stand in quotes.
    """
    known, pending = java.jvm.java.util.HashMap(), [expression]
    while pending:
        node = pending.pop()
        of = str(node.getClass().getName())
        if _is_illegible(of) or _casts_parts(node, of):
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
    if not conditions:
        return ()
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
