"""The check-up looks at what readers may ignore: checksums, compactions, sidecars."""

from __future__ import annotations

import uuid

import pytest
from delta_values import make_metadata

from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    checkpoint_paths,
    checksum_path,
    commit_path,
    compacted_path,
    uuid_checkpoint_path,
)
from alluvium.delta.terms.spec import Add, CheckpointMetadata, Protocol, Sidecar, format_actions
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot, statistics_problem
from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    """A table of three commits, of which each adds a file of five bytes that is there."""
    made = MemoryStore(uuid.uuid4().hex, "table")
    for version in range(3):
        name = f"f{version}"
        made.put(name, b"12345")
        add = Add(path=name, partition_values={}, size=5, modification_time=1, data_change=True)
        head = [Protocol(min_reader_version=1, min_writer_version=2), make_metadata()] if version == 0 else []
        made.put(commit_path(version), format_actions([*head, add]))
    return made


def checked(store: MemoryStore) -> list[Finding]:
    return [*check_log(store), *check_snapshot(load_snapshot(store))]


def test_nothing_to_find(store: MemoryStore) -> None:
    store.put(checksum_path(2), b'{"tableSizeBytes":15,"numFiles":3,"numMetadata":1,"numProtocol":1}')
    assert checked(store) == []


def test_a_checksum_that_differs(store: MemoryStore) -> None:
    """ "If validation fails, readers SHOULD surface the discrepancy to users via error messaging" """
    store.put(checksum_path(2), b'{"tableSizeBytes":16,"numFiles":4,"numMetadata":1,"numProtocol":1}')
    # that of another version is not this one's
    store.put(checksum_path(1), b"{")
    assert checked(store) == [
        Finding("warning", "checksum", "numFiles: the checksum has 4, the log 3", checksum_path(2)),
        Finding("warning", "checksum", "tableSizeBytes: the checksum has 16, the log 15", checksum_path(2)),
    ]


def test_a_checksum_that_is_damaged(store: MemoryStore) -> None:
    store.put(checksum_path(2), b'{"numFiles":')
    (finding,) = checked(store)
    assert (finding.level, finding.check, finding.path) == ("warning", "checksum", checksum_path(2))


def test_a_compaction_that_is_damaged(store: MemoryStore) -> None:
    store.put(compacted_path(0, 1), b'{"add":{"path":5}}\n')
    (finding,) = checked(store)
    assert (finding.level, finding.check, finding.path) == ("warning", "compaction", compacted_path(0, 1))


def test_a_sidecar_that_is_gone(store: MemoryStore) -> None:
    actions = [
        CheckpointMetadata(version=1), Protocol(min_reader_version=1, min_writer_version=2), make_metadata(),
        Sidecar(path="gone.parquet", size_in_bytes=3, modification_time=1),
    ]  # fmt: skip
    store.put(uuid_checkpoint_path(1, str(uuid.uuid4()), "json"), format_actions(actions))
    with pytest.warns(UserWarning, match="gone"):
        (finding,) = checked(store)
    assert (finding.level, finding.check) == ("error", "checkpoint")
    assert (finding.path or "").endswith("_sidecars/gone.parquet")


def commit_more(store: MemoryStore, last: int) -> None:
    for version in range(3, last + 1):
        store.put(commit_path(version), b"{}\n")


@pytest.mark.parametrize(
    ("gone", "told"),
    [([1], ["1"]), ([1, 2], ["1 to 2"]), ([1, 2, 3], ["1 to 3"]), ([1, 4, 5], ["1", "4 to 5"]), ([0], [])],
)
def test_commits_that_are_missing(store: MemoryStore, gone: list[int], told: list[str]) -> None:
    commit_more(store, 7)
    for version in gone:
        store.delete(commit_path(version))
    assert check_log(store) == tuple(Finding("error", "log", f"commits are missing: {which}") for which in told)


def test_a_hint_at_a_checkpoint_that_is_not_there(store: MemoryStore) -> None:
    for text, problem in ((b"{", "does not parse"), (b'{"version":1,"size":1}', "of version 1, which is not there")):
        store.put(LAST_CHECKPOINT_PATH, text)
        (finding,) = check_log(store)
        assert (finding.level, finding.check, finding.path) == ("warning", "checkpoint", LAST_CHECKPOINT_PATH)
        assert problem in finding.message


def test_a_checkpoint_of_which_a_part_is_missing_or_that_is_empty(store: MemoryStore) -> None:
    part, empty = checkpoint_paths(1, 2)[1], checkpoint_paths(2)[0]
    store.put(part, b"x")
    store.put(empty, b"")
    found = check_log(store)
    assert {(f.level, f.check, f.path) for f in found} == {("warning", "checkpoint", path) for path in (part, empty)}


def test_commits_without_a_byte_are_summed_up(store: MemoryStore) -> None:
    commit_more(store, 24)
    for version in range(3, 25):
        store.put(commit_path(version), b"")
    found = [f for f in check_log(store) if f.check == "log"]
    assert [f.path for f in found] == [*map(commit_path, range(3, 23)), None]
    assert found[-1] == Finding("warning", "log", "and 2 more files like these")


@pytest.mark.parametrize("count", [0, 1, 20, 21, 45])
def test_a_few_of_many_findings_are_shown(count: int) -> None:
    every = [Finding("error", "files", str(n), f"f{n}") for n in range(count)]
    found = list(summed_up("files", every))
    assert found[:20] == every[:20]
    assert found[20:] == ([Finding("error", "files", f"and {count - 20} more files like these")] if count > 20 else [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", None), ('{"numRecords":0}', None), ('{"numRecords":null,"x":1}', None), ('{"minValues":{"a":[1]}}', None),
        ('{"numRecords":-1}', "is negative: -1"), ('{"numRecords":1.5}', "do not parse"), ("[]", "do not parse"),
        ('{"minValues":1}', "do not parse"), ('{"maxValues":[]}', "do not parse"), ('{"nullCount":"x"}', "do not parse"), ("{" + '"a":{' * 9999, "do not parse"),
    ],
)  # fmt: skip
def test_statistics_with_which_nobody_can_do_anything(store: MemoryStore, text: str, problem: str | None) -> None:
    found = statistics_problem(text)
    assert (found is None) == (problem is None) and (problem or "") in (found or "")
    add = Add(path="f9", partition_values={}, size=5, modification_time=1, data_change=True, stats=text)
    store.put("f9", b"12345")
    store.put(commit_path(3), format_actions([add]))
    told = [] if found is None else [Finding("warning", "statistics", found, "f9")]
    assert checked(store) == told


def test_values_of_a_checksum_are_shown_in_part(store: MemoryStore) -> None:
    other = f'{{"id":"{"x" * 500}","format":{{"provider":"parquet"}},"schemaString":"{{}}","partitionColumns":[],"configuration":{{}}}}'
    text = f'{{"tableSizeBytes":15,"numFiles":3,"numMetadata":1,"numProtocol":1,"metadata":{other}}}'
    store.put(checksum_path(2), text.encode())
    (finding,) = checked(store)
    assert finding.message.startswith("metadata: the checksum has ")
    assert len(finding.message) <= 2 * 200 + len("metadata: the checksum has , the log ")
