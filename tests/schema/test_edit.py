"""Changes of a schema at a path."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.schema.edit import Position, edit_struct, find_path, insert_field, move_field
from alluvium.schema.types import INTEGER, LONG, STRING, Array, Field, Map, Struct

INNER = Struct((Field("x", INTEGER), Field("y", STRING)))
SCHEMA = Struct(
    (
        Field("a", INTEGER),
        Field("S", INNER),
        Field("arr", Array(INNER)),
        Field("m", Map(STRING, Array(INNER))),
        Field("k", Map(Struct((Field("x", LONG),)), INNER)),
    )
)


@pytest.mark.parametrize(
    ("path", "spelled", "has_field"),
    [
        (("A",), ("a",), True),
        (("s", "X"), ("S", "x"), True),
        (("arr", "ELEMENT", "x"), ("arr", "element", "x"), True),
        (("arr", "element"), ("arr", "element"), False),
        (("m", "key"), ("m", "key"), False),
        (("m", "value", "element", "Y"), ("m", "value", "element", "y"), True),
        (("k", "Key", "X"), ("k", "key", "x"), True),
        (("k", "value", "y"), ("k", "value", "y"), True),
    ],
)
def test_paths_go_through_everything(path: tuple, spelled: tuple, has_field: bool):
    found, _, field = find_path(SCHEMA, path)
    assert found == spelled
    assert (field is not None) is has_field


@pytest.mark.parametrize("path", [("z",), ("s", "z"), ("arr", "x"), ("m", "element"), ("k", "key", "y"), ("a", "b")])
def test_nothing_there(path: tuple):
    with pytest.raises(InvalidRequest) as caught:
        find_path(SCHEMA, path)
    assert caught.value.code == "unknown-column"


@pytest.mark.parametrize(
    ("path", "meant"),
    [(("aa",), "a"), (("m", "kye"), "key"), (("m", "valeu"), "value"), (("arr", "elemnt"), "element")],
)
def test_a_slip_is_told_by_what_was_meant(path: tuple, meant: str):
    with pytest.raises(InvalidRequest) as caught:
        find_path(SCHEMA, path)
    assert f"{meant!r}" in str(caught.value.hint)


@pytest.mark.parametrize("parent", [("S",), ("arr", "element"), ("m", "value", "element")])
def test_a_struct_is_edited_wherever_it_is(parent: tuple):
    edited = edit_struct(SCHEMA, parent, lambda s: insert_field(s, Field("new", LONG), Position("x")))
    inner = find_path(edited, parent)[1]
    assert isinstance(inner, Struct)
    assert inner.names == ("x", "new", "y")
    others = [f for f in edited.fields if f.name != parent[0]]
    assert others == [f for f in SCHEMA.fields if f.name != parent[0]]


def test_what_is_no_struct_has_no_columns():
    with pytest.raises(InvalidRequest) as caught:
        edit_struct(SCHEMA, ("arr",), lambda s: s)
    assert caught.value.code == "not-a-struct"


@pytest.mark.parametrize(
    ("name", "position", "order"),
    [
        ("m", Position(), ("m", "a", "S", "arr", "k")),
        ("a", Position("s"), ("S", "a", "arr", "m", "k")),
        ("a", Position("A"), ("a", "S", "arr", "m", "k")),
        ("arr", Position("a"), ("a", "arr", "S", "m", "k")),
    ],
)
def test_moves(name: str, position: Position, order: tuple):
    assert move_field(SCHEMA, name, position).names == order


def test_nobody_to_stand_behind():
    with pytest.raises(InvalidRequest) as caught:
        move_field(SCHEMA, "a", Position("z"))
    assert caught.value.code == "unknown-column"
