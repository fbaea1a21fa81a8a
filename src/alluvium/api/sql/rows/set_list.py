"""`SET column = value, ...` and `(column, ...) VALUES (value, ...)`, as the verbs take them."""

from __future__ import annotations

import re

from pyspark.sql import Column

from alluvium.api.sql.call import Call, texts
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.native_lane.index import items

#: A name that needs no backticks to be read as one part of a path.
_PLAIN = re.compile(r"[^.`]+")
_DEFAULT = "DEFAULT"


def set_list(call: Call, assignments: JavaObject, what: str) -> dict[str, Column | str]:
    """Columns, or dotted fields of them, and their values; `default` stands for itself.

    Args:
        call: The statement.
        assignments: Catalyst's.
        what: For errors: `"UPDATE"`.

    Raises:
        InvalidRequest: `"assigned-twice"`.
    """
    found: dict[str, Column | str] = {}
    for assignment in items(assignments):
        name = ".".join(map(_written, texts(assignment.key().nameParts())))
        if name in found:
            raise Unresolvable(f"{what} sets {name!r} twice", code="assigned-twice", column=name)
        found[name] = _value(call, assignment.value())
    return found


def _written(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else quote(part)


def _value(call: Call, expression: JavaObject) -> Column | str:
    """The value; as the word where it is the word `DEFAULT`, which Catalyst takes for a column."""
    if str(expression.nodeName()) == "UnresolvedAttribute":
        parts = texts(expression.nameParts())
        if len(parts) == 1 and parts[0].upper() == _DEFAULT:
            return _DEFAULT
    return call.column(expression)
