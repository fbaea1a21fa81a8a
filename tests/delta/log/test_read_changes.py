"""Commits as a change feed reads them. Specification: "Delta Log Entries", "Add CDC File"."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read_changes import CHANGED_FILES, parse_changes, parse_head, read_changes
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.memory import MemoryStore

PATH = commit_path(7)
ADD = {"path": "a", "partitionValues": {"p": "1"}, "size": 5, "modificationTime": 9, "dataChange": True, "stats": "{}"}


def commit(*actions: dict[str, object]) -> bytes:
    return b"\n".join(json.dumps(action).encode() for action in actions)


def test_the_kinds_of_files_are_kept_apart() -> None:
    found = parse_changes(
        commit(
            {"commitInfo": {"operation": "UPDATE", "inCommitTimestamp": 4}},
            {"add": ADD},
            {"add": {**ADD, "path": "rearranged", "dataChange": False}},
            {"remove": {"path": "r", "dataChange": True, "stats": "{}"}},
            {"remove": {"path": "rearranged", "dataChange": False}},
            {"cdc": {"path": "c", "partitionValues": {"p": None}, "size": 3, "dataChange": False}},
            {"fromTheFuture": {"path": "x"}},
        ),
        PATH,
        7,
    )
    assert [t["path"].to_pylist() for t in (found.added, found.removed, found.recorded)] == [["a"], ["r"], ["c"]]
    assert all(t.schema == CHANGED_FILES for t in (found.added, found.removed, found.recorded))
    assert found.removed.to_pylist()[0] == {
        "path": "r", "partitionValues": None, "size": None, "modificationTime": None, "stats": "{}",
        "deletionVector": None, "version": 7,
    }  # fmt: skip
    assert found.recorded["partitionValues"].to_pylist() == [[("p", None)]]
    assert found.info is not None
    assert (found.info.operation, found.info.in_commit_timestamp) == ("UPDATE", 4)
    assert (found.protocol, found.metadata) == (None, None)


def test_a_damaged_line_is_named() -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_changes(commit({"add": ADD}) + b'\n\n{"cdc": {"path": 3}}', PATH, 7)
    assert (caught.value.code, caught.value.path, caught.value.version) == ("damaged-line", PATH, 7)
    assert "line 3" in caught.value.message


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_an_empty_commit_changes_nothing(data: bytes) -> None:
    """As the reference implementation reads it; loading the table warns of it."""
    changes = parse_changes(data, "p", 3)
    assert (changes.added.num_rows, changes.removed.num_rows) == (0, 0)


def test_heads_are_read_without_the_files() -> None:
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    data = b'{"add": damaged}\n' + commit(protocol)
    found = parse_head(data, PATH, 7)
    assert found[0] is not None
    assert (found[0].min_writer_version, found[1]) == (2, None)
    with pytest.raises(CorruptTable) as caught:
        parse_head(b'{}\n{"metaData": 3}', PATH, 7)
    assert "line 2" in caught.value.message


def test_a_commit_that_goes_away_meanwhile() -> None:
    with pytest.raises(NotFound) as caught:
        read_changes(MemoryStore("gone", "/t"), [ObjectInfo(PATH, 1, 0)])
    assert (caught.value.code, caught.value.version) == ("missing-version", 7)


def metadata(name: str) -> dict[str, object]:
    described = {
        "id": name,
        "format": {"provider": "parquet"},
        "schemaString": "{}",
        "partitionColumns": [],
        "configuration": {},
    }
    return {"metaData": described}


@pytest.mark.parametrize("seed", range(8))
def test_all_that_a_version_did(seed: int) -> None:
    """Beside a plain loop over its lines."""
    lot = random.Random(seed)
    lines: list[dict[str, Any]] = []
    for n in range(lot.choice([0, 3, 15])):
        vector = {"storageType": "u", "pathOrInlineDv": "v", "sizeInBytes": 1, "cardinality": n}
        more = {name: value for name, value in (("stats", "{}"), ("deletionVector", vector)) if lot.random() < 0.5}
        file = {"path": f"f{n}", "partitionValues": {"p": None}, "size": n, "dataChange": lot.random() < 0.6}
        lines.append(lot.choice([
            {"add": {**file, "modificationTime": 10 + n, **more}}, {"remove": {"path": f"f{n}", "dataChange": file["dataChange"], **more}},
            {"cdc": file}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": n + 1}}, metadata(str(n)),
            {"commitInfo": {"operation": str(n)}}, {"txn": {"appId": "a", "version": n}},
        ]))  # fmt: skip
    found = parse_changes(commit(*lines), PATH, 7)
    changing = [line for line in lines for kind in ("add", "remove") if line.get(kind, {}).get("dataChange")]
    for kind, table in (("add", found.added), ("remove", found.removed), ("cdc", found.recorded)):
        expected = [line[kind] for line in (lines if kind == "cdc" else changing) if kind in line]
        assert table.schema == CHANGED_FILES and table["path"].to_pylist() == [file["path"] for file in expected]
        assert table["version"].to_pylist() == [7] * len(expected)
        is_told = kind != "cdc"
        assert table["stats"].to_pylist() == [file.get("stats") if is_told else None for file in expected]
        assert table["modificationTime"].to_pylist() == [file.get("modificationTime") for file in expected]
        assert table["size"].to_pylist() == [file.get("size") for file in expected]
        vectors = [row and row["cardinality"] for row in table["deletionVector"].to_pylist()]
        assert vectors == [file.get("deletionVector", {}).get("cardinality") if is_told else None for file in expected]
        pairs = [None if "partitionValues" not in file else [("p", None)] for file in expected]
        assert table["partitionValues"].to_pylist() == pairs
    order = ["remove" in line for line in changing]
    assert (found.order and found.order.to_pylist()) == (order if any(order) else None)
    last = {kind: line[kind] for line in lines for kind in line}
    assert (found.protocol and found.protocol.min_writer_version) == last.get("protocol", {}).get("minWriterVersion")
    assert (found.metadata and found.metadata.id) == last.get("metaData", {}).get("id")
    # The first one counts: "The `commitInfo` action must be the first action in the commit."
    infos = [line["commitInfo"]["operation"] for line in lines if "commitInfo" in line]
    assert (found.info and found.info.operation) == (infos[0] if infos else None)
    head = parse_head(commit(*lines), PATH, 7)
    assert head == (found.protocol, found.metadata)


class Far(MemoryStore):
    """Objects that come over a network, by its URL."""

    @property
    def url(self) -> str:
        return "s3://far/t"


@pytest.mark.parametrize("kind", [MemoryStore, Far])
def test_commits_are_read_in_their_order(kind: type[MemoryStore]) -> None:
    store = kind("in-their-order", kind.__name__)
    infos = []
    for version in range(12):
        store.put(commit_path(version), commit({"add": {**ADD, "path": f"f{version}"}}))
        infos.append(store.head(commit_path(version)))
    found = read_changes(store, infos[::-1])
    assert [(one.version, one.added["path"].to_pylist()) for one in found] == [
        (n, [f"f{n}"]) for n in reversed(range(12))
    ]
    assert read_changes(store, []) == []
