"""Random conditions over columns of any name, printed as Catalyst prints them, mean what they meant or are not understood.

`ALLUVIUM_PRINTED=20000` plays so many schemas (150 by default).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from filter_tables import MAPPED_ONLY, PLAIN, QUOTED, quoted

from alluvium.codecs.temporal_text import parse_zone
from alluvium.expr import tree
from alluvium.expr.bind import Binder
from alluvium.expr.literals import format_name, format_string
from alluvium.expr.sql.parse import parse_engine_filter
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Field, Struct

BINDER = Binder(parse_zone("UTC"), engine=True)
NAMES = [*PLAIN * 3, *QUOTED, *MAPPED_ONLY]
TEXTS = ["a", "", "or", "x' or 1", "\\", "NULL", "t.a = 5", ") OR (a"]
FEW = (tree.Literal(1, t.INTEGER), tree.Literal(2, t.INTEGER), tree.Literal(None, t.INTEGER))


class Printed(NamedTuple):
    """What Catalyst prints, and what it means."""

    text: str
    means: tree.Expression


def some_schema(r: random.Random) -> Struct:
    fields = []
    for name in {n.casefold(): n for n in r.choices(NAMES, k=r.randrange(4, 9))}.values():
        simple = [t.INTEGER, t.STRING, t.BOOLEAN]
        kind: DataType = r.choice([t.INTEGER, *simple])
        if r.random() < 0.3:
            inside = {n.casefold(): n for n in r.choices([*NAMES, name], k=3)}
            kind = Struct(tuple(Field(n, r.choice(simple)) for n in inside.values()))
            kind = t.Array(kind) if r.random() < 0.4 else kind
        fields.append(Field(name.upper() if r.random() < 0.1 else name, kind))
    return Struct(tuple(fields))


class Printer:
    """Draws conditions over a schema."""

    def __init__(self, r: random.Random, schema: Struct) -> None:
        self.r = r
        qualifier = r.choice([(), (), ("t",), ("spark_catalog", "default", "t"), (r.choice(NAMES),)])
        self.columns: list[Printed] = []
        #: Members of the elements of arrays, which print as members of structs do.
        self.others: list[str] = []
        for f in schema.fields:
            # An attribute has quotes where it needs them, and a member has them always.
            name = format_name((*qualifier, f.name))
            if isinstance(f.type, t.Array) and isinstance(f.type.element, Struct):
                self.others += [f"{name}.{quoted(m.name)}" for m in f.type.element.fields]
                continue
            self.columns.append(Printed(name, tree.Column((f.name,), f.type)))
            if isinstance(f.type, Struct):
                self.columns += [
                    Printed(f"{name}.{quoted(m.name)}", tree.Column((f.name, m.name), m.type)) for m in f.type.fields
                ]

    def value(self, kind: DataType, depth: int) -> Printed:
        r = self.r
        if depth > 0 and kind == t.INTEGER and r.random() < 0.4:
            return self._computed(depth - 1)
        found = [c for c in self.columns if isinstance(c.means, tree.Column) and c.means.type == kind]
        if found and r.random() < 0.8:
            return r.choice(found)
        if kind == t.INTEGER:
            number = r.randrange(-9, 9)
            return Printed(str(number), tree.Literal(number, kind))
        if kind == t.STRING:
            text = r.choice(TEXTS)
            return Printed(format_string(text), tree.Literal(text, kind))
        truth = r.random() < 0.5
        return Printed(str(truth).lower(), tree.Literal(truth, kind))

    def _computed(self, depth: int) -> Printed:
        one, other = self.value(t.INTEGER, depth), self.value(t.INTEGER, depth)
        form = self.r.randrange(6)
        if form == 0:
            op = self.r.choice("+-*%")
            return Printed(f"({one.text} {op} {other.text})", BINDER.call(op, (one.means, other.means)))
        if form == 1:
            return Printed(f"(- {one.text})", BINDER.call("negative", (one.means,)))
        if form == 2:
            wide = BINDER.cast(one.means, t.LONG)
            return Printed(f"CAST(CAST({one.text} AS BIGINT) AS INT)", BINDER.cast(wide, t.INTEGER))
        if form == 3:
            return Printed(f"coalesce({one.text}, {other.text})", BINDER.call("coalesce", (one.means, other.means)))
        when = self.condition(depth)
        means = BINDER.call("case", (when.means, one.means, other.means))
        if form == 4:
            return Printed(f"CASE WHEN {when.text} THEN {one.text} ELSE {other.text} END", means)
        return Printed(f"(IF({when.text}, {one.text}, {other.text}))", means)

    def condition(self, depth: int) -> Printed:
        r, form = self.r, self.r.random()
        if depth > 0 and form < 0.25:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            if form < 0.13:
                return Printed(f"({one.text} AND {other.text})", tree.And(one.means, other.means))
            return Printed(f"({one.text} OR {other.text})", tree.Or(one.means, other.means))
        if depth > 0 and form < 0.33:
            one = self.condition(depth - 1)
            return Printed(f"(NOT {one.text})", tree.Not(one.means))
        if form < 0.5 and self.columns:
            one = r.choice(self.columns)
            if form < 0.42:
                return Printed(f"({one.text} IS NOT NULL)", tree.Not(tree.IsNull(one.means)))
            return Printed(f"({one.text} IS NULL)", tree.IsNull(one.means))
        if form < 0.55 and self.others:
            return Printed(f"({r.choice(self.others)} IS NOT NULL)", tree.Unknown("another"))
        return self._leaf(depth)

    def _leaf(self, depth: int) -> Printed:
        form = self.r.randrange(6)
        if form == 0:
            one = self.value(t.STRING, 0)
            return Printed(f"{one.text} LIKE '%x_'", tree.Like(one.means, "%x_"))
        if form == 1:
            one = self.value(t.INTEGER, depth)
            return Printed(f"({one.text} IN (1, 2, CAST(NULL AS INT)))", BINDER.is_in(one.means, FEW))
        if form == 2:
            return self.value(t.BOOLEAN, 0)
        kind, op = self.r.choice([t.INTEGER, t.STRING, t.BOOLEAN]), self.r.choice(["=", "<", ">", "<=", ">=", "<=>"])
        one, other = self.value(kind, depth - 1), self.value(kind, depth - 1)
        return Printed(f"({one.text} {op} {other.text})", BINDER.compare(op, one.means, other.means))


def says_nothing(node: tree.Expression) -> bool:
    parts: Sequence[tree.Expression] = tree.children(node)
    is_joint = isinstance(node, (tree.And, tree.Or, tree.Not))
    return isinstance(node, tree.Unknown) or (is_joint and all(map(says_nothing, parts)))


def means(found: tree.Expression, wanted: tree.Expression) -> bool:
    """Whether what was read is what was meant, as far as it was understood."""
    if says_nothing(found):
        return True
    if type(found) is not type(wanted) or not isinstance(found, (tree.And, tree.Or, tree.Not)):
        return found == wanted
    return all(map(means, tree.children(found), tree.children(wanted)))


def test_no_name_makes_another_condition_of_one() -> None:
    r, counts = random.Random("printed"), Counter[str]()
    for _ in range(int(os.environ.get("ALLUVIUM_PRINTED", "150"))):
        schema = some_schema(r)
        printer = Printer(r, schema)
        for _ in range(6):
            printed = printer.condition(3)
            found = parse_engine_filter(printed.text, schema)
            assert means(found, printed.means), (schema.names, printed.text, found)
            counts["understood" if found == printed.means else "in part, or not"] += 1
    assert counts["understood"] > counts["in part, or not"]
