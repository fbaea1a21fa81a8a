"""Conditions of other engines as ours, as far as they mean the same.

Whoever is asked for rows by a condition must give all that it is true for, and the engine looks at them once more. So a
part is taken over where its meaning is the same to the last null (`exact` in the translators), the operands of AND one
by one, and whatever is not known here is left out: it then costs reading, never a row.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from alluvium.expr import tree
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import char_lengths
from alluvium.schema.types import DataType, Decimal, Field, Struct

#: Types whose order and equality are the same here and in other engines, but for NaN.
_ORDERED = frozenset(
    {t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DATE, t.TIMESTAMP}
    | {t.TIMESTAMP_NTZ}
)
#: Conditions that are deeper are read whole, as every step of a translation is one of Python's.
MAX_DEPTH = 100

_Node = TypeVar("_Node")


def column(columns: Struct, path: Sequence[str]) -> tree.Column | None:
    """A column by its path; None where there is none, or its values are compared in other ways by others."""
    members: DataType = columns
    for name in path:
        found = member(members, name)
        # Texts of char(n) are padded on the way.
        if found is None or (members is columns and char_lengths(found)):
            return None
        members = found.type
    return tree.Column(tuple(path), members) if is_ordered(members) else None


def member(data_type: DataType, name: str) -> Field | None:
    """A column, or a member of a struct, by just this name."""
    return next((f for f in data_type.fields if f.name == name), None) if isinstance(data_type, Struct) else None


def is_ordered(data_type: DataType) -> bool:
    return data_type in _ORDERED or isinstance(data_type, Decimal)


def constant(value: pa.Scalar, data_type: DataType) -> tree.Literal | None:
    """A constant of just this type; None of another type, for null and for NaN."""
    wanted = to_arrow(data_type)
    try:
        if isinstance(data_type, Decimal) and pa.types.is_decimal(value.type):
            value = value.cast(wanted)  # or it raises: digits are not cut
        found = value.as_py()
        if isinstance(found, dt.datetime) and found.tzinfo is not None:
            found = found.astimezone(dt.timezone.utc)
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # years that Python has no name for, digits that the column has no place for
    if found is None or (isinstance(found, float) and math.isnan(found)) or not _is_same(value.type, wanted):
        return None
    return tree.Literal(found, data_type)


def _is_same(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        # Instants are the same in whatever zone they are shown.
        return given.unit == wanted.unit and (given.tz is None) == (wanted.tz is None)
    if pa.types.is_large_string(given) or pa.types.is_string_view(given):
        given = pa.string()
    if pa.types.is_large_binary(given) or pa.types.is_binary_view(given):
        given = pa.binary()
    return bool(given == wanted)


def implied(
    node: _Node,
    exact: Callable[[_Node], tree.Expression | None],
    operands: Callable[[_Node], tuple[str, _Node, _Node] | None],
) -> tree.Expression | None:
    """What is true for every row that a condition is true for; None: nothing is known.

    Args:
        node: The condition.
        exact: Our expression of the same meaning, if there is one.
        operands: `"and"` or `"or"` with both operands, if it is one of these.
    """
    same = exact(node)
    pair = operands(node) if same is None else None
    if pair is None:
        return same
    which, left, right = pair
    one, other = implied(left, exact, operands), implied(right, exact, operands)
    if which == "or":
        return None if one is None or other is None else tree.Or(one, other)
    return tree.conjunction(tuple(part for part in (one, other) if part is not None))
