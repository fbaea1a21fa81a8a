"""Snapshots as files: what Java writes and takes, the bounds of its numbers, and what is no snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import ensure_option_may_change
from alluvium.paimon.terms.spec import SnapshotDocument, format_snapshot, parse_snapshot

NEEDED: dict[str, Any] = {
    "id": 7, "schemaId": 2, "baseManifestList": "base", "deltaManifestList": "delta", "commitUser": "me",
    "commitIdentifier": 5, "commitKind": "APPEND", "timeMillis": 1_700_000_000_000,
}  # fmt: skip
MORE: dict[str, Any] = {
    "version": 3, "baseManifestListSize": 10, "deltaManifestListSize": 11, "changelogManifestList": "changes",
    "changelogManifestListSize": 12, "indexManifest": "index", "logOffsets": {"0": 1}, "totalRecordCount": 13,
    "deltaRecordCount": 14, "changelogRecordCount": 15, "watermark": -16, "statistics": "stats",
    "properties": {"a": "b"}, "nextRowId": 17, "tagCreateTime": [2024, 1, 2, 3, 4], "tagTimeRetained": "PT1H",
}  # fmt: skip
LONGS = [key for key, value in {**NEEDED, **MORE}.items() if isinstance(value, int) and key != "timeMillis"]


def parsed(**changed: Any) -> SnapshotDocument:
    return parse_snapshot(json.dumps({**NEEDED, **changed}).encode(), "snapshot/snapshot-7")


def refused(data: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_snapshot(data, "snapshot/snapshot-7")
    assert (caught.value.code, caught.value.path) == ("invalid-snapshot", "snapshot/snapshot-7")


def test_all_that_a_snapshot_says() -> None:
    document = parsed(**MORE)
    told = {name: getattr(document, name) for name in document.__struct_fields__}
    assert told == {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): value for key, value in {**NEEDED, **MORE}.items()
    }
    written = format_snapshot(document)
    assert json.loads(written) == {**NEEDED, **MORE} and parse_snapshot(written, "x") == document
    assert written.startswith(b'{\n  "id": 7,\n  "schemaId": 2,')


def test_what_is_not_said_is_left_out() -> None:
    document = parsed()
    assert json.loads(format_snapshot(document)) == NEEDED
    assert {getattr(document, name) for name in document.__struct_fields__[len(NEEDED) :]} == {None}
    # What a newer writer adds is ignored; null is nothing.
    assert parsed(unknown={"x": [1]}, watermark=None) == document
    # Nothing that is said is taken for nothing.
    assert json.loads(format_snapshot(parsed(totalRecordCount=0, properties={}, statistics=""))) == {
        **NEEDED, "totalRecordCount": 0, "properties": {}, "statistics": "",
    }  # fmt: skip


@pytest.mark.parametrize("key", NEEDED)
def test_what_every_snapshot_says(key: str) -> None:
    refused(json.dumps({k: v for k, v in NEEDED.items() if k != key}).encode())
    refused(json.dumps({**NEEDED, key: None}).encode())
    refused(json.dumps({**NEEDED, key: [1]}).encode())


@pytest.mark.parametrize("key", LONGS)
def test_numbers_are_javas(key: str) -> None:
    """JSON's have no bounds."""
    for number in (-(1 << 63), (1 << 63) - 1):
        assert json.loads(format_snapshot(parsed(**{key: number})))[key] == number
    for wrong in (-(1 << 63) - 1, 1 << 63, "7", 1.5, True):
        refused(json.dumps({**NEEDED, key: wrong}).encode())


def test_times_of_which_a_calendar_can_be_asked() -> None:
    """The years 1 to 9999, in snapshots and in schemas."""
    first, last = -62_135_596_800_000, 253_402_300_799_999
    schema: dict[str, Any] = {"version": 3, "id": 0, "fields": [{"id": 0, "name": "a", "type": "INT"}]}
    for time in (first, 0, last):
        assert parsed(timeMillis=time).time_millis == time
        assert TableSchema.parse(json.dumps({**schema, "timeMillis": time}).encode()).time_millis == time
    for time in (first - 1, last + 1):
        refused(json.dumps({**NEEDED, "timeMillis": time}).encode())
        with pytest.raises(CorruptTable):
            TableSchema.parse(json.dumps({**schema, "timeMillis": time}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_snapshot(data: bytes) -> None:
    refused(data)


@pytest.mark.parametrize(
    ("options", "key", "value", "hint"),
    [
        ({}, "merge-engine", "first-row", "before the first write"),
        ({"bucket": "2"}, "bucket", "-1", "before the first write"),
        ({}, "deletion-vectors.enabled", "true", "deletion-vectors.modifiable = true"),
    ],
)
def test_what_to_do_about_an_option(options: dict[str, str], key: str, value: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ensure_option_may_change(options, key, value)
    assert hint in (caught.value.hint or "")
