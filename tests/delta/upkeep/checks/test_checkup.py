"""The check-up looks at what readers may ignore: checksums, compactions, sidecars."""

from __future__ import annotations

import uuid

import pytest
from delta_values import make_metadata

from alluvium.delta.log.names import checksum_path, commit_path, compacted_path, uuid_checkpoint_path
from alluvium.delta.terms.spec import Add, CheckpointMetadata, Protocol, Sidecar, format_actions
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.checks.finding import Finding
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
