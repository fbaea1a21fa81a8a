"""Walks through random expressions, beside plain recursion over the same as tuples."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace

import pytest

from alluvium.expr.tree import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StartsWith,
    Unknown,
    children,
    column_paths,
    conjunction,
    conjuncts,
    in_zone,
    is_understood,
    named_paths,
    names_only,
    naming,
    walk,
    with_children,
    within,
)
from alluvium.schema import types as t

ONE, TEXT = Literal(1, t.LONG), Literal("x", t.STRING)


def drawn(lot: random.Random, depth: int, unknown: bool = True) -> Expression:
    def inner() -> Expression:
        return drawn(lot, depth - 1, unknown)

    leaves: list[Callable[[], Expression]] = [
        lambda: Column(("t", lot.choice("abc")), t.LONG), lambda: Column(("t", "r", lot.choice("xy")), t.LONG),
        lambda: Literal(lot.randint(0, 3), t.LONG),
    ]  # fmt: skip
    if unknown:
        leaves += [
            lambda: Unknown("f(x)"),
            lambda: Unknown("g(a)", frozenset({("t", lot.choice("abz"))})),
        ]
    if depth <= 0:
        return lot.choice(leaves)()
    nodes: list[Callable[[], Expression]] = [
        lambda: Compare(lot.choice(["=", "<"]), inner(), inner()), lambda: And(inner(), inner()), lambda: Or(inner(), inner()),
        lambda: Not(inner()), lambda: IsNull(inner()), lambda: In(inner(), (ONE, TEXT)), lambda: StartsWith(inner(), "a"),
        lambda: Like(inner(), "a%"), lambda: Cast(inner(), t.STRING, lot.choice([None, "UTC"])),
        lambda: Call("f", tuple(inner() for _ in range(lot.randint(0, 3))), lot.choice([None, "UTC"])),
    ]  # fmt: skip
    return lot.choice([*nodes, *leaves])()


def is_expression(value: object) -> bool:
    return is_dataclass(value) and type(value).__module__ == "alluvium.expr.tree"


def members(node: Expression) -> list[Expression]:
    """By whatever attributes it has."""
    found: list[Expression] = []
    for f in fields(node):
        value = getattr(node, f.name)
        found += [one for one in (value if isinstance(value, tuple) else (value,)) if is_expression(one)]
    return found


def everything(node: Expression) -> list[Expression]:
    return [node, *(one for member in members(node) for one in everything(member))]


@pytest.mark.parametrize("seed", range(40))
def test_walks(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(20):
        node = drawn(lot, 4)
        every = everything(node)
        assert list(children(node)) == members(node) and list(walk(node)) == every
        columns = {one.path for one in every if isinstance(one, Column)}
        unknown = [one.columns for one in every if isinstance(one, Unknown)]
        named = columns.union(*(one for one in unknown if one is not None))
        assert (column_paths(node), named_paths(node)) == (columns, named)
        assert is_understood(node) == (not unknown)
        for allowed in (named, named | {("q",)}, named - {min(named, default=())}, {("t", "a")}):
            assert names_only(node, allowed) == (named <= allowed and None not in unknown)
        parts = conjuncts(node)
        assert not any(isinstance(part, And) for part in parts)
        assert conjuncts(conjunction(parts) or node) == parts
        assert conjunction((node,)) is node and conjunction(()) is None
        assert conjunction((node, ONE, TEXT)) == And(And(node, ONE), TEXT)


@pytest.mark.parametrize("seed", range(20))
def test_changes(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(20):
        node = drawn(lot, 4)
        assert with_children(node, lambda one: one) == node
        marked = with_children(node, lambda one: Not(one))
        # Constants of a list are no operands; all others are changed once.
        count = 1 if isinstance(node, In) else len(members(node))
        assert [isinstance(one, Not) for one in members(marked)[:count]] == [True] * count
        assert [one.child for one in members(marked)[:count]] == members(node)[:count]  # type: ignore[union-attr]
        assert [type(one) for one in everything(within(node, "t"))] == [type(one) for one in everything(node)]
        assert column_paths(within(node, "t")) == {path[1:] for path in column_paths(node)}
        zoned = everything(in_zone(node, "Asia/Tokyo"))
        for before, after in zip(everything(node), zoned, strict=True):
            if isinstance(before, (Cast, Call)):
                assert isinstance(after, (Cast, Call)) and after.zone == (before.zone or "Asia/Tokyo")
        known = frozenset({("t", "a"), ("t", "q")})
        told = everything(naming(node, known))
        for before, after in zip(everything(node), told, strict=True):
            if isinstance(before, Unknown):
                assert isinstance(after, Unknown)
                assert (after.sql, after.columns) == (before.sql, known if before.columns is None else before.columns)
        assert named_paths(naming(node, known)) >= named_paths(node)


def test_equality_is_that_of_the_parts() -> None:
    assert Compare("=", ONE, TEXT) == Compare("=", ONE, TEXT) != Compare("=", TEXT, ONE)
    assert Unknown("f") == Unknown("f", frozenset({("a",)})) != Unknown("g")
    cast = Cast(ONE, t.STRING)
    assert replace(cast, zone="UTC") != cast
