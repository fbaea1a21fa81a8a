"""Commits as a change feed reads them. Specification: "Delta Log Entries", "Add CDC File"."""

from __future__ import annotations

import json

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
