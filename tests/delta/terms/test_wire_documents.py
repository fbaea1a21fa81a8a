"""Every action by its names in the log: what it must say, what it may leave out, and of which types its members are."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from alluvium.delta.terms import spec
from alluvium.delta.terms.spec import (
    CHANGE_FILES,
    DELETION_VECTOR,
    FILES,
    TOMBSTONES,
    CommitInfo,
    LastCheckpoint,
    Metadata,
    format_actions,
    known_metadata,
    parse_actions,
    parse_commit_info,
    parse_metadata,
    parse_own_actions,
)
from alluvium.errors import CorruptTable

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^", "offset": 4, "sizeInBytes": 40, "cardinality": 6}
ADD = {"path": "a", "partitionValues": {"p": None, "q": "1"}, "size": 1, "modificationTime": 2, "dataChange": True}
#: By kind: an example with all members, and which of them may be missing.
EVERY: dict[str, tuple[dict[str, Any], set[str]]] = {
    "add": (
        {**ADD, "stats": "{}", "tags": {"k": "v", "n": None}, "deletionVector": VECTOR, "baseRowId": 3, "defaultRowCommitVersion": 4, "clusteringProvider": "c"},
        {"stats", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"},
    ),
    "remove": (
        {"path": "a", "deletionTimestamp": 1, "dataChange": False, "extendedFileMetadata": True, "partitionValues": {"p": "1"}, "size": 5, "tags": {"k": "v"},
         "deletionVector": VECTOR, "baseRowId": 3, "defaultRowCommitVersion": 4},
        {"deletionTimestamp", "extendedFileMetadata", "partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion"},
    ),
    "cdc": ({"path": "a", "partitionValues": {}, "size": 5, "dataChange": False, "tags": {"k": "v"}}, {"tags"}),
    "txn": ({"appId": "a", "version": 5, "lastUpdated": 7}, {"lastUpdated"}),
    "domainMetadata": ({"domain": "d", "configuration": "{}", "removed": False}, set()),
    "protocol": ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x", "y"]}, {"readerFeatures", "writerFeatures"}),
    "metaData": (
        {"id": "i", "name": "n", "description": "d", "format": {"provider": "parquet", "options": {"k": "v"}}, "schemaString": "{}", "partitionColumns": ["p"],
         "configuration": {"k": "v"}, "createdTime": 5},
        {"name", "description", "createdTime"},
    ),
    "rowIdHighWaterMark": ({"highWaterMark": 4, "preservedRowIds": True}, {"preservedRowIds"}),
    "sidecar": ({"path": "s", "sizeInBytes": 1, "modificationTime": 2, "tags": {"k": "v"}}, {"tags"}),
    "checkpointMetadata": ({"version": 4, "tags": {"k": "v"}}, {"tags"}),
}  # fmt: skip
LONGS = {"size", "modificationTime", "baseRowId", "defaultRowCommitVersion", "deletionTimestamp", "version", "lastUpdated", "createdTime", "highWaterMark",
         "sizeInBytes"}  # fmt: skip
INTS = {"minReaderVersion", "minWriterVersion"}


def entry(kind: str, document: dict[str, Any]) -> bytes:
    return json.dumps({kind: document}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("kind", EVERY)
def test_every_member_comes_and_goes_under_its_name(kind: str) -> None:
    whole, optional = EVERY[kind]
    data = entry(kind, whole)
    (action,) = parse_actions(data)
    assert format_actions([action]) == data
    assert list(parse_own_actions(data)) == [action]
    least = {name: value for name, value in whole.items() if name not in optional}
    (bare,) = parse_actions(entry(kind, least))
    assert format_actions([bare]) == entry(kind, least)
    told = msgspec.structs.asdict(bare)  # type: ignore[arg-type]
    assert {name for name, value in told.items() if value is None} == {words(name) for name in optional}


def words(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, (whole, optional) in EVERY.items() for name in whole if name not in optional],
)
def test_what_must_be_said(kind: str, name: str) -> None:
    whole, _ = EVERY[kind]
    for document in ({k: v for k, v in whole.items() if k != name}, {**whole, name: None}):
        with pytest.raises(CorruptTable) as caught:
            parse_actions(entry(kind, document), path="p", version=3)
        assert (caught.value.code, caught.value.path, caught.value.version) == ("damaged-line", "p", 3)
        assert "line 1 " in caught.value.message


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (whole, _) in EVERY.items() for name in whole])
def test_members_of_another_type_are_damage(kind: str, name: str) -> None:
    whole, _ = EVERY[kind]
    kinds = {"text": "x", "number": 1, "float": 1.5, "flag": True, "list": [1], "object": {"a": 1}}
    own = whole[name]
    wrong = {k: v for k, v in kinds.items() if type(v) is not type(own)}
    for value in wrong.values():
        with pytest.raises(CorruptTable):
            parse_actions(entry(kind, {**whole, name: value}))
    bits = 64 if name in LONGS else 32 if name in INTS else None
    if bits is not None:
        for value in (2 ** (bits - 1) - 1, -(2 ** (bits - 1))):
            parse_actions(entry(kind, {**whole, name: value}))
        for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
            with pytest.raises(CorruptTable):
                parse_actions(entry(kind, {**whole, name: value}))


@pytest.mark.parametrize("name", VECTOR)
def test_vectors_say_where_they_are(name: str) -> None:
    less = {k: v for k, v in VECTOR.items() if k != name}
    data = entry("add", {**ADD, "deletionVector": less})
    if name == "offset":
        assert format_actions(parse_actions(data)) == data
        return
    with pytest.raises(CorruptTable):
        parse_actions(data)


def test_several_actions_and_those_that_nobody_knows() -> None:
    lines = [json.dumps({kind: whole}) for kind, (whole, _) in EVERY.items()]
    info = json.dumps({"commitInfo": {"operation": "WRITE"}})
    unknown = ['{"other":{"add":1}}', "{}", '{"Add":1}', '{"add":null,"metaData":null}']
    found = parse_actions(
        "\n".join([info, *itertools.chain(*zip(lines, itertools.cycle(unknown), strict=False))]).encode()
    )
    assert [type(action).__name__ for action in found] == [
        "CommitInfo", "Add", "Remove", "Cdc", "Txn", "DomainMetadata", "Protocol", "Metadata", "RowIdHighWaterMark", "Sidecar", "CheckpointMetadata",
    ]  # fmt: skip
    assert format_actions(found) == b"".join(
        json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n" for line in [info, *lines]
    )


@pytest.mark.parametrize(
    ("raw", "content"),
    [(b'{"a":[1,{"b":null}]}', {"a": [1, {"b": None}]}), (b"{}", {}), (b"null", {}), (b"[1]", {}), (b'"x"', {}), (b"7", {}), (b'{"a":"\xff"}', {}),
     (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", {})],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_what_a_commit_says_of_itself_is_never_damage(raw: bytes, content: dict[str, Any]) -> None:
    assert parse_commit_info(raw) == CommitInfo(content)


def test_a_description_and_what_we_do_not_know_of_it() -> None:
    known, _ = EVERY["metaData"]
    assert parse_metadata(b"null") is parse_metadata(b"") is None
    plain = parse_metadata(json.dumps(known).encode())
    assert plain is not None and plain.unknown == () and known_metadata(plain) is plain
    more = parse_metadata(json.dumps({**known, "later": [1], "format2": None}).encode())
    assert more is not None and more.unknown == (("later", b"[1]"), ("format2", b"null"))
    assert known_metadata(more) == plain and more != plain
    assert json.loads(format_actions([more]))["metaData"] == {**known, "later": [1], "format2": None}
    # Options that a converter left out are none.
    bare = parse_metadata(json.dumps({**known, "format": {"provider": "parquet"}}).encode())
    assert isinstance(bare, Metadata) and bare.format.options == {}


def test_a_hint_at_a_checkpoint() -> None:
    whole = {"version": 4, "size": 5, "parts": 2, "sizeInBytes": 6, "numOfAddFiles": 7, "checksum": "c"}
    found = msgspec.json.decode(json.dumps(whole), type=LastCheckpoint)
    assert json.loads(msgspec.json.encode(found)) == whole
    assert (found.num_of_add_files, found.size_in_bytes, found.parts, found.checksum) == (7, 6, 2, "c")
    assert msgspec.json.encode(LastCheckpoint(version=1, size=2)) == b'{"version":1,"size":2}'


def test_files_as_columns_have_the_names_of_their_actions() -> None:
    texts = pa.map_(pa.string(), pa.string())
    types = {
        "path": pa.string(), "partitionValues": texts, "tags": texts, "stats": pa.string(), "deletionVector": DELETION_VECTOR, "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(), "clusteringProvider": pa.string(),
    }  # fmt: skip
    for schema, kind, but in ((FILES, "add", set()), (TOMBSTONES, "remove", set()), (CHANGE_FILES, "cdc", {"tags"})):
        whole, optional = EVERY[kind]
        assert set(schema.names) == set(whole) - but and len(schema.names) == len(whole) - len(but)
        assert {f.name for f in schema if f.nullable} == optional - but
        assert {f.name: f.type for f in schema} == {name: types.get(name, pa.int64()) for name in schema.names}
    assert [(f.name, str(f.type)) for f in DELETION_VECTOR] == [
        ("storageType", "string"), ("pathOrInlineDv", "string"), ("offset", "int32"), ("sizeInBytes", "int32"), ("cardinality", "int64"),
    ]  # fmt: skip
    assert texts == spec.STRING_MAP
