"""Catalyst's conditions as trees, with the settings under which each was resolved.

An expression of Spark keeps what it means: its time zone, and whether a failing cast is an error. The session may have
other settings by now, and the table may have been read under others still.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from alluvium.expr.parse import parse_engine_filter
from alluvium.expr.tree import Call, Cast, Expression, Unknown, in_zone, walk
from alluvium.schema.types import Struct
from alluvium.spark.gateway import Java, JavaObject

_ZONE = re.compile(r'"timeZoneId":"([^"]*)"')
#: Functions whose patterns Spark reads in two ways.
_BY_PATTERN = ("date_format",)


def parse_condition(java: Java, condition: JavaObject, schema: Struct) -> Expression:
    """What a resolved expression says; what is not understood, or may be meant in two ways, is `Unknown`.

    Args:
        java: The session's JVM.
        condition: Catalyst's expression.
        schema: The columns that it may name.
    """
    text, settings = str(condition.sql()), java.sql_conf.get()
    # Constants are printed in the zone of the session as it is now.
    printed_in = str(settings.sessionLocalTimeZone())
    parsed = parse_engine_filter(text, schema, printed_in)
    computed = [node for node in walk(parsed) if isinstance(node, (Cast, Call))]
    if not computed:
        return parsed
    has_patterns = any(isinstance(node, Call) and node.name in _BY_PATTERN for node in computed)
    if has_patterns and str(settings.legacyTimeParserPolicy()).upper() == "LEGACY":
        return Unknown(text)
    zones = _zones(condition)
    if zones is None or len(zones) > 1:
        return Unknown(text)
    zone = next(iter(zones), printed_in)
    if zone != printed_in and parse_engine_filter(text, schema, zone) != parsed:
        # Some constant is of one zone, and what it is compared with of another.
        return Unknown(text)
    return in_zone(parsed, zone)


def meaning_of(java: Java, conditions: list[JavaObject]) -> tuple[str, ...]:
    """Equal for conditions that mean the same, under the settings under which they were resolved."""
    settings = java.sql_conf.get()
    around = (str(settings.sessionLocalTimeZone()), str(settings.legacyTimeParserPolicy()))
    # The text does not tell whether a cast fails, or in which zone; Catalyst's hash does.
    return (*around, *(part for c in conditions for part in (str(c.sql()), str(c.canonicalized().hashCode()))))


def _zones(condition: JavaObject) -> set[str] | None:
    """The time zones of an expression's parts; None where it does not tell."""
    try:
        return set(_ZONE.findall(str(condition.toJSON())))
    except Py4JJavaError:
        return None
