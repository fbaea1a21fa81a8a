"""What a committer leaves beside its commits: when, of which kind, and what of the past it forgets."""

from __future__ import annotations

import json
import os
import time
import uuid
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from delta_values import make_config
from plain_writer import SCHEMA, commit_rows, open_target

from alluvium.commit.loop import Entry
from alluvium.delta.description.create import new_config
from alluvium.delta.log.names import checkpoint_paths, checksum_path, commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.log_upkeep import checkpoints
from alluvium.delta.log_upkeep.checkpoints import (
    is_checkpoint_due,
    keep_up,
    refresh_to,
    write_checkpoint_at,
    write_checksum,
)
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def table(commits: int, **properties: str) -> MemoryStore:
    """A table each of whose commits replaces the file of the one before, under a transaction of its own."""
    store = MemoryStore(uuid.uuid4().hex, "t")
    named = {name.replace("__", "."): value for name, value in properties.items()}
    for n in range(commits):
        if n:
            target = open_target(store)
        else:
            target = DeltaTarget(store, new_config(SCHEMA, [], {"delta.checkpointInterval": "1000", **named}), None)
        commit_rows(target, [n], replace=Replace() if n else None, txn=(f"app{n}", n))
    return store


def test_whose_turn_it_is() -> None:
    for interval in (1, 3, 10):
        config = make_config(properties={} if interval == 10 else {"delta.checkpointInterval": str(interval)})
        assert [v for v in range(31) if is_checkpoint_due(v, config)] == list(range(0, 31, interval))


def test_checkpoints_come_at_their_turn_and_checksums_each_time() -> None:
    store = table(8, delta__checkpointInterval="3")
    assert list(list_log(store).checkpoints) == [3, 6] and list(list_log(store).checksums) == list(range(8))
    pointer = json.loads(store.get("_delta_log/_last_checkpoint"))
    assert (pointer["version"], pointer["numOfAddFiles"]) == (6, 1)


def test_a_checksum_is_never_written_over() -> None:
    store = table(2)
    base = load_snapshot(store, 0)
    entry = Entry(1, commit_path(1), store.get(commit_path(1)))
    written = store.get(checksum_path(1))
    store.delete(checksum_path(1))
    write_checksum(store, entry, base)
    assert json.loads(store.get(checksum_path(1))) == json.loads(written)
    store.put(checksum_path(1), b"theirs")
    write_checksum(store, entry, base)
    assert store.get(checksum_path(1)) == b"theirs"
    # Of a commit that creates the table nothing came before; of others the figures cannot be told without it.
    for version, is_written in ((0, True), (1, False)):
        store.delete(checksum_path(version))
        write_checksum(store, Entry(version, commit_path(version), store.get(commit_path(version))), None)
        assert (version in list_log(store).checksums) == is_written


def test_what_goes_wrong_behind_a_commit_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    store = table(2, delta__checkpointInterval="1")
    base = load_snapshot(store, 0)
    entry = Entry(1, commit_path(1), store.get(commit_path(1)))

    def fail(*arguments: object) -> None:
        raise OSError("no room")

    for name, left in (("write_checksum", "checksum"), ("write_checkpoint_at", "checkpoint")):
        with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            patch.setattr(checkpoints, name, fail)
            keep_up(store, entry, base)
        (found,) = [str(one.message) for one in caught]
        assert f"version 1 of {store.url}" in found and left in found and "no room" in found


def test_a_snapshot_of_exactly_one_version() -> None:
    store = table(2)
    base = load_snapshot(store)
    commit_rows(open_target(store), [7])
    commit_rows(open_target(store), [8])
    assert [refresh_to(base, version).version for version in (3, 2, 1)] == [3, 2, 1]


