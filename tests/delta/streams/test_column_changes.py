"""Columns that are renamed, dropped, added, widened or otherwise changed at random, beside what was done to them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from delta_values import make_config
from mapped_table import features

from alluvium.delta.streams.column_changes import ColumnChanges, column_changes
from alluvium.delta.terms.config import TableConfig
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

BOTH = features("columnMapping", "typeWidening")
MAPPED = {"delta.columnMapping.mode": "name"}


@dataclass
class Column:
    """A column by its name in files, which stays."""

    physical: str
    name: str
    type: DataType = t.INTEGER
    nullable: bool = True
    members: list[Column] = field(default_factory=list)

    def as_field(self) -> Field:
        kind = Struct(tuple(m.as_field() for m in self.members)) if self.members else self.type
        number = int(self.physical[1:])
        says = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": self.physical}
        return Field(self.name, kind, self.nullable, says)


def config(columns: list[Column], widens: bool = True) -> TableConfig:
    protocol = BOTH if widens else features("columnMapping")
    return make_config(Struct(tuple(c.as_field() for c in columns)), (), MAPPED, protocol)


def copy(columns: list[Column]) -> list[Column]:
    return [replace(c, members=copy(c.members)) for c in columns]


@pytest.mark.parametrize("seed", range(30))
def test_what_was_done_is_found(seed: int) -> None:
    lot, numbers = random.Random(seed), iter(range(1, 100))

    def column(deep: bool = True) -> Column:
        n = next(numbers)
        made = Column(f"p{n}", f"c{n}", lot.choice([t.INTEGER, t.STRING, Array(t.SHORT), t.DATE]))
        if deep and lot.random() < 0.4:
            made.members = [column(False) for _ in range(lot.randint(1, 3))]
        return made

    old = [column() for _ in range(lot.randint(1, 5))]
    new = copy(old)
    renamed, dropped, widened, clashing = [], [], [], []

    def change(columns: list[Column], before: str, after: str) -> None:
        for c in list(columns):
            was, act = c.name, lot.choice(["stay", "stay", "rename", "drop", "widen", "clash", "tighten"])
            if act == "drop" and len(columns) > 1:
                columns.remove(c)
                dropped.extend([f"{before}{was}", *(f"{before}{was}.{m.name}" for m in c.members)])
                continue
            if act == "rename":
                c.name = f"{was}_new"
                renamed.append((f"{before}{was}", f"{after}{c.name}"))
            if act == "widen" and not c.members:
                wider = {t.INTEGER: t.LONG, Array(t.SHORT): Array(t.LONG), t.DATE: t.TIMESTAMP_NTZ}.get(c.type)
                if wider is not None:
                    widened.append((f"{before}{was}", c.type, wider))
                    c.type = wider
            if act == "clash" and not c.members:
                c.type = t.BOOLEAN
                clashing.append(f"{before}{was}")
            if act == "tighten":
                c.nullable = False
                clashing.append(f"{before}{was}")
            if c.members:
                change(c.members, f"{before}{was}.", f"{after}{c.name}.")
        if lot.random() < 0.4:
            columns.insert(lot.randint(0, len(columns)), column(False))

    change(new, "", "")
    found = column_changes(config(old), config(new))
    assert sorted(found.renamed) == sorted(renamed) and sorted(found.dropped) == sorted(dropped)
    assert sorted(found.widened, key=str) == sorted(widened, key=str) and sorted(found.clashing) == sorted(clashing)
    assert found.is_additive == (not (renamed or dropped or widened or clashing))
    # Without the feature no type is wider, only another.
    without = column_changes(config(old, False), config(new, False))
    assert without.widened == () and sorted(without.clashing) == sorted([*clashing, *(name for name, _, _ in widened)])


INT, LONG, TEXT, FLAG = t.INTEGER, t.LONG, t.STRING, t.BOOLEAN


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (INT, INT, "same"), (INT, LONG, "wider"), (LONG, INT, "other"), (Array(INT), Array(INT), "same"), (Array(INT), Array(LONG), "wider"),
        (Array(INT), INT, "other"), (Map(INT, TEXT), Map(INT, TEXT), "same"), (Map(INT, TEXT), Map(LONG, TEXT), "wider"),
        (Map(TEXT, INT), Map(TEXT, LONG), "wider"), (Map(INT, INT), Map(LONG, FLAG), "other"), (Map(FLAG, INT), Map(INT, LONG), "other"),
        (Map(INT, INT), Map(LONG, LONG), "wider"), (Map(TEXT, TEXT), Array(TEXT), "other"), (Decimal(5, 2), Decimal(6, 3), "wider"),
        (Decimal(5, 2), Decimal(5, 3), "other"), (Array(Array(INT)), Array(Array(LONG)), "wider"),
    ],
    ids=str,
)  # fmt: skip
def test_types(old: DataType, new: DataType, kind: str) -> None:
    found = column_changes(config([Column("p1", "c", old)]), config([Column("p1", "c", new)]))
    assert found.widened == ((("c", old, new),) if kind == "wider" else ())
    assert found.clashing == (("c",) if kind == "other" else ())


def test_a_column_that_may_be_null_now_clashes_with_nothing() -> None:
    old, new = config([Column("p1", "c", nullable=False)]), config([Column("p1", "c")])
    assert column_changes(old, new).is_additive


def test_changes_in_words() -> None:
    found = ColumnChanges((("a", "b"),), ("c.d",), (("e", t.INTEGER, t.LONG),), ("f",))
    assert (
        str(found) == "'a' was renamed to 'b', 'c.d' was dropped, 'e' was int, is bigint, the type of 'f' was changed"
    )
    for place in range(4):
        one = [(), (), (), ()]
        one[place] = (found.renamed, found.dropped, found.widened, found.clashing)[place]  # type: ignore[call-overload]
        assert not ColumnChanges(*one).is_additive  # type: ignore[arg-type]
