"""Options that name columns: renamed with them, forgotten with them, and those by which an older state is read."""

from __future__ import annotations

import pytest

from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.option_names import forget_in_options, rename_in_options, travelled_options

NAMING = {
    "bucket-key": "a,b", "sequence.field": "b,a", "fields.a.aggregate-function": "sum", "fields.a.ignore-retract": "true",
    "fields.a.distinct": "true", "fields.a.list-agg-delimiter": ";", "fields.a,b.sequence-group": "c,a",
    "fields.c.sequence-group": "a,b", "fields.n.nested-key": "a,x", "fields.b.aggregate-function": "max",
}  # fmt: skip
RENAMED = {
    "bucket-key": "z,b", "sequence.field": "b,z", "fields.z.aggregate-function": "sum", "fields.z.ignore-retract": "true",
    "fields.z.distinct": "true", "fields.z.list-agg-delimiter": ";", "fields.z,b.sequence-group": "c,z",
    "fields.c.sequence-group": "z,b", "fields.n.nested-key": "z,x", "fields.b.aggregate-function": "max",
}  # fmt: skip
#: What only looks like a name.
OTHERS = {
    "comment": "a", "fields.ab.aggregate-function": "sum", "xfields.a.sequence-group": "a", "bucket": "1", "fields.a.other": "a",
    "rowkind.field": "a", "field.a.x": "a",
}  # fmt: skip


def test_names_follow_their_columns() -> None:
    options = {**NAMING, **OTHERS}
    rename_in_options(options, "a", "z")
    assert options == {**RENAMED, **OTHERS}
    rename_in_options(options, "z", "a")
    assert options == {**NAMING, **OTHERS}
    rename_in_options(options, "nobody", "z")
    assert options == {**NAMING, **OTHERS}
    blank = {"bucket-key": " ", "sequence.field": ""}
    rename_in_options(blank, "", "z")
    assert blank == {"bucket-key": " ", "sequence.field": ""}


@pytest.mark.parametrize(
    ("root", "keys"),
    [
        ("BLOB", ["blob-field", "blob-descriptor-field", "blob.stored-descriptor-fields", "blob-view-field"]),
        ("VECTOR", ["vector-field"]),
        ("INT", []),
    ],
)
def test_names_of_columns_that_are_dropped(root: str, keys: list[str]) -> None:
    every = ["blob-field", "blob-descriptor-field", "blob.stored-descriptor-fields", "blob-view-field", "vector-field"]
    for text, left in (("a", None), ("a, b", "b"), ("b,a,,c", "b,c"), ("b", "b"), ("ab", "ab")):
        options = {**dict.fromkeys(every, text), "field.a.vector-dim": "3", "field.b.vector-dim": "4", "other": "a"}
        forget_in_options(options, "a", root)
        kept = {key: left if key in keys else text for key in every}
        wanted = {key: value for key, value in kept.items() if value is not None}
        dims = (
            {"field.b.vector-dim": "4"} if root == "VECTOR" else {"field.a.vector-dim": "3", "field.b.vector-dim": "4"}
        )
        assert options == {**wanted, **dims, "other": "a"}


def fields(**names: int) -> list[DataField]:
    return [DataField(number, name, parse_type("INT")) for name, number in names.items()]


def test_the_options_of_an_older_state() -> None:
    """Those of today; of those that name columns the older ones, once a column is called otherwise, or is gone."""
    today = {
        "bucket-key": "z",
        "write-only": "true",
        "fields.z.aggregate-function": "sum",
        "rowkind.field": "z",
        "vector-field": "z",
    }
    own = {
        "bucket-key": "a",
        "write-only": "false",
        "fields.a.aggregate-function": "max",
        "file.format": "orc",
        "field.a.vector-dim": "3",
    }
    mixed = {"write-only": "true", "bucket-key": "a", "fields.a.aggregate-function": "max", "field.a.vector-dim": "3"}
    older = fields(a=0, b=1)
    assert travelled_options(older, own, fields(a=0, b=1), today) == today
    assert travelled_options(older, own, fields(b=1, a=0, c=2), today) == today
    for newest in (fields(z=0, b=1), fields(b=1), fields(a=1, b=0), fields(a=5, b=1)):
        assert travelled_options(older, own, newest, today) == mixed
    named = dict.fromkeys(("bucket-key", "sequence.field", "rowkind.field", "record-level.time-field", "partial-update.remove-record-on-sequence-group", "blob-field", "blob-descriptor-field", "blob.stored-descriptor-fields", "blob-view-field", "vector-field"), "x")  # fmt: skip
    assert travelled_options(older, {}, fields(b=1), named) == {}
    assert travelled_options(older, named, fields(b=1), {}) == named
