"""The expression tree: what predicates are once parsed. Immutable, with structural equality.

Meaning is Spark's: three-valued logic, NaN equal to itself and greater than any other number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from alluvium.schema.types import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its path through structs, in the spelling of the schema.

    With a `char_length` its values are the texts that are there, padded with blanks to so many characters.
    """

    path: tuple[str, ...]
    type: DataType
    char_length: int | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: None, bool, int, float, Decimal, str, bytes, date, or datetime.

    A `timestamp` literal is an aware datetime in UTC, a `timestamp_ntz` one is naive.
    """

    value: object
    type: DataType


@dataclass(frozen=True, slots=True)
class Compare:
    """`op` is one of `=  !=  <  <=  >  >=  <=>`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Or:
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not:
    child: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    child: Expression


@dataclass(frozen=True, slots=True)
class In:
    child: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class StartsWith:
    child: Expression
    prefix: str


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE with the escape character `\\`."""

    child: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Cast:
    child: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator that is known by name (`+`, `%`, `year`, `isnan`, ...)."""

    name: str
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Text that an engine understands and we do not: it may be true for any row."""

    sql: str


Expression: TypeAlias = (
    "Column | Literal | Compare | And | Or | Not | IsNull | In | StartsWith | Like | Cast | Call | Unknown"
)


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct operands of a node."""
    if isinstance(node, (Compare, And, Or)):
        return (node.left, node.right)
    if isinstance(node, (Not, IsNull, StartsWith, Like, Cast)):
        return (node.child,)
    if isinstance(node, In):
        return (node.child, *node.values)
    return node.args if isinstance(node, Call) else ()


def walk(node: Expression) -> Iterator[Expression]:
    """The node and all below it, depth first."""
    yield node
    for child in children(node):
        yield from walk(child)


def conjuncts(node: Expression) -> tuple[Expression, ...]:
    """The operands of the outermost chain of ANDs."""
    if isinstance(node, And):
        return (*conjuncts(node.left), *conjuncts(node.right))
    return (node,)


def conjunction(nodes: tuple[Expression, ...]) -> Expression | None:
    """The nodes joined by AND; None where there are none."""
    result: Expression | None = None
    for node in nodes:
        result = node if result is None else And(result, node)
    return result


def column_paths(node: Expression) -> frozenset[tuple[str, ...]]:
    """Paths of all columns that the expression names."""
    return frozenset(n.path for n in walk(node) if isinstance(n, Column))
