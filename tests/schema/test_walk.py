"""Walks through schemas of any depth."""

from __future__ import annotations

from alluvium.schema.types import LONG, STRING, Array, Field, Map, Struct
from alluvium.schema.walk import drop_metadata, fields_within

INNER = Struct((Field("x", LONG, True, {"a.1": 1, "b": 2}),))
SCHEMA = Struct(
    (
        Field("s", INNER, False, {"a.2": 1}),
        Field("l", Array(INNER, False)),
        Field("m", Map(INNER, Array(INNER), False), True, {"b": [1]}),
    )
)


def test_fields_are_found_at_any_depth_parents_first():
    paths = [".".join(path) for path, _ in fields_within(SCHEMA)]
    assert paths == ["s", "s.x", "l", "l.element.x", "m", "m.key.x", "m.value.element.x"]
    assert list(fields_within(STRING)) == []


def test_metadata_is_dropped_at_any_depth_and_nothing_else():
    dropped = drop_metadata(SCHEMA, lambda key: key.startswith("a."))
    left = {".".join(path): dict(f.metadata) for path, f in fields_within(dropped)}
    assert left.pop("m") == {"b": [1]}
    assert {path for path, metadata in left.items() if metadata == {"b": 2}} == {
        "s.x", "l.element.x", "m.key.x", "m.value.element.x",
    }  # fmt: skip
    assert dropped == SCHEMA or str(dropped) == str(SCHEMA)
    assert dropped.fields[0].nullable is False
    assert dropped.fields[1].type.contains_null is False
    assert dropped.fields[2].type.value_contains_null is False
