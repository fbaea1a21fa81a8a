"""Changes of columns that are refused: what is said of them, and that their neighbours are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from delta_values import make_config
from mapped_table import features
from mapped_table import mapped as with_ids

from alluvium.delta.description.change_columns import ColumnChange, alter_column, alter_columns, longer_text
from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.evolve_columns import NewColumn, add_columns, columns_there, drop_columns, rename_column
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema.edit import Path, Position
from alluvium.schema.types import INTEGER, LONG, STRING, Array, DataType, Field, Map, Struct

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
MAPPED = {"delta.columnMapping.mode": "name"}
INNER = Struct((with_ids("X", INTEGER, "p6", 6), with_ids("y", INTEGER, "p7", 7)))
ONLY = Struct((with_ids("z", INTEGER, "p8", 8),))
SCHEMA = Struct(
    (
        with_ids("a", INTEGER, "p1", 1), with_ids("B", STRING, "p2", 2), with_ids("s", INNER, "p3", 3),
        with_ids("l", Array(ONLY), "p4", 4), with_ids("m", Map(STRING, INTEGER), "p5", 5),
    )
)  # fmt: skip
PLAIN = new_config(
    Struct((Field("a", INTEGER), Field("B", STRING), Field("s", Struct((Field("X", INTEGER),))))), [], {}
)


def mapped(partition_by: tuple[str, ...] = (), **properties: str) -> TableConfig:
    told = {f"delta.{name.replace('__', '.')}": text for name, text in properties.items()}
    return make_config(SCHEMA, partition_by, {**MAPPED, **told}, features("columnMapping"))


def said(change: Callable[[], Change]) -> tuple[str, str | None, str]:
    """Code, column, and all words of the refusal."""
    with pytest.raises(InvalidRequest) as caught:
        change()
    error = caught.value
    return error.code, error.column, f"{error.message} {error.hint}"


def new(path: str, data_type: DataType = INTEGER, position: Position | None = None, **more: Any) -> NewColumn:
    parts = tuple(path.split("."))
    return NewColumn(parts, Field(parts[-1], data_type, **more), position)


STRICT = Struct((Field("n", INTEGER, False),))


@pytest.mark.parametrize(
    ("columns", "code", "column", "words"),
    [
        ([new("c"), new("s.q"), new("S.Q")], "duplicate-column", "S.Q", "'S.Q' is added twice"),
        ([new("b")], "column-exists", "b", "there is a column 'b' already"),
        ([new("s.x")], "column-exists", "x", "there is a column 'x' already"),
        ([new("c", position=Position("bb"))], "unknown-column", "bb", "did you mean 'B'?"),
        ([new("s.c", position=Position("a"))], "unknown-column", "a", "the new 'c' to stand behind"),
        ([new("s.c", nullable=False)], "not-null-column", "s.c", "cannot be NOT NULL: s.c"),
        ([new("c", Array(STRICT))], "not-null-column", "c", "cannot be NOT NULL: c"),
        ([new("c", Map(STRING, Struct((Field("d", STRICT),))))], "not-null-column", "c", ""),
    ],
)
def test_columns_that_are_not_added(columns: list[NewColumn], code: str, column: str, words: str) -> None:
    found = said(lambda: add_columns(PLAIN, columns))
    assert found[:2] == (code, column) and words in found[2]


def test_columns_of_the_same_name_in_other_structs_are_others() -> None:
    change = add_columns(
        PLAIN, [new("X"), new("s.a"), new("s.c", position=Position("x")), new("c", position=Position("b"))]
    )
    assert change.config.schema.names == ("a", "B", "c", "s", "X")
    inner = change.config.schema.fields[3].type
    assert isinstance(inner, Struct) and inner.names == ("X", "c", "a")
    assert change.operation.parameters.keys() == {"columns"} and not change.reads


@pytest.mark.parametrize(
    ("config", "path", "name", "code", "column", "words"),
    [
        (PLAIN, ("S", "x"), "q", "no-column-mapping", "s.X", "renaming a column needs column mapping"),
        (mapped(), ("l", "element"), "q", "unknown-column", "l.element", "has no name to change"),
        (mapped(), ("m", "key"), "q", "unknown-column", "m.key", "has no name to change"),
        (mapped(), ("s", "x"), "Y", "column-exists", "Y", "there is a column 'Y' already"),
        (mapped(), ("A",), "b", "column-exists", "b", ""),
        (mapped(constraints__c="S.x > 1"), ("s",), "q", "column-in-use", "s", "the constraint 'c'"),
        (mapped(constraints__c="S.x > 1"), ("s", "X"), "q", "column-in-use", "s.X", ""),
    ],
)
def test_columns_that_are_not_renamed(
    config: TableConfig, path: Path, name: str, code: str, column: str, words: str
) -> None:
    found = said(lambda: rename_column(config, path, name))
    assert found[:2] == (code, column) and words in found[2]


def test_what_a_rename_leaves_alone() -> None:
    config = mapped(("B",), constraints__c="s.y > 1")
    change = rename_column(config, ("S", "x"), "b")
    assert change.operation.name == "RENAME COLUMN" and change.config.partition_columns == ("B",)
    assert change.config.physical_schema == config.physical_schema
    assert rename_column(config, ("b",), "c").config.partition_columns == ("c",)
    inner = rename_column(config, ("l", "element", "z"), "B").config
    assert inner.partition_columns == ("B",) and inner.schema.names == config.schema.names


@pytest.mark.parametrize(
    ("config", "paths", "code", "column", "words"),
    [
        (PLAIN, [("S", "x")], "no-column-mapping", "s.X", "dropping a column needs column mapping"),
        (mapped(("B",)), [("a",), ("b",)], "partition-column", "B", "'B' is a partition column"),
        (mapped(), [("L", "element", "z")], "last-column", "l.element.z", "drop the struct that holds it"),
        (mapped(), [(name,) for name in SCHEMA.names], "last-column", "m", "'m' is the only column there"),
        (mapped(), [("l", "element")], "not-a-struct", "l.element", "'l' is array"),
        (mapped(), [("m", "value")], "not-a-struct", "m.value", "'m' is map"),
        (mapped(constraints__c="s.y > 1"), [("a",), ("s",)], "column-in-use", "s", ""),
        (mapped(), [("s", "x"), ("s", "y")], "last-column", "s.y", ""),
    ],
)
def test_columns_that_are_not_dropped(
    config: TableConfig, paths: list[Path], code: str, column: str, words: str
) -> None:
    found = said(lambda: drop_columns(config, paths))
    assert found[:2] == (code, column) and words in found[2]
    if code == "last-column" and len(paths[0]) == 1:
        assert "None" in found[2]


def test_columns_that_may_be_gone() -> None:
    paths: list[Path] = [("A",), ("nope",), ("s", "nope"), ("s", "X"), ("l", "element", "z"), ("a", "b")]
    assert columns_there(mapped(), paths) == [("A",), ("s", "X"), ("l", "element", "z")]
    change = drop_columns(mapped(), [("A",), ("nope",), ("s", "x")], if_exists=True)
    assert json.loads(str(change.operation.parameters["columns"])) == ["a", "s.X"]
    assert change.config.schema.names == ("B", "s", "l", "m")
    assert said(lambda: drop_columns(mapped(), [("A",), ("nope",)]))[0] == "unknown-column"


@pytest.mark.parametrize(
    ("known", "text_type", "declared"),
    [
        ("varchar(3)", "varchar(3)", None), ("varchar(3)", "varchar(4)", "varchar(4)"), ("VARCHAR(3)", "varchar(3)", "varchar(3)"),
        ("varchar(3)", "VARCHAR(10)", "VARCHAR(10)"), ("varchar(10)", "varchar(9)", ""), ("varchar(3)", "string", ""), ("char(3)", "char(3)", None),
        ("char(3)", "varchar(3)", ""), (None, "varchar(3)", ""), ("varchar(3)", "char(3)", ""), ("xvarchar(3)", "varchar(3)", ""), (7, "varchar(3)", ""),
    ],
)  # fmt: skip
def test_lengths_of_texts(known: Any, text_type: str, declared: str | None) -> None:
    """Longer, or as it is; else it is said what it was (`""` stands for a refusal)."""
    found = None if known is None else Field("v", STRING, True, {LENGTH: known})
    if declared != "":
        assert longer_text(found, text_type, ("s", "v")) == declared
        return
    with pytest.raises(InvalidRequest) as caught:
        longer_text(found, text_type, ("s", "v"))
    assert (caught.value.code, caught.value.column) == ("type-change", "s.v")
    assert f"from {known or 'string'} to {text_type}" in caught.value.message


def text_table(length: str | None) -> TableConfig:
    said: dict[str, Any] = {"comment": "c", **({} if length is None else {LENGTH: length})}
    return make_config(Struct((Field("a", INTEGER), Field("s", Struct((Field("v", STRING, True, said),))))))


@pytest.mark.parametrize(
    ("before", "data_type", "after", "declared"),
    [
        ("char(3)", STRING, "varchar(3)", "varchar(3)"), ("CHAR(3)", STRING, "varchar(4)", "varchar(4)"), ("char(3)", STRING, None, None),
        ("varchar(3)", STRING, None, None), ("varchar(3)", STRING, "varchar(5)", "varchar(5)"), (None, STRING, None, None),
        # Nothing is said of the type, so that the length stays.
        ("varchar(3)", None, None, "varchar(3)"), ("array<varchar(3)>", STRING, None, "array<varchar(3)>"),
    ],
)  # fmt: skip
def test_lengths_that_change(
    before: str | None, data_type: DataType | None, after: str | None, declared: str | None
) -> None:
    change = alter_column(text_table(before), ("S", "V"), data_type, text_type=after)
    found = change.config.schema.find_path(("s", "v"))
    assert found is not None
    assert found.metadata == {"comment": "c", **({} if declared is None else {LENGTH: declared})}
    assert json.loads(str(change.operation.parameters["column"]))["name"] == "s.v"


@pytest.mark.parametrize(
    ("changes", "code", "column"),
    [
        ([ColumnChange(("a",), comment="x"), ColumnChange(("A",), comment="y")], "changed-twice", "a"),
        ([ColumnChange(("s",), comment="x"), ColumnChange(("s", "x"), comment="y")], "changed-twice", "s.X"),
        ([ColumnChange(("s", "x"), comment="x"), ColumnChange(("S",), comment="y")], "changed-twice", "s"),
        ([ColumnChange(("s", "x"), default="1")], "nested-default", "s.x"),
        ([ColumnChange(("s", "x"), nullable=False)], "not-null-column", "s.X"),
        ([ColumnChange(("m", "value"), comment="c")], "not-a-column", "m.value"),
        ([ColumnChange(("m", "value"), nullable=False)], "not-a-column", "m.value"),
        ([ColumnChange(("m", "value"), position=Position())], "not-a-column", "m.value"),
        ([ColumnChange(("m", "value"), default="")], "nested-default", "m.value"),
        ([ColumnChange(("a",), data_type=LONG)], "no-type-widening", "a"),
        ([ColumnChange(("a",), position=Position("nope"))], "unknown-column", "nope"),
    ],
)
def test_changes_that_are_refused(changes: list[ColumnChange], code: str, column: str) -> None:
    config = make_config(SCHEMA, (), MAPPED, features("columnMapping", "allowColumnDefaults"))
    assert said(lambda: alter_columns(config, changes))[:2] == (code, column)


def test_parts_of_a_column_change_beside_each_other() -> None:
    changes = [
        ColumnChange(("s", "x"), comment="one"),
        ColumnChange(("s", "y"), comment="two"),
        ColumnChange(("a",), comment="three"),
    ]
    config = alter_columns(mapped(), changes).config
    comments = [config.schema.find_path(change.path) for change in changes]
    assert [f and f.metadata["comment"] for f in comments] == ["one", "two", "three"]


def test_identity_columns_keep_their_type_and_have_no_default() -> None:
    numbered: dict[str, Any] = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": True,
    }
    schema = Struct(
        (Field("n", LONG, True, numbered), Field("x", LONG), Field("v", STRING, True, {LENGTH: "varchar(3)"}))
    )
    config = make_config(schema, (), {}, features("identityColumns", "allowColumnDefaults"))
    for change in (
        ColumnChange(("N",), default="1"),
        ColumnChange(("n",), default=""),
        ColumnChange(("n",), data_type=INTEGER),
    ):
        found = said(lambda change=change: alter_columns(config, [change]))  # type: ignore[misc]
        assert found[:2] == ("unsupported-change", "n")
    kept = alter_columns(config, [ColumnChange(("n",), data_type=LONG, comment="c", position=Position("x"))]).config
    assert kept.schema.names == ("x", "n", "v") and kept.schema.fields[1].metadata == {**numbered, "comment": "c"}
    assert alter_columns(config, [ColumnChange(("x",), default="1")]).config.schema.fields[1].metadata == {
        "CURRENT_DEFAULT": "1"
    }
