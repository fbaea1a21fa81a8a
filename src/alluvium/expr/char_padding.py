"""Comparisons of char(n) columns, as Spark makes them: the shorter side is padded with blanks.

Measured with Spark 4.2 (its rule `ApplyCharTypePadding`): `=`, `<=>`, `<`, `<=`, `>`, `>=` and IN pad where a column at
the top level meets a constant, or another such column. `between`, `nullif`, fields of structs, an IN list with a null
or with anything but constants compare the text as it is read, blanks and all.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from alluvium.expr import tree
from alluvium.expr.literals import NotUnderstood
from alluvium.schema import types as t


def padded_sides(
    left: tree.Expression, right: tree.Expression, rows: Set[str] = frozenset()
) -> tuple[tree.Expression, tree.Expression]:
    """Both sides of a comparison, the shorter one padded where a column is char(n).

    Args:
        left: One.
        right: The other.
        rows: Columns that stand for rows: their members are columns at the top level.

    Raises:
        NotUnderstood: A constant that is still to be computed.
    """
    one, other = _char_length(left, rows), _char_length(right, rows)
    if one is not None and other is not None:
        return _longer(left, other), _longer(right, one)
    if one is not None:
        return _beside(left, one, right)
    if other is not None:
        right, left = _beside(right, other, left)
    return left, right


def padded_in(
    child: tree.Expression, values: Sequence[tree.Expression], rows: Set[str] = frozenset()
) -> tuple[tree.Expression, Sequence[tree.Expression]]:
    """A value and what it may be, padded where it is a column of char(n).

    Raises:
        NotUnderstood: As of `padded_sides`.
    """
    length = _char_length(child, rows)
    texts = [v.value for v in values if isinstance(v, tree.Literal) and isinstance(v.value, str)]
    if length is not None and len(texts) == len(values):
        longest = max(length, *map(len, texts))
        return _longer(child, longest), [tree.Literal(text.ljust(longest), t.STRING) for text in texts]
    if length is not None and all(_char_length(v, rows) is not None for v in values):
        return child, values
    if length is not None and any(_is_uncomputed(v) for v in values):
        raise NotUnderstood("a constant that is compared with char(n)")
    return as_text(child), [as_text(v) for v in values]


def as_text(node: tree.Expression) -> tree.Expression:
    """The same value, for comparisons that pad nothing."""
    return tree.Cast(node, t.STRING) if isinstance(node, tree.Column) and node.char_length is not None else node


def _char_length(node: tree.Expression, rows: Set[str]) -> int | None:
    is_top = isinstance(node, tree.Column) and len(node.path) == (2 if node.path[0] in rows else 1)
    return node.char_length if isinstance(node, tree.Column) and is_top else None


def _longer(node: tree.Expression, length: int) -> tree.Expression:
    assert isinstance(node, tree.Column)
    return replace(node, char_length=max(length, node.char_length or 0))


def _beside(column: tree.Expression, length: int, other: tree.Expression) -> tuple[tree.Expression, tree.Expression]:
    if isinstance(other, tree.Literal) and isinstance(other.value, str):
        return _longer(column, len(other.value)), tree.Literal(other.value.ljust(length), t.STRING)
    if _is_uncomputed(other):
        raise NotUnderstood("a constant that is compared with char(n)")
    return column, other


def _is_uncomputed(node: tree.Expression) -> bool:
    """A constant that Spark would compute before it pads."""
    return not isinstance(node, tree.Literal) and not any(isinstance(n, tree.Column) for n in tree.walk(node))
