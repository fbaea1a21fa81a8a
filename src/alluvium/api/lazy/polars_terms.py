"""Conditions of Polars as ours.

Polars tells of an expression its operands and whether it equals another: what it is, is found by building what it may
be. That is all public, where the forms of its plans and of its serialized expressions are not.

In Polars as in Spark AND, OR and NOT have three values, NaN equals itself and is greater than all other numbers, and
texts are ordered by their bytes.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa

from alluvium.api.lazy import terms
from alluvium.expr import tree
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Struct

_COMPARISONS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda a, b: a.eq_missing(b),
}
_LOGIC: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {"and": operator.and_, "or": operator.or_}
_BETWEEN = {"both": (">=", "<="), "left": (">=", "<"), "right": (">", "<="), "none": (">", "<")}


def pushed(predicate: pl.Expr, columns: Struct) -> tree.Expression | None:
    """What is true for every row that a condition is true for; None: nothing is known."""
    if not _is_shallow(predicate):
        return None
    return terms.implied(predicate, partial(_exact, columns=columns), _logic)


def _is_shallow(node: pl.Expr) -> bool:
    level = [node]
    for _ in range(terms.MAX_DEPTH):
        level = [below for one in level for below in one.meta.pop()]
        if not level:
            return True
    return False


def _logic(node: pl.Expr) -> tuple[str, pl.Expr, pl.Expr] | None:
    return _built(node, _LOGIC)


def _built(
    node: pl.Expr, ways: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]]
) -> tuple[str, pl.Expr, pl.Expr] | None:
    """Which way of two operands a node is, and its operands."""
    below = node.meta.pop()
    if len(below) != 2:
        return None
    for left, right in ((below[1], below[0]), (below[0], below[1])):
        for name, build in ways.items():
            if node.meta.eq(build(left, right)):
                return name, left, right
    return None


def _exact(node: pl.Expr, columns: Struct) -> tree.Expression | None:
    count = len(node.meta.pop())
    if count == 0:
        return _bare(node, columns)
    if count == 1:
        return _of_one(node, node.meta.pop()[0], columns)
    if count == 3:
        return _between(node, columns)
    if pair := _logic(node):
        left, right = _exact(pair[1], columns), _exact(pair[2], columns)
        if left is None or right is None:
            return None
        return tree.And(left, right) if pair[0] == "and" else tree.Or(left, right)
    if pair := _built(node, _COMPARISONS):
        return _compare(*pair, columns)
    return _among(node, columns) or _starts_with(node, columns)


def _bare(node: pl.Expr, columns: Struct) -> tree.Expression | None:
    found = _column(node, columns)
    return found if found is not None and found.type == t.BOOLEAN else None


def _of_one(node: pl.Expr, below: pl.Expr, columns: Struct) -> tree.Expression | None:
    if node.meta.eq(~below):
        found = _exact(below, columns)
        return None if found is None else tree.Not(found)
    column = _column(below, columns)
    if column is None:
        return _bare(node, columns)
    if node.meta.eq(below.is_null()):
        return tree.IsNull(column)
    if node.meta.eq(below.is_not_null()):
        return tree.Not(tree.IsNull(column))
    if column.type in t.FLOATING:
        is_nan = tree.Compare("=", column, tree.Literal(float("nan"), column.type))
        if node.meta.eq(below.is_nan()):
            return is_nan
        if node.meta.eq(below.is_not_nan()):
            return tree.Not(is_nan)
    return None


def _between(node: pl.Expr, columns: Struct) -> tree.Expression | None:
    high, low, value = node.meta.pop()
    for closed, (above, below) in _BETWEEN.items():
        if node.meta.eq(value.is_between(low, high, closed=closed)):
            left, right = _compare(above, value, low, columns), _compare(below, value, high, columns)
            return None if left is None or right is None else tree.And(left, right)
    return None


def _compare(op: str, left: pl.Expr, right: pl.Expr, columns: Struct) -> tree.Expression | None:
    one, other = _column(left, columns), _column(right, columns)
    if one is not None and other is not None:
        return tree.Compare(op, one, other) if one.type == other.type else None
    if one is not None:
        value = _constant(right, one.type)
        return None if value is None else tree.Compare(op, one, value)
    value = None if other is None else _constant(left, other.type)
    return None if value is None or other is None else tree.Compare(op, value, other)


def _among(node: pl.Expr, columns: Struct) -> tree.Expression | None:
    values, child = node.meta.pop()
    column = _column(child, columns)
    if column is None or not values.meta.is_literal() or not _is_in(node, child, values):
        return None
    series = pl.select(values).to_series()
    if isinstance(series.dtype, (pl.List, pl.Array)):
        series = series[0]
    found = [terms.constant(value, column.type) for value in series.to_arrow()]
    known = tuple(value for value in found if value is not None)
    return tree.In(column, known) if known and len(known) == len(found) else None


def _is_in(node: pl.Expr, child: pl.Expr, values: pl.Expr) -> bool:
    with warnings.catch_warnings():
        # SQL's lists are series still, of which Polars warns.
        warnings.simplefilter("ignore", DeprecationWarning)
        built = child.is_in(values)
    # Constants that are series are equal to nothing, not even to themselves.
    return bool(node.meta.eq(built) or node.meta.serialize() == built.meta.serialize())


def _starts_with(node: pl.Expr, columns: Struct) -> tree.Expression | None:
    prefix, child = node.meta.pop()
    column = _column(child, columns)
    if column is None or column.type != t.STRING or not node.meta.eq(child.str.starts_with(prefix)):
        return None
    text = _constant(prefix, column.type)
    return None if text is None else tree.StartsWith(column, str(text.value))


def _column(node: pl.Expr, columns: Struct) -> tree.Column | None:
    """A column, or a member of structs."""
    path = _path(node, columns)
    return None if path is None else terms.column(columns, path)


def _path(node: pl.Expr, columns: Struct) -> tuple[str, ...] | None:
    if node.meta.is_column():
        return (node.meta.output_name(),)
    below = node.meta.pop()
    above = _path(below[0], columns) if len(below) == 1 else None
    members: DataType = columns
    for name in above or ():
        found = terms.member(members, name)
        if found is None:
            return None
        members = found.type
    if above is None or not isinstance(members, Struct):
        return None
    names = [f.name for f in members.fields if node.meta.eq(below[0].struct.field(f.name))]
    return (*above, names[0]) if names else None


def _constant(node: pl.Expr, data_type: DataType) -> tree.Literal | None:
    if not node.meta.is_literal():
        return None
    series = pl.select(node).to_series()
    if len(series) != 1:
        return None
    value: pa.Scalar = series.to_arrow()[0]
    return terms.constant(value, data_type)
