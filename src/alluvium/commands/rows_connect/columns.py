"""Columns of Spark Connect: trees of names that the client holds, and that mean something in the rows of a verb."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeGuard

from pyspark.sql import Column
from pyspark.sql.connect.column import Column as ConnectColumn
from pyspark.sql.connect.expressions import (
    CallFunction,
    ColumnReference,
    Expression,
    SQLExpression,
    UnresolvedFunction,
)

from alluvium.expr.sql.clocks import CLOCKS, UnsteadyText
from alluvium.spark.scan.connect_lane.connect_sql import to_sql

#: From a column's name, as it is written, and the number of the frame that it was taken from, to its name in a verb's
#: rows; None: it stays as it is.
Rename = Callable[[str, int], str | None]


def text_of(column: Column) -> str | None:
    """The column as SQL that means the same; None where it cannot be told."""
    return to_sql(column)


def renamed(column: Column, rename: Rename) -> Column:
    """The same expression with columns of frames under their names in other rows."""
    node = getattr(column, "_expr", None)
    if not isinstance(node, Expression):
        return column
    found = _changed(node, lambda part: _renamed(part, rename))
    return column if found is node else ConnectColumn(found)


def _renamed(node: Expression, rename: Rename) -> Expression | None:
    if not isinstance(node, ColumnReference) or node._plan_id is None:
        return None
    name = rename(node._unparsed_identifier, node._plan_id)
    return None if name is None else ColumnReference(name, None, node._is_metadata_column)


def _changed(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """A tree in which other nodes stand for some; what is in these is not looked at.

    Args:
        node: The tree.
        change: From a node to another; None: it stays, and what is in it is asked for.
    """
    if (other := change(node)) is not None:
        return other
    changed = {name: _member(value, change) for name, value in vars(node).items()}
    if all(changed[name] is value for name, value in vars(node).items()):
        return node
    made = copy.copy(node)
    vars(made).update(changed)
    return made


def _member(value: Any, change: Callable[[Expression], Expression | None]) -> Any:
    """What is held by a node: another, several, or something else."""
    if isinstance(value, Expression):
        return _changed(value, change)
    if isinstance(value, (list, tuple)):
        members = [_member(each, change) for each in value]
        return value if all(a is b for a, b in zip(members, value, strict=True)) else type(value)(members)
    return value


def settled(column: Column, settle: Callable[[str], str]) -> Column:
    """The same expression with what `settle` makes of each part that may ask for the time: of SQL texts within, and of
    functions.

    The rest stays as the client holds it: as a text, a literal would be read by the session's own rules.

    Args:
        column: The expression.
        settle: From an SQL text to the same at one moment; it may raise `UnsteadyText`.
    """
    node = getattr(column, "_expr", None)
    if not isinstance(node, Expression):
        return column
    found = _changed(node, lambda part: _settled(part, settle))
    return column if found is node else ConnectColumn(found)


def _settled(node: Expression, settle: Callable[[str], str]) -> Expression | None:
    if isinstance(node, SQLExpression):
        text = settle(node._expr)
        return None if text == node._expr else SQLExpression(text)
    if not _is_clock(node):
        return None
    call = f"{node._name}({', '.join(_argument(node, each) for each in node._args)})"
    text = settle(call)
    return None if text == call else SQLExpression(text)


def _argument(clock: CallFunction | UnresolvedFunction, given: Expression) -> str:
    text = to_sql(ConnectColumn(given))
    if text is None:
        raise UnsteadyText(clock._name)
    return text


def _is_clock(node: Expression) -> TypeGuard[CallFunction | UnresolvedFunction]:
    if not isinstance(node, (CallFunction, UnresolvedFunction)):
        return False
    # It may be called with the schema that it is in.
    name = node._name.rpartition(".")[2].strip("`").lower()
    # With arguments the others are no clocks.
    return name in CLOCKS and (not node._args or name == "current_time")
