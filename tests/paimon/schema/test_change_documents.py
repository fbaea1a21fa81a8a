"""Changes of schemas in Paimon's JSON form: each action, there and back, and what is left out of it."""

from __future__ import annotations

from typing import Any

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import SchemaChange, parse_type
from alluvium.paimon.schema.changes import AddColumn, Move, UpdateColumnType

C = SchemaChange
ROW = {"type": "ROW NOT NULL", "fields": [{"id": 0, "name": "x", "type": "INT NOT NULL"}]}

#: Action by action: the change, and its document.
CHANGES: list[tuple[SchemaChange, dict[str, Any]]] = [
    (C.set_option("a", "b"), {"action": "setOption", "key": "a", "value": "b"}),
    (C.remove_option("a"), {"action": "removeOption", "key": "a"}),
    (C.update_comment("why"), {"action": "updateComment", "comment": "why"}),
    (C.update_comment(None), {"action": "updateComment", "comment": None}),
    (
        C.add_column("a", "INT"),
        {"action": "addColumn", "fieldNames": ["a"], "dataType": "INT", "comment": None, "move": None},
    ),
    (
        C.add_column(["r", "a"], ROW, "why", after="b"),
        {
            "action": "addColumn", "fieldNames": ["r", "a"], "dataType": ROW, "comment": "why",
            "move": {"fieldName": "a", "referenceFieldName": "b", "type": "AFTER"},
        },
    ),
    (C.rename_column(["r", "a"], "b"), {"action": "renameColumn", "fieldNames": ["r", "a"], "newName": "b"}),
    (C.drop_column("a"), {"action": "dropColumn", "fieldNames": ["a"]}),
    (
        C.update_column_type("a", "BIGINT NOT NULL"),
        {"action": "updateColumnType", "fieldNames": ["a"], "newDataType": "BIGINT NOT NULL", "keepNullability": False},
    ),
    (
        C.update_column_type("a", "BIGINT", keep_nullability=True),
        {"action": "updateColumnType", "fieldNames": ["a"], "newDataType": "BIGINT", "keepNullability": True},
    ),
    (
        C.update_column_nullability("a", False),
        {"action": "updateColumnNullability", "fieldNames": ["a"], "newNullability": False},
    ),
    (C.update_column_comment("a", "why"), {"action": "updateColumnComment", "fieldNames": ["a"], "newComment": "why"}),
    (C.update_column_comment("a", None), {"action": "updateColumnComment", "fieldNames": ["a"], "newComment": None}),
    (
        C.update_column_default("a", "1"),
        {"action": "updateColumnDefaultValue", "fieldNames": ["a"], "newDefaultValue": "1"},
    ),
    (
        C.update_column_default("a", None),
        {"action": "updateColumnDefaultValue", "fieldNames": ["a"], "newDefaultValue": None},
    ),
    (
        C.update_column_position("a", first=True),
        {"action": "updateColumnPosition", "move": {"fieldName": "a", "referenceFieldName": None, "type": "FIRST"}},
    ),
    (
        C.update_column_position("a", last=True),
        {"action": "updateColumnPosition", "move": {"fieldName": "a", "referenceFieldName": None, "type": "LAST"}},
    ),
    (
        C.update_column_position("a", before="b"),
        {"action": "updateColumnPosition", "move": {"fieldName": "a", "referenceFieldName": "b", "type": "BEFORE"}},
    ),
    (C.drop_primary_key(), {"action": "dropPrimaryKey"}),
]  # fmt: skip


@pytest.mark.parametrize(("change", "document"), CHANGES, ids=lambda c: c["action"] if isinstance(c, dict) else "")
def test_there_and_back(change: SchemaChange, document: dict[str, Any]) -> None:
    assert change.as_dict() == document
    assert SchemaChange.parse(document) == change


@pytest.mark.parametrize(
    ("document", "change"),
    [
        ({"action": "updateComment"}, C.update_comment(None)),
        ({"action": "addColumn", "fieldNames": ["a"], "dataType": "INT"}, C.add_column("a", "INT")),
        (
            {"action": "updateColumnType", "fieldNames": ["a"], "newDataType": "INT"},
            UpdateColumnType(("a",), parse_type("INT"), False),
        ),
        ({"action": "updateColumnDefaultValue", "fieldNames": ["a"]}, C.update_column_default("a", None)),
        ({"action": "updateColumnComment", "fieldNames": ["a"]}, C.update_column_comment("a", None)),
        (
            {"action": "updateColumnPosition", "move": {"fieldName": "a", "type": "LAST"}},
            C.update_column_position("a", last=True),
        ),
    ],
)
def test_what_may_be_left_out(document: dict[str, Any], change: SchemaChange) -> None:
    assert SchemaChange.parse(document) == change


@pytest.mark.parametrize(("_", "document"), CHANGES, ids=lambda c: c["action"] if isinstance(c, dict) else "")
def test_each_part_has_a_type_of_its_own(_: SchemaChange, document: dict[str, Any]) -> None:
    for name in document:
        with pytest.raises(InvalidRequest) as error:
            SchemaChange.parse({**document, name: 5})
        assert error.value.code == "invalid-schema-change"


def test_a_column_goes_to_one_place() -> None:
    made = C.add_column(["r", "a"], "INT", before="b")
    assert made == AddColumn(("r", "a"), parse_type("INT"), None, Move("a", "BEFORE", "b"))
    for given in ({"first": True, "last": True}, {"after": "b", "before": "c"}, {"first": True, "after": "b"}):
        for change in (lambda g: C.add_column("a", "INT", **g), lambda g: C.update_column_position("a", **g)):
            with pytest.raises(InvalidRequest, match="two places"):
                change(given)
    with pytest.raises(InvalidRequest, match="where does 'a' go"):
        C.update_column_position("a")


@pytest.mark.parametrize("column", ["", [], ["a", ""], ["a", 5], [None]])
def test_columns_have_names(column: Any) -> None:
    with pytest.raises(InvalidRequest, match="names no column"):
        C.drop_column(column)


def test_fields_without_numbers_are_numbered_from_nought() -> None:
    bare = {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "INT"}]}
    change = C.add_column("r", bare)
    assert isinstance(change, AddColumn)
    assert [(f.id, f.name) for f in change.type.fields] == [(0, "x"), (1, "y")]
    assert C.add_column("a", change.type) == AddColumn(("a",), change.type, None, None)
