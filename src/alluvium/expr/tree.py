"""The expression tree: what predicates are once parsed. Immutable, with structural equality.

Meaning is Spark's: three-valued logic, NaN equal to itself and greater than any other number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
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
    """An explicit or implied cast; `zone` as of `Call`."""

    child: Expression
    type: DataType
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator that is known by name (`+`, `%`, `year`, `isnan`, ...).

    With a `zone` its local times are of that time zone, whatever zone it is evaluated in (`in_zone`).
    """

    name: str
    args: tuple[Expression, ...]
    zone: str | None = None
    #: What `type_of` has found: in a long expression each part would be asked for by all around it.
    known_type: DataType | None = field(default=None, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Text that an engine understands and we do not: it may be true for any row.

    Attributes:
        sql: The text.
        columns: Paths of the columns that it names; None: any may be among them.
    """

    sql: str
    columns: frozenset[tuple[str, ...]] | None = field(default=None, compare=False)


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


def is_understood(node: Expression) -> bool:
    """Whether no part of the expression is left to an engine (`Unknown`)."""
    return not any(isinstance(n, Unknown) for n in walk(node))


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
    """Paths of all columns whose values the expression is understood to use; see `named_paths`."""
    return frozenset(n.path for n in walk(node) if isinstance(n, Column))


def named_paths(node: Expression) -> frozenset[tuple[str, ...]]:
    """Paths of all columns that it is known to name, also in text that is not understood."""
    unknown = (n.columns for n in walk(node) if isinstance(n, Unknown) and n.columns is not None)
    return column_paths(node).union(*unknown)


def names_only(node: Expression, paths: Set[tuple[str, ...]]) -> bool:
    """Whether the expression surely names no columns but these: text that is not understood may name any."""
    return named_paths(node) <= paths and not any(isinstance(n, Unknown) and n.columns is None for n in walk(node))


def with_children(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with each of its operands changed; the constants of an IN list stay as they are."""
    if isinstance(node, (Compare, And, Or)):
        return replace(node, left=change(node.left), right=change(node.right))
    if isinstance(node, (Not, IsNull, StartsWith, Like, Cast, In)):
        return replace(node, child=change(node.child))
    return replace(node, args=tuple(map(change, node.args))) if isinstance(node, Call) else node


def within(node: Expression, name: str) -> Expression:
    """The expression over the members of a column, for rows that have nothing but these; others it must not name."""
    if isinstance(node, Column):
        assert node.path[0] == name, "the expression is one over the column's members"
        return replace(node, path=node.path[1:])
    return with_children(node, lambda child: within(child, name))


def in_zone(node: Expression, zone: str) -> Expression:
    """The expression, its local times being those of a zone from now on, in whatever zone it is evaluated.

    A predicate means what it meant where it was written: a table may be read under one setting, and asked under
    another.
    """
    found = with_children(node, lambda child: in_zone(child, zone))
    return replace(found, zone=zone) if isinstance(found, (Cast, Call)) and found.zone is None else found


def naming(node: Expression, columns: frozenset[tuple[str, ...]]) -> Expression:
    """The expression, of which it is known that it names no columns but these, wherever it is not understood."""
    if isinstance(node, Unknown):
        return replace(node, columns=columns) if node.columns is None else node
    return with_children(node, lambda child: naming(child, columns))
