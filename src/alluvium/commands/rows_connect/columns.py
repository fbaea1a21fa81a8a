"""Columns of Spark Connect: trees of names that the client holds, and that mean something in the rows of a verb."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Column
from pyspark.sql.connect.column import Column as ConnectColumn
from pyspark.sql.connect.expressions import (
    CallFunction,
    ColumnReference,
    Expression,
    SQLExpression,
    UnresolvedFunction,
)

from alluvium.expr.sql.clocks import CLOCKS
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
    found = _renamed(node, rename)
    return column if found is node else ConnectColumn(found)


def _renamed(node: Expression, rename: Rename) -> Expression:
    if isinstance(node, ColumnReference):
        name = None if node._plan_id is None else rename(node._unparsed_identifier, node._plan_id)
        return node if name is None else ColumnReference(name, None, node._is_metadata_column)
    changed = {name: _member(value, rename) for name, value in vars(node).items()}
    if all(changed[name] is value for name, value in vars(node).items()):
        return node
    made = copy.copy(node)
    vars(made).update(changed)
    return made


def _member(value: Any, rename: Rename) -> Any:
    """What is held by a node: another, several, or something else."""
    if isinstance(value, Expression):
        return _renamed(value, rename)
    if isinstance(value, (list, tuple)):
        members = [_member(each, rename) for each in value]
        return value if all(a is b for a, b in zip(members, value, strict=True)) else type(value)(members)
    return value


def asks_for_time(column: Column) -> bool:
    """Whether a column may be another in each query, because it asks for the time."""
    node = getattr(column, "_expr", None)
    return isinstance(node, Expression) and any(map(_asks, _nodes(node)))


def _asks(node: Expression) -> bool:
    if isinstance(node, SQLExpression):
        # A text may ask in any way.
        return any(clock in node._expr.casefold() for clock in CLOCKS)
    if isinstance(node, CallFunction):
        # It may be called with the schema that it is in.
        return node._name.rpartition(".")[2].strip("`").casefold() in CLOCKS
    return isinstance(node, UnresolvedFunction) and node._name.casefold() in CLOCKS


def _nodes(node: Any) -> Iterator[Expression]:
    if isinstance(node, Expression):
        yield node
        node = list(vars(node).values())
    if isinstance(node, (list, tuple)):
        for each in node:
            yield from _nodes(each)
