"""Schema files, schema changes, types and casts of the Paimon corpus: what Java made of each is what we make of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon.schema import SchemaChange, TableSchema, format_type, parse_type
from alluvium.paimon.schema.casts import can_cast, may_cast
from alluvium.paimon.schema.checks import check_schema
from conformance.cases import find_corpus

pytestmark = pytest.mark.conformance

_DELTA = find_corpus()
PAIMON = None if _DELTA is None else _DELTA.parent / "paimon"
ABSENT = [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"), id="absent")]


def cases(folder: str) -> list[Any]:
    found = [] if PAIMON is None else sorted((PAIMON / folder).glob("*/case.json"))
    return [pytest.param(path, id=path.parent.name) for path in found] or ABSENT


def vectors(name: str) -> list[Any]:
    if PAIMON is None:
        return ABSENT
    document = json.loads((PAIMON / "vectors" / name).read_text(encoding="utf-8"))
    return [pytest.param(v, id=str(v.get("type", ""))[:30] or None) for v in document["vectors"]]


def documents(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    for entry in json.loads(path.read_text(encoding="utf-8"))["files"]:
        yield entry, (path.parent / entry["file"]).read_bytes()


def test_the_corpus_has_files_for_each_rule() -> None:
    """The tests below leave files out, and none of them may be about nothing."""
    if PAIMON is None:
        pytest.skip("no corpus: set ALLUVIUM_CONFORMANCE")
    met = [(entry, data) for param in cases("schema") for entry, data in documents(param.values[0])]
    known = [(entry["expected"], data) for entry, data in met if entry["expected"] is not None]
    assert len(known) > 20
    assert len(met) > len(known)
    assert sum(b'"version" : 3,' in data for _, data in known) > 10
    assert sum(expected["version"] == 3 for expected, _ in known) > 10


@pytest.mark.parametrize("path", cases("schema"))
def test_schema_files(path: Path) -> None:
    for entry, data in documents(path):
        if entry["expected"] is None:
            with pytest.raises(CorruptTable):
                TableSchema.parse(data)
            continue
        schema = TableSchema.parse(data)
        assert schema.as_dict() == entry["expected"]
        assert TableSchema.parse(schema.format()) == schema


@pytest.mark.parametrize("path", cases("schema"))
def test_written_files_are_the_same_bytes(path: Path) -> None:
    """For files in Java's layout of today that say what they mean."""
    for entry, data in documents(path):
        if entry["expected"] is not None and b'"version" : 3,' in data:
            assert TableSchema.parse(data).format() == data


@pytest.mark.parametrize("path", cases("schema"))
def test_what_java_made_keeps_our_rules(path: Path) -> None:
    for entry, data in documents(path):
        if entry["expected"] is not None and entry["expected"]["version"] == 3:
            assert list(check_schema(TableSchema.parse(data))) == []


@pytest.mark.parametrize("path", cases("schema-changes"))
def test_schema_changes(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    schema = TableSchema.parse((path.parent / case["initial"]["file"]).read_bytes())
    for step in case["steps"]:
        changes = [SchemaChange.parse(change) for change in step["changes"]]
        assert [SchemaChange.parse(change.as_dict()) for change in changes] == changes
        if step["error"]:
            with pytest.raises(InvalidRequest) as refused:
                schema.apply(changes, has_snapshots=case["has_snapshots"])
            assert refused.value.code == step["error"]
            continue
        schema = schema.apply(changes, has_snapshots=case["has_snapshots"])
        assert {**schema.as_dict(), "timeMillis": 0} == {**step["expected"], "timeMillis": 0}


@pytest.mark.parametrize("vector", vectors("types.json"))
def test_types(vector: dict[str, Any]) -> None:
    counter = itertools.count()
    if "error" in vector:
        with pytest.raises(InvalidRequest):
            parse_type(vector["type"], lambda: next(counter))
        return
    parsed = parse_type(vector["type"], lambda: next(counter))
    assert (str(parsed), format_type(parsed), parsed.as_dict()) == (vector["sql"], vector["json"], vector["neutral"])


@pytest.mark.parametrize("vector", vectors("casts.json"))
def test_casts_that_exist(vector: dict[str, Any]) -> None:
    source, target = parse_type(vector["from"]), parse_type(vector["to"])
    found = may_cast(source, target, False), may_cast(source, target, True), can_cast(source, target)
    assert found == (vector["implicit"], vector["explicit"], vector["executor"])
