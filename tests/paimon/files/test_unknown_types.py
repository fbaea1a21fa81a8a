"""Types of fields that are newer than we are, taken out of one schema and put into another: as documents, without files."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.files.unknown_fields import (
    ensure_members_known,
    extended,
    others_type,
    pack,
    unpack_into,
)


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


INNER = record("inner", a="int", b=["null", "string"])
KNOWN = (("_K",), ("_FILE", "_NAME"), ("_FILE", "_STATS", "_MIN"))


def others(schema: Any) -> list[tuple[list[str], Any]]:
    found = others_type(schema, KNOWN)
    if found is None:
        return []
    document = json.loads(found)
    assert (document["type"], document["name"]) == ("record", "others")
    assert [field["name"] for field in document["fields"]] == [f"f{n}" for n in range(len(document["fields"]))]
    return [(field["path"], field["type"]) for field in document["fields"]]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"_VERSION": "int", "_K": "int"}, []),
        ({"_K": "int", "_NEW": "long"}, [(["_NEW"], "long")]),
        ({"_FILE": record("f", _NAME="string")}, []),
        ({"_FILE": record("f", _NAME="string", _NEW="bytes")}, [(["_FILE", "_NEW"], "bytes")]),
        # What may be null is looked into all the same.
        ({"_FILE": ["null", record("f", _NAME="string", _NEW="bytes")]}, [(["_FILE", "_NEW"], "bytes")]),
        ({"_FILE": record("f", _STATS=record("s", _MIN="bytes", _SUM="long"))}, [(["_FILE", "_STATS", "_SUM"], "long")]),
        ({"_A": "int", "_FILE": record("f", _B="int", _NAME="string"), "_C": "int"},
         [(["_A"], "int"), (["_FILE", "_B"], "int"), (["_C"], "int")]),
        # That of an inner record is another one's version.
        ({"_FILE": record("f", _VERSION="int")}, [(["_FILE", "_VERSION"], "int")]),
    ],
)  # fmt: skip
def test_what_is_not_known(fields: dict[str, Any], wanted: list[tuple[list[str], Any]]) -> None:
    assert others(record("entry", **fields)) == wanted


def named(number: int, path: str, **fields: Any) -> dict[str, Any]:
    return record(f"others_{path}_{number}", **fields)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-millis"}),
        (["null", "long"], ["null", "long"]),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": ["null", INNER]}, {"type": "map", "values": ["null", named(0, "_X", a="int", b=["null", "string"])]}),
        ({**INNER, "namespace": "org.x", "aliases": ["y"]}, named(0, "_X", a="int", b=["null", "string"])),
        (record("outer", one=INNER, two="inner"),
         named(0, "_X", one=named(1, "_X", a="int", b=["null", "string"]), two=named(2, "_X", a="int", b=["null", "string"]))),
        ({"type": "fixed", "name": "org.x.hash", "size": 4}, {"type": "fixed", "name": "others__X_0", "size": 4}),
        ({"type": {"type": "array", "items": "int"}}, {"type": {"type": "array", "items": "int"}}),
    ],
)  # fmt: skip
def test_a_type_that_can_stand_anywhere(kind: Any, wanted: Any) -> None:
    """What it calls by a name is written out, and its own names are made of its place."""
    ((path, found),) = others(record("entry", _K="int", _X=kind))
    assert (path, found) == (["_X"], wanted)


@pytest.mark.parametrize("called", ["inner", "org.x.inner"])
def test_a_type_that_is_called_by_the_name_of_a_known_field(called: str) -> None:
    schema = record("entry", _K=["null", {**INNER, "name": "org.x.inner"}], _X={"type": "array", "items": called})
    assert others(schema) == [(["_X"], {"type": "array", "items": named(0, "_X", a="int", b=["null", "string"])})]


def test_values_go_into_columns_and_back() -> None:
    schema = record("entry", _K="int", _FILE=record("f", _NAME="string", _NEW=["null", "long"]), _RANGE=["null", INNER])
    records = [
        {"_K": 1, "_FILE": {"_NAME": "x", "_NEW": 7}, "_RANGE": {"a": 1, "b": "z"}},
        {"_K": 2, "_FILE": {"_NAME": "y", "_NEW": None}, "_RANGE": None},
    ]
    kind = others_type(schema, KNOWN)
    data, kinds = pack(records, kind)
    assert (data.type, kinds.type, kinds.to_pylist()) == (pa.binary(), pa.string(), [kind, kind])
    for was, value in zip(records, data.to_pylist(), strict=True):
        now: dict[str, Any] = {"_K": was["_K"], "_FILE": {"_NAME": was["_FILE"]["_NAME"]}}
        unpack_into(now, value, kind)
        assert now == was
    nothing, none = pack(records, None)
    assert (nothing.null_count, none.null_count, nothing.type, none.type) == (2, 2, pa.binary(), pa.string())
    left: dict[str, Any] = {"_K": 1}
    for value, said in ((None, kind), (data[0].as_py(), None)):
        unpack_into(left, value, said)
        assert left == {"_K": 1}


def kind_of(*fields: tuple[list[str], Any]) -> str:
    made = [{"name": f"f{n}", "path": path, "type": kind} for n, (path, kind) in enumerate(fields)]
    return json.dumps({"type": "record", "name": "others", "fields": made})


OURS = record("entry", _K="int", _FILE=record("f", _NAME="string"))


def test_a_schema_with_the_fields_of_others() -> None:
    """Each may be null: entries of other writers lack it."""
    assert extended(OURS, []) is OURS
    before = json.dumps(OURS)
    made = extended(OURS, [
        kind_of((["_FILE", "_X"], "long"), (["_B"], ["string", "null"])),
        kind_of((["_A"], ["null", "int"])),
        kind_of((["_FILE", "_X"], ["null", "long"])),
    ])  # fmt: skip
    assert json.dumps(OURS) == before
    (file,) = (f["type"] for f in made["fields"] if f["name"] == "_FILE")
    assert file["fields"][1:] == [{"name": "_X", "type": ["null", "long"], "default": None}]
    added = {f["name"]: f for f in made["fields"][2:]}
    assert added == {
        "_A": {"name": "_A", "type": ["null", "int"], "default": None},
        "_B": {"name": "_B", "type": ["string", "null"]},
    }


@pytest.mark.parametrize(
    ("first", "other"), [("long", "int"), (["null", "long"], "string"), (record("a", x="int"), record("a", x="long"))]
)
def test_one_field_of_two_types_is_refused(first: Any, other: Any) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        extended(OURS, [kind_of((["_FILE", "_X"], first)), kind_of((["_FILE", "_X"], other))])
    assert (caught.value.code, caught.value.features) == ("unknown-manifest-field", ("_X",))
    assert "_FILE._X" in caught.value.message


RANGES = pa.list_(pa.struct([("f0", pa.string()), ("f1", pa.int32())]))


@pytest.mark.parametrize(
    ("members", "others_"), [(("f0",), []), (("f0", "f1"), []), (("f0", "new", "f1", "more"), ["new", "more"])]
)
@pytest.mark.parametrize("null", [True, False])
def test_members_of_lists_that_have_a_column_as_a_whole(members: tuple[str, ...], others_: list[str], null: bool) -> None:  # fmt: skip
    item: Any = record("r", **dict.fromkeys(members, "int"))
    ranges: Any = {"type": "array", "items": ["null", item] if null else item}
    schema = record(
        "entry", _A={"type": "array", "items": "int"}, _IN=record("in", _R=["null", ranges] if null else ranges)
    )
    known = {("_IN", "_R"): RANGES, ("_A",): pa.list_(pa.int32()), ("_K",): pa.int64(), ("_NONE",): RANGES}
    if not others_:
        ensure_members_known(schema, known)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_members_known(schema, known)
    assert (caught.value.code, list(caught.value.features)) == ("unknown-manifest-field", others_)
    assert "_IN._R" in caught.value.message
