"""The check-up holds what readers take in place of commits against the commits."""

from __future__ import annotations

import uuid
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from delta_values import LEGACY, make_metadata
from pyroaring import BitMap64

from alluvium.codecs.z85 import format_z85
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    checkpoint_paths,
    checksum_path,
    commit_path,
    compacted_path,
)
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.terms.spec import Action, Add, DeletionVector, Protocol, Remove, Txn, format_actions
from alluvium.delta.upkeep.checks.check_files import check_deletion_vectors
from alluvium.delta.upkeep.checks.checkup import check_log
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.storage.store import Store
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore

NOW = CheckpointOptions(0, 0)


def add(path: str) -> Add:
    return Add(path=path, partition_values={}, size=5, modification_time=1, data_change=True)


def remove(path: str) -> Remove:
    return Remove(path=path, deletion_timestamp=1, data_change=True)


def fill(store: Store) -> Store:
    """Five commits, of which each adds a file; the last removes the first one."""
    for version in range(5):
        head: list[Action] = [LEGACY, make_metadata(), Txn(app_id="a", version=1)] if version == 0 else []
        last = [remove("f0")] if version == 4 else []
        store.put(commit_path(version), format_actions([*head, add(f"f{version}"), *last]))
    return store


@pytest.fixture
def store() -> Store:
    return fill(MemoryStore(uuid.uuid4().hex, "table"))


def state_of(store: Store, version: int | None = None) -> LogState:
    return load_state(store, list_segment(store, version), lambda protocol: None)


def found(store: Store) -> list[tuple[str, str, str | None]]:
    return [(finding.level, finding.check, finding.path) for finding in check_log(store)]


def test_sound_ones(store: Store) -> None:
    write_checkpoint(store, state_of(store, 2), NOW)
    write_checkpoint(store, state_of(store), NOW)
    compact_log(store, 1, 4)
    assert found(store) == []
    # Without commits before it nothing contradicts a checkpoint.
    for version in range(3):
        store.delete(commit_path(version))
    assert found(store) == []


@pytest.mark.parametrize("change", ["more", "fewer", "metadata", "protocol"])
def test_a_checkpoint_that_says_otherwise(store: Store, change: str) -> None:
    state = state_of(store, 3)
    other = {
        "more": replace(state_of(store, 4), segment=state.segment),
        "fewer": replace(state, files=state.files.slice(1)),
        "metadata": replace(state, metadata=make_metadata(properties={"a": "b"})),
        "protocol": replace(state, protocol=Protocol(min_reader_version=1, min_writer_version=3)),
    }[change]
    write_checkpoint(store, other, NOW)
    (finding,) = check_log(store)
    assert (finding.level, finding.check, finding.path) == ("error", "checkpoint", checkpoint_paths(3)[0])
    said = {
        "more": "lists 1 files that the commits do not lead to: f4",
        "fewer": "lacks 1 files that the commits lead to: f0",
        "metadata": "describes the table otherwise",
        "protocol": "has another protocol",
    }[change]
    assert said in finding.message


@pytest.mark.parametrize(
    ("actions", "level"),
    [
        ([add("f1"), add("f2")], None),
        ([add("f1"), add("f2"), remove("f7")], "error"),
        ([add("f1")], "error"),
        ([add("f1"), add("f2"), Txn(app_id="a", version=2)], "error"),
        ([add("f1"), add("f2"), make_metadata(properties={"a": "b"})], "error"),
        ([add("f1"), remove("f1"), add("f2")], "warning"),
    ],
)
def test_a_compaction_that_says_otherwise(store: Store, actions: list[Action], level: str | None) -> None:
    store.put(compacted_path(1, 2), format_actions(actions))
    assert found(store) == ([] if level is None else [(level, "compaction", compacted_path(1, 2))])


def test_a_compaction_may_lack_removes(store: Store) -> None:
    """Some writers leave out those that have expired; readers reckon with it."""
    store.put(compacted_path(3, 4), format_actions([add("f3"), add("f4")]))
    assert found(store) == []


def test_checksums_of_hadoop(tmp_path: Path) -> None:
    store = fill(LocalStore(str(tmp_path)))
    data = store.get(commit_path(0))
    pieces = [data[start : start + 512] for start in range(0, len(data), 512)]
    sums = b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
    folder = tmp_path / "_delta_log"
    (folder / f".{0:020}.json.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)
    (folder / ".gone.json.crc").write_bytes(b"crc\0")
    assert found(store) == []
    (folder / f".{1:020}.json.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)
    assert found(store) == [("error", "checksum", commit_path(1))]


def test_what_spark_does_without_is_no_error(tmp_path: Path) -> None:
    """As deltalake leaves the hint's, which it replaces: delta-spark 4.4 reads the table all the same."""
    store = fill(LocalStore(str(tmp_path)))
    write_checkpoint(store, state_of(store), NOW)
    store.put(checksum_path(4), b"{}")
    folder = tmp_path / "_delta_log"
    for name in ("_last_checkpoint", f"{4:020}.crc"):
        (folder / f".{name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + bytes(4))
    path = [finding.path for finding in check_log(store) if finding.check == "checksum"]
    assert sorted(map(str, path)) == [checksum_path(4), LAST_CHECKPOINT_PATH]
    assert {finding.level for finding in check_log(store)} == {"warning"}


def test_vectors_in_the_log_itself() -> None:
    """As older versions of Alluvium wrote them."""
    store = MemoryStore(uuid.uuid4().hex, "table")
    data = (1_681_511_377).to_bytes(4, "little") + BitMap64([1]).serialize()
    vector = DeletionVector(
        storage_type="i", path_or_inline_dv=format_z85(data), size_in_bytes=len(data), cardinality=1
    )
    features = ("deletionVectors",)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features)
    masked = Add(
        path="f", partition_values={}, size=5, modification_time=1, data_change=True, stats='{"numRecords":4}',
        deletion_vector=vector,
    )  # fmt: skip
    store.put(commit_path(0), format_actions([protocol, make_metadata(), masked]))
    (finding,) = check_deletion_vectors(load_snapshot(store))
    assert (finding.level, finding.check, finding.path) == ("warning", "deletion-vectors", "f")
    assert "VACUUM" in finding.message
