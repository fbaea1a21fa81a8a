"""Random changes of columns beside a plain list of them: names, places, numbers, and what was said of each."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.paimon.schema.changes import SetOption

NAMES = "abcdefgh"


@dataclass(frozen=True)
class Column:
    name: str
    number: int
    kind: str = "INT"
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


class Plain:
    """The same changes to a list; a code where there is no such change."""

    def __init__(self, columns: list[Column], highest: int) -> None:
        self.columns, self.highest = columns, highest

    def place(self, name: str) -> int:
        return next((n for n, c in enumerate(self.columns) if c.name == name), -1)

    def add(self, name: str, comment: str | None, where: dict[str, Any]) -> str | None:
        self.highest += 1
        made = Column(name, self.highest, comment=comment)
        if self.place(name) >= 0:
            return "column-exists"
        if where.get("first"):
            at = 0
        elif reference := where.get("after") or where.get("before"):
            at = self.place(reference)
            if at < 0:
                return "column-missing"
            at += "after" in where
        else:
            at = len(self.columns)
        self.columns.insert(at, made)
        return None

    def drop(self, name: str) -> str | None:
        if self.place(name) < 0:
            return "column-missing"
        if len(self.columns) == 1:
            return "drop-all-columns"
        del self.columns[self.place(name)]
        return None

    def rename(self, name: str, other: str) -> str | None:
        if self.place(name) < 0:
            return "column-missing"
        if self.place(other) >= 0:
            return "column-exists"
        return self.change(name, name=other)

    def change(self, column: str, **values: Any) -> str | None:
        if self.place(column) < 0:
            return "column-missing"
        at = self.place(column)
        self.columns[at] = replace(self.columns[at], **values)
        return None

    def move(self, name: str, where: dict[str, Any]) -> str | None:
        if self.place(name) < 0:
            return "column-missing"
        reference = where.get("after") or where.get("before")
        if reference is not None and self.place(reference) < 0:
            return "column-missing"
        end = 0 if where.get("first") else len(self.columns) - 1
        if reference == name or (reference is None and self.place(name) == end):
            return "move-onto-itself"
        moved = self.columns.pop(self.place(name))
        at = (
            (self.place(reference) + ("after" in where))
            if reference
            else (0 if where.get("first") else len(self.columns))
        )
        self.columns.insert(at, moved)
        return None


def anywhere(lot: random.Random) -> dict[str, Any]:
    kind = lot.choice(["first", "last", "after", "before"])
    return {kind: lot.choice(NAMES) if kind in ("after", "before") else True}


def step(lot: random.Random, plain: Plain) -> tuple[SchemaChange, str | None]:
    name, other, where = lot.choice(NAMES), lot.choice(NAMES), anywhere(lot)
    kind = lot.choice(["add", "add at", "drop", "rename", "comment", "default", "type", "null", "move", "move"])
    if kind.startswith("add"):
        where, comment = where if kind == "add at" else {}, lot.choice([None, "said"])
        return SchemaChange.add_column(name, "INT", comment, **where), plain.add(name, comment, where)
    if kind == "drop":
        return SchemaChange.drop_column(name), plain.drop(name)
    if kind == "rename":
        return SchemaChange.rename_column(name, other), plain.rename(name, other)
    if kind == "comment":
        return SchemaChange.update_column_comment(name, "new"), plain.change(name, comment="new")
    if kind == "default":
        text = lot.choice([None, "5"])
        return SchemaChange.update_column_default(name, text), plain.change(name, default=text)
    if kind == "type":
        change = SchemaChange.update_column_type(name, "BIGINT NOT NULL", keep_nullability=True)
        return change, plain.change(name, kind="BIGINT")
    if kind == "null":
        nullable = lot.choice([True, False])
        return SchemaChange.update_column_nullability(name, nullable), plain.change(name, nullable=nullable)
    return SchemaChange.update_column_position(name, **where), plain.move(name, where)


def shown(schema: TableSchema) -> list[tuple[Any, ...]]:
    return [(f.name, f.id, str(f.type), f.description, f.default) for f in schema.fields]


@pytest.mark.parametrize("seed", range(10))
def test_columns_beside_a_list(seed: int) -> None:
    lot = random.Random(seed)
    fields = number_fields(DataField(0, name, parse_type("INT")) for name in NAMES[: lot.randint(1, 4)])
    # Where there are no nulls a column may become NOT NULL.
    schema = TableSchema.create(fields, options={"alter-column-null-to-not-null.disabled": "false"})
    plain = Plain([Column(f.name, f.id) for f in schema.fields], schema.highest_field_id)
    for _ in range(60):
        before = Plain([*plain.columns], plain.highest)
        change, code = step(lot, plain)
        # As JSON it says the same.
        assert SchemaChange.parse(change.as_dict()) == change
        if code is not None:
            with pytest.raises(InvalidRequest) as caught:
                schema.apply([change])
            assert caught.value.code == code, change
            plain = before
            continue
        changed = schema.apply([change])
        assert (changed.id, changed.highest_field_id) == (schema.id + 1, plain.highest)
        schema = changed
        assert shown(schema) == [
            (c.name, c.number, f"{c.kind}{'' if c.nullable else ' NOT NULL'}", c.comment, c.default)
            for c in plain.columns
        ]
        assert TableSchema.parse(schema.format()) == schema


def test_several_changes_at_once_are_one_version() -> None:
    """In their order, all or none."""
    schema = TableSchema.create(number_fields(DataField(0, name, parse_type("INT")) for name in "ab"))
    changes = [SchemaChange.rename_column("a", "c"), SchemaChange.add_column("a", "INT"), SetOption("x", "1")]
    changed = schema.apply(changes)
    assert (changed.id, [(f.name, f.id) for f in changed.fields]) == (1, [("c", 0), ("b", 1), ("a", 2)])
    with pytest.raises(InvalidRequest) as caught:
        schema.apply([*changes, SchemaChange.drop_column("zz")])
    assert caught.value.code == "column-missing" and schema.names == ("a", "b")
    # The nearest name is told.
    with pytest.raises(InvalidRequest) as caught:
        changed.apply([SchemaChange.drop_column("C")])
    assert "c" in (caught.value.hint or "")


def test_fields_within_move_and_go_like_columns() -> None:
    inner = {"type": "ROW", "fields": [{"id": 0, "name": n, "type": "INT"} for n in "xyz"]}
    nested = {"type": "ARRAY", "element": {"type": "MAP", "key": "INT", "value": inner}}
    schema = TableSchema.create(
        number_fields([DataField(0, "a", parse_type(nested)), DataField(0, "b", parse_type("INT"))])
    )
    front = ["a", "element", "value"]

    def names(changed: TableSchema) -> list[tuple[str, int]]:
        element = changed.fields[0].type.element
        assert element is not None and element.value is not None
        return [(f.name, f.id) for f in element.value.fields]

    assert names(schema) == [("x", 1), ("y", 2), ("z", 3)]
    for change, wanted in (
        (SchemaChange.add_column([*front, "w"], "INT", before="y"), [("x", 1), ("w", 5), ("y", 2), ("z", 3)]),
        (SchemaChange.add_column([*front, "w"], "INT", first=True), [("w", 5), ("x", 1), ("y", 2), ("z", 3)]),
        (SchemaChange.add_column([*front, "w"], "INT", after="z"), [("x", 1), ("y", 2), ("z", 3), ("w", 5)]),
        (SchemaChange.drop_column([*front, "y"]), [("x", 1), ("z", 3)]),
        (SchemaChange.rename_column([*front, "y"], "b"), [("x", 1), ("b", 2), ("z", 3)]),
    ):
        assert names(schema.apply([change])) == wanted
    for path, code in (([*front, "q"], "column-missing"), (["a", "value", "x"], "column-missing"), (["b", "x"], "column-missing"),
                       (["a", "element"], "column-missing")):  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            schema.apply([SchemaChange.drop_column(path)])
        assert caught.value.code == code, path
    wider = schema.apply([SchemaChange.update_column_type([*front, "x"], "BIGINT")])
    element = wider.fields[0].type.element
    assert element is not None and element.value is not None and str(element.value.fields[0].type) == "BIGINT"
    deep = {"type": "ROW", "fields": [{"id": 0, "name": "m", "type": inner}]}
    added = schema.apply([SchemaChange.add_column("n", deep)])
    assert added.highest_field_id == 9 and added.fields[-1].id == 5
    # As Java's builder: what is within a field is numbered before it.
    (member,) = added.fields[-1].type.fields
    assert (member.id, [f.id for f in member.type.fields]) == (9, [6, 7, 8])
