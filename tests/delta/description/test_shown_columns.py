"""Columns as the history shows them, under the keys and with the omissions of delta-spark."""

from __future__ import annotations

from typing import Any

import pytest

from alluvium.delta.description.shown_columns import shown_change, shown_field, shown_path, type_name
from alluvium.schema.types import (
    BYTE,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
)

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("a",), "a"),
        (("s", "x"), "s.x"),
        (("a.b",), "`a.b`"),
        (("s", "a.b", "x"), "s.`a.b`.x"),
        (("a b", "c`d"), "a b.c`d"),
        ((), ""),
    ],
)
def test_paths(path: tuple[str, ...], shown: str) -> None:
    assert shown_path(path) == shown


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        (LONG, "long"), (BYTE, "byte"), (STRING, "string"), (Decimal(5, 2), "decimal(5,2)"), (TIMESTAMP_NTZ, "timestamp_ntz"), (VARIANT, "variant"),
        (Array(LONG), "array"), (Map(STRING, LONG), "map"), (Struct((Field("x", LONG),)), "struct"),
    ],
    ids=str,
)  # fmt: skip
def test_types_without_their_parts(data_type: DataType, name: str) -> None:
    assert type_name(data_type) == name
    assert shown_field(Field("a", data_type, False), ("s", "a")) == {
        "name": "s.a",
        "type": name,
        "nullable": False,
        "metadata": {},
    }


def test_what_a_table_keeps_to_itself_is_left_out() -> None:
    said: dict[str, Any] = {
        "delta.columnMapping.id": 1,
        "comment": "c",
        "own": [1],
        LENGTH: "varchar(3)",
        "CURRENT_DEFAULT": "'x'",
        "deltax": 1,
    }
    assert shown_field(Field("a", STRING, True, said), ("a",)) == {
        "name": "a", "type": "varchar(3)", "nullable": True, "metadata": {"comment": "c", "own": [1], "CURRENT_DEFAULT": "'x'", "deltax": 1},
    }  # fmt: skip
    assert shown_field(Field("a", STRING, True, {LENGTH: 3}), ("a",))["type"] == "string"


def test_of_a_changed_column_what_was_said_and_what_is_said_anew() -> None:
    before = Field(
        "a", LONG, True, {"delta.columnMapping.id": 1, "comment": "old", LENGTH: "char(2)", "CURRENT_DEFAULT": "1"}
    )

    def shown(**said: Any) -> dict[str, Any]:
        return shown_change(
            Field("a", STRING, False, {name.replace("__", "."): value for name, value in said.items()}), ("a",), before
        )

    # What is no more is not shown; what else the column had before is.
    assert shown() == {"name": "a", "type": "string", "nullable": False, "metadata": {"delta.columnMapping.id": 1}}
    assert shown(comment="new")["metadata"] == {"delta.columnMapping.id": 1, "comment": "new"}
    assert shown(CURRENT_DEFAULT="2")["metadata"] == {"delta.columnMapping.id": 1, "CURRENT_DEFAULT": "2"}
    # Things that are new beside these three are not.
    assert shown(other="x")["metadata"] == {"delta.columnMapping.id": 1}
    length = shown_change(Field("a", STRING, True, {LENGTH: "varchar(5)"}), ("a",), before)
    # The type as it is, for the length stands among the rest.
    assert (length["type"], length["metadata"]) == ("string", {"delta.columnMapping.id": 1, LENGTH: "varchar(5)"})
    assert shown_change(Field("x", LONG, True, {"comment": "c", "k": "v"}), ("m", "x"), None) == {
        "name": "m.x", "type": "long", "nullable": True, "metadata": {"comment": "c"},
    }  # fmt: skip


def test_keys_stand_as_in_scala_s_map() -> None:
    said: dict[str, Any] = {"comment": "c", "delta.columnMapping.physicalName": "p", "delta.columnMapping.id": 1}
    f = Field("a", LONG, True, said)
    found = shown_change(f, ("a",), f)["metadata"]
    assert isinstance(found, dict)
    assert list(found) == ["delta.columnMapping.id", "comment", "delta.columnMapping.physicalName"]