@pytest.mark.parametrize("interval", [1, 2])
def test_every_tenth_checkpoint_of_the_second_kind_has_a_name_that_all_clients_know(
    interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "writers should occasionally create a v2 Classic Checkpoint to maintain compatibility with older clients" """
    assert checkpoints._CLASSIC_NAME_EVERY == 10
    monkeypatch.setattr(checkpoints, "_CLASSIC_NAME_EVERY", 3)
    store = table(1, delta__checkpointPolicy="v2", delta__checkpointInterval=str(interval))
    for _ in range(3 * interval + 1):
        commit_rows(open_target(store), [1], replace=Replace())
    found = list_log(store).checkpoints
    assert [v for v in found if found[v][0].path == checkpoint_paths(v)[0]] == [3 * interval]
    assert list(found) == list(range(interval, 3 * interval + 2, interval))


@pytest.mark.parametrize("properties", [{}, {"delta__checkpointPolicy": "v2"}], ids=["classic", "v2"])
def test_the_kind_of_a_checkpoint_is_the_tables(properties: dict[str, str]) -> None:
    store = table(3, **properties)
    last = write_checkpoint_at(load_snapshot(store))
    assert (last.version, last.num_of_add_files, last.parts) == (2, 1, None)
    sidecars = [info.path for info in store.list_tree("_delta_log/_sidecars")]
    assert len(sidecars) == (1 if properties else 0)


def rows(store: MemoryStore, version: int, kind: str) -> list[dict[str, object]]:
    found = pq.read_table(store.open_input(checkpoint_paths(version)[0]))[kind].to_pylist()
    return [row for row in found if row is not None]


@pytest.mark.parametrize("kept", ["interval 0 seconds", "interval 1 week"])
def test_what_a_checkpoint_forgets(kept: str) -> None:
    is_kept = "week" in kept
    properties = {"delta__deletedFileRetentionDuration": kept, "delta__setTransactionRetentionDuration": kept}
    store = table(4, **properties)
    # A moment later than all that it forgets.
    last_ms = load_snapshot(store).timestamp_ms
    while last_ms >= int(time.time() * 1000):
        time.sleep(0.001)
    commit_rows(open_target(store), [9])
    write_checkpoint_at(load_snapshot(store))
    assert len(rows(store, 4, "remove")) == (3 if is_kept else 0)
    assert len(rows(store, 4, "txn")) == (4 if is_kept else 0)
    assert len(rows(store, 4, "add")) == 2


def test_the_columns_of_files_are_those_that_the_table_wants() -> None:
    struct = {"delta__checkpoint__writeStatsAsStruct": "true", "delta__checkpoint__writeStatsAsJson": "false"}
    for properties, has_text in (({}, True), (struct, False)):
        store = table(2, **properties)
        write_checkpoint_at(load_snapshot(store))
        (row,) = rows(store, 1, "add")
        assert ("stats" in row, "stats_parsed" in row) == (has_text, not has_text)


@pytest.mark.parametrize("cleans", [True, False])
def test_a_checkpoint_takes_expired_entries_along_where_the_table_lets_it(tmp_path: Path, cleans: bool) -> None:
    properties = {"delta.checkpointInterval": "3", "delta.enableExpiredLogCleanup": str(cleans).lower()}
    store = open_store(str(tmp_path))
    commit_rows(DeltaTarget(store, new_config(SCHEMA, [], properties), None), [0])
    commit_rows(open_target(store), [1])
    write_checkpoint_at(load_snapshot(store))
    for version in range(2):
        then = time.time() - 60 * 86_400
        os.utime(tmp_path / commit_path(version), (then, then))
    RECENT.clear()
    commit_rows(open_target(store), [2])
    # Two is no turn of a checkpoint.
    assert list(list_log(store).commits) == [0, 1, 2]
    commit_rows(open_target(store), [3])
    assert list(list_log(store).commits) == ([1, 2, 3] if cleans else [0, 1, 2, 3])
    assert list(list_log(store).checkpoints) == [1, 3] and load_snapshot(store).files.num_rows == 4
