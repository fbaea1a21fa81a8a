"""Conditions of Arrow as ours: DuckDB hands them over in this form.

Arrow shows no operands of an expression, but it can be told apart where it is pickled: a record batch of its constants,
whose schema's metadata lists calls, columns and constants in order. That form is Arrow's own business, so what is read
of it is built again and compared with what was given: another form is not understood, never misunderstood.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.api.lazy import terms
from alluvium.expr import tree
from alluvium.schema import types as t
from alluvium.schema.types import Struct

_LINE = re.compile(r"(call|end|field_ref|nested_field_ref|literal|options): '(.*)'")
_COMPARISONS = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_LOGIC = {"and_kleene": "and", "or_kleene": "or"}


@dataclass(frozen=True, slots=True)
class Ref:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: tuple[Node, ...]
    options: pa.Scalar | None


Node: TypeAlias = "Ref | Call | pa.Scalar"


def pushed(node: Node, columns: Struct) -> tree.Expression | None:
    """What is true for every row that a condition is true for; None: nothing is known."""
    return terms.implied(node, partial(_exact, columns=columns), _logic)


def read(predicate: pc.Expression) -> Node | None:
    """An expression as a tree; None where it is not understood."""
    try:
        [buffer] = predicate.__reduce__()[1]
        with pa.ipc.open_file(buffer) as file:
            constants = [column[0] for column in file.get_batch(0).columns] if file.num_record_batches else []
            text = file.schema.to_string(show_field_metadata=False, show_schema_metadata=True, truncate_metadata=False)
        words = iter(_words(text))
        node = _node(*next(words), words, constants, 0)
        return node if not any(True for _ in words) and _build(node).equals(predicate) else None
    except (pa.ArrowException, LookupError, TypeError, ValueError, StopIteration):
        return None


def _words(text: str) -> list[tuple[str, str]]:
    listed = text.partition("-- schema metadata --\n")[2].splitlines()
    found = [_LINE.fullmatch(line) for line in listed]
    if not all(found):
        raise ValueError("another form")
    return [(match[1], match[2]) for match in found if match is not None]


def _node(key: str, value: str, words: Iterator[tuple[str, str]], constants: list[pa.Scalar], depth: int) -> Node:
    if depth > terms.MAX_DEPTH:
        raise ValueError("too deep")
    if key == "literal":
        return constants[int(value)]
    if key == "field_ref":
        return Ref((value,))
    if key == "nested_field_ref":
        return Ref(tuple(next(words)[1] for _ in range(int(value))))
    if key != "call":
        raise ValueError("another form")
    args: list[Node] = []
    options = None
    for below, name in words:
        if below == "end":
            return Call(value, tuple(args), options)
        if below == "options":
            options = constants[int(name)]
        else:
            args.append(_node(below, name, words, constants, depth + 1))
    raise ValueError("without an end")


#: How the calls that are understood are written in Python.
_BUILT: dict[str, Callable[..., pc.Expression]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "and_kleene": operator.and_,
    "or_kleene": operator.or_,
    "invert": operator.invert,
    "is_valid": pc.Expression.is_valid,
    "is_null": pc.Expression.is_null,
    "is_nan": pc.Expression.is_nan,
    "if_else": pc.if_else,
}


def _build(node: Node) -> pc.Expression:
    """The expression that a tree says, with the options that calls usually have."""
    if isinstance(node, Ref):
        return pc.field(*node.path)
    if not isinstance(node, Call):
        return pc.scalar(node)
    args = [_build(arg) for arg in node.args]
    return args[0].isin(_values(node)) if node.name == "is_in" else _BUILT[node.name](*args)


def _values(node: Call) -> pa.Array:
    if node.options is None:
        raise ValueError("no options")
    return node.options["value_set"].values


def named(node: Node) -> frozenset[str]:
    """The columns that a condition names."""
    if isinstance(node, Ref):
        return frozenset(node.path[:1])
    return frozenset().union(*map(named, node.args)) if isinstance(node, Call) else frozenset()


def _logic(node: Node) -> tuple[str, Node, Node] | None:
    if isinstance(node, Call) and node.name in _LOGIC and len(node.args) == 2:
        return _LOGIC[node.name], node.args[0], node.args[1]
    return None


def _exact(node: Node, columns: Struct) -> tree.Expression | None:
    if isinstance(node, Ref):
        found = terms.column(columns, node.path)
        return found if found is not None and found.type == t.BOOLEAN else None
    if not isinstance(node, Call):
        return None
    if pair := _logic(node):
        left, right = _exact(pair[1], columns), _exact(pair[2], columns)
        if left is None or right is None:
            return None
        return tree.And(left, right) if pair[0] == "and" else tree.Or(left, right)
    if node.name in _COMPARISONS:
        return _compare(_COMPARISONS[node.name], node.args[0], node.args[1], columns)
    if node.name == "if_else":
        return _among_known(node, columns)
    return _of_one(node, columns)


def _of_one(node: Call, columns: Struct) -> tree.Expression | None:
    if node.name == "invert":
        found = _exact(node.args[0], columns)
        return None if found is None else tree.Not(found)
    column = terms.column(columns, node.args[0].path) if isinstance(node.args[0], Ref) else None
    if column is None:
        return None
    if node.name == "is_null":
        return tree.IsNull(column)
    if node.name == "is_valid":
        return tree.Not(tree.IsNull(column))
    if node.name == "is_nan" and column.type in t.FLOATING:
        return tree.Compare("=", column, tree.Literal(float("nan"), column.type))
    return _among(node, column) if node.name == "is_in" else None


def _compare(op: str, left: Node, right: Node, columns: Struct) -> tree.Expression | None:
    """A comparison with a constant. To Arrow NaN is neither greater nor less than anything."""
    if isinstance(left, Ref) and isinstance(right, pa.Scalar):
        column = terms.column(columns, left.path)
        value = None if column is None else terms.constant(right, column.type)
        if column is None or value is None:
            return None
        same = tree.Compare(op, column, value)
        if column.type in t.FLOATING and op in (">", ">="):
            return tree.And(same, tree.Compare("!=", column, tree.Literal(float("nan"), column.type)))
        return same
    return None


def _among(node: Call, column: tree.Column) -> tree.Expression | None:
    """`x IN (...)` that is never null: to Arrow null is a value that is listed, or not."""
    values = _values(node)
    if column.type in t.FLOATING:
        return None  # equal by their bits, that is
    known = [terms.constant(value, column.type) for value in values if value.is_valid]
    if not known or None in known:
        return None
    listed = tree.In(column, tuple(value for value in known if value is not None))
    if values.null_count:
        return tree.Or(tree.IsNull(column), listed)
    return tree.And(tree.Not(tree.IsNull(column)), listed)


def _among_known(node: Call, columns: Struct) -> tree.Expression | None:
    """`x IN (...)` that is null where x is: how DuckDB writes it."""
    test, among, otherwise = node.args
    if not isinstance(test, Call) or not isinstance(among, Call) or not isinstance(otherwise, pa.Scalar):
        return None
    if (test.name, among.name) != ("is_valid", "is_in") or test.args != among.args or otherwise.is_valid:
        return None
    found = _of_one(among, columns)
    return found.right if isinstance(found, tree.And) else None
