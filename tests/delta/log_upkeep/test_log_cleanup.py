"""Specification: "Metadata Cleanup", "Checkpoint Protection"."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import LEGACY, make_metadata
from plain_writer import commit_rows, open_target

from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import SIDECAR_DIRECTORY, checksum_path, commit_path, compacted_path
from alluvium.delta.log.segment import Listing, list_log
from alluvium.delta.log_upkeep.log_cleanup import clean_up_log, cutoff_checkpoint
from alluvium.delta.terms.spec import Add, Protocol, format_actions
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.errors import CorruptTable
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import ObjectInfo, Store
from alluvium.storage.stores.local import LocalStore

DAY = 86_400_000
#: Noon of a day long after the first commit. Version n was committed at noon of day n.
NOW = 100 * DAY + DAY // 2
PROTECTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("checkpointProtection",))
V2 = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=("v2Checkpoint",), writer_features=("v2Checkpoint",)
)


class Table:
    """A table of five versions, whose log keeps ten days."""

    def __init__(self, root: Path, protocol: Protocol = LEGACY, **properties: str) -> None:
        self.root = root
        self.store: Store = open_store(str(root))
        configuration = {"delta.logRetentionDuration": "interval 10 days", **properties}
        for version in range(5):
            head = [protocol, make_metadata(properties=configuration)] if version == 0 else []
            add = Add(path=f"f{version}", partition_values={}, size=5, modification_time=1, data_change=True)
            self.store.put(commit_path(version), format_actions([*head, add]))
            self.date(commit_path(version), version)

    def date(self, path: str, day: float) -> None:
        seconds = (day * DAY + DAY // 2) / 1000
        os.utime(self.root / path, (seconds, seconds))

    def checkpoint(self, version: int, v2: bool = False, day: float = 0) -> None:
        before = set(self.paths())
        write_checkpoint(self.store, load_snapshot(self.store, version).state, CheckpointOptions(0, 0, v2=v2))
        for path in set(self.paths()) - before:
            self.date(path, day)

    def paths(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in (self.root / "_delta_log").rglob("*") if path.is_file()}

    def commits(self) -> set[int]:
        return {version for version in range(5) if commit_path(version) in self.paths()}

    def clean_up(self, today: int = 12, **arguments: bool):
        """At noon of a day."""
        return clean_up_log(load_snapshot(self.store), today * DAY + DAY // 2, **arguments)


def test_what_a_checkpoint_stands_for_goes(tmp_path: Path) -> None:
    """ "Delete all delta log entries, checkpoint files, and version checksum files before the `cutOffCheckpoint`
    checkpoint. Also delete all the log compaction files having startVersion <= `cutOffCheckpoint`'s version." """
    table = Table(tmp_path)
    table.checkpoint(1)
    table.checkpoint(2)
    table.checkpoint(4)
    for path in (checksum_path(0), checksum_path(2), compacted_path(0, 1), compacted_path(2, 3), compacted_path(3, 4)):
        table.store.put(path, b"{}")
    before = load_snapshot(table.store).files
    # Midnight of the third day: the commits 0 to 2 are older, the newest of them is the cut-off.
    cleanup = table.clean_up(today=13)
    assert cleanup.first_version == 2
    assert table.commits() == {2, 3, 4}
    left = {
        path.rpartition("/")[2] for path in table.paths() if "checkpoint." in path or "crc" in path or "comp" in path
    }
    assert left == {
        f"{2:020d}.checkpoint.parquet", f"{4:020d}.checkpoint.parquet", f"{2:020d}.crc",
        f"{3:020d}.{4:020d}.compacted.json",
    }  # fmt: skip
    assert load_snapshot(table.store).files.equals(before)
    assert load_snapshot(table.store, 2).files.num_rows == 3


@pytest.mark.parametrize(
    ("today", "expected"), [(12, {1, 2, 3, 4}), (13, {1, 2, 3, 4}), (11, {1, 2, 3, 4}), (10, None)]
)
def test_the_cut_off_is_midnight(tmp_path: Path, today: int, expected: set[int] | None) -> None:
    """ "Let's refer to midnight UTC of that day as `cutOffTimestamp`"; "If no `cutOffCheckpoint` can be found, do not
    proceed with metadata cleanup" """
    table = Table(tmp_path)
    table.checkpoint(1)
    cleanup = table.clean_up(today=today)
    if today in (12, 13):
        assert table.commits() == expected
    else:
        # On the eleventh, commit 1 of noon of the first day is newer than its midnight.
        assert (cleanup.first_version, cleanup.paths, table.commits()) == (None, (), {0, 1, 2, 3, 4})


def test_a_commit_is_old_only_if_all_before_it_are(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.checkpoint(3)
    table.date(commit_path(1), 50)
    assert table.clean_up(today=20).first_version is None


def test_a_dry_run_deletes_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.checkpoint(2)
    before = table.paths()
    planned = table.clean_up(dry_run=True, today=20)
    assert planned.paths == (commit_path(0), commit_path(1))
    assert table.paths() == before
    assert table.clean_up(today=20) == planned


def test_sidecars_that_nothing_names(tmp_path: Path) -> None:
    """ "preserve files that are less than a day old (as of midnight UTC), to not break in-progress checkpoints. Also
    preserve the referenced sidecar files" """
    table = Table(tmp_path, V2)
    table.checkpoint(1, v2=True)
    table.checkpoint(2, v2=True)
    for name, day in (("old", 1), ("young", 19)):
        table.store.put(f"{SIDECAR_DIRECTORY}/{name}.parquet", b"")
        table.date(f"{SIDECAR_DIRECTORY}/{name}.parquet", day)
    cleanup = table.clean_up(today=20)
    sidecars = {path for path in table.paths() if path.startswith(SIDECAR_DIRECTORY)}
    assert len(sidecars) == 2
    assert f"{SIDECAR_DIRECTORY}/young.parquet" in sidecars
    assert cleanup.first_version == 2
    assert load_snapshot(table.store, 2).files.num_rows == 3


@pytest.mark.parametrize("damage", ["checkpoint", "sidecar"])
def test_nothing_goes_where_its_checkpoint_is_damaged(tmp_path: Path, damage: str) -> None:
    """ "Metadata cleanup MUST provide a checkpoint for the oldest kept table version" """
    table = Table(tmp_path, V2)
    table.checkpoint(2, v2=damage == "sidecar")
    snapshot = load_snapshot(table.store)
    for path in table.paths():
        if path.startswith(SIDECAR_DIRECTORY):
            table.store.delete(path)
        elif "checkpoint." in path:
            if damage == "checkpoint":
                table.store.put(path, b"PAR1xPAR1")
            table.date(path, 0)
    before = table.paths()
    with pytest.raises(CorruptTable):
        clean_up_log(snapshot, NOW)
    assert table.paths() == before


class CountingStore(LocalStore):
    """Notes which objects are read, and which directories listed."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.requests: list[str] = []

    def get(self, path: str) -> bytes:
        self.requests.append(path)
        return super().get(path)

    def open_input(self, path: str) -> pa.NativeFile:
        self.requests.append(path)
        return super().open_input(path)

    def head(self, path: str) -> ObjectInfo:
        self.requests.append(path)
        return super().head(path)

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        self.requests.append(directory)
        return super().list_from(directory, start)


def requests_of(table: Table, today: int = 20) -> list[str]:
    """What a clean-up asks of the store, with the parts of paths that do not change left out."""
    store = CountingStore(table.root)
    snapshot = dataclasses.replace(load_snapshot(table.store), store=store)
    clean_up_log(snapshot, today * DAY + DAY // 2)
    return [path.removeprefix("_delta_log/").lstrip("0") for path in store.requests]


FIRST = ".json"
LISTINGS = [FIRST, "_delta_log", "_sidecars"]


def test_where_nothing_has_expired_nothing_is_read(tmp_path: Path) -> None:
    """A clean-up runs after every checkpoint: read all checkpoints each time, and a table of many is slow to write."""
    table = Table(tmp_path, V2)
    for version in (2, 3, 4):
        table.checkpoint(version, v2=True, day=5)
    assert table.clean_up(today=13).first_version == 2
    assert requests_of(table, today=13) == LISTINGS


def test_a_young_log_is_not_even_listed(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.checkpoint(4)
    assert requests_of(table, today=10) == [FIRST]
    # Files whose times were changed are as old as they say.
    for version in range(5):
        table.date(commit_path(version), -1)
    assert requests_of(table, today=10)[:4] == [FIRST, "4.json", *LISTINGS[1:]]
    assert table.commits() == {4}


def test_a_log_that_is_clean_is_not_asked_for_its_times(tmp_path: Path) -> None:
    """What has expired begins with the checkpoint that stands for what went: each checkpoint would list all of it."""
    table = Table(tmp_path)
    for version in (1, 3):
        table.checkpoint(version)
    assert requests_of(table, today=12)[:4] == [FIRST, "1.json", *LISTINGS[1:]] and table.commits() == {1, 2, 3, 4}
    # The next checkpoint is of noon of the third day, and has not expired yet.
    assert requests_of(table, today=13) == [FIRST, "3.json"] and table.commits() == {1, 2, 3, 4}
    table.date(commit_path(3), 2)
    assert requests_of(table, today=13)[:3] == [FIRST, "3.json", "_delta_log"] and table.commits() == {3, 4}
    assert table.clean_up(today=99).paths == () and table.commits() == {3, 4}


def test_only_the_checkpoint_that_stands_for_the_deleted_is_read(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for version in (1, 2, 3, 4):
        table.checkpoint(version)
    assert requests_of(table, today=13) == [FIRST, "1.json", *LISTINGS[1:], "2.checkpoint.parquet"]
    assert table.commits() == {2, 3, 4}


def test_all_parts_of_the_checkpoint_are_read(tmp_path: Path) -> None:
    table = Table(tmp_path)
    options = CheckpointOptions(0, 0, max_actions=2)
    write_checkpoint(table.store, load_snapshot(table.store, 2).state, options)
    first, second = sorted(path for path in table.paths() if "checkpoint." in path)
    assert (table.root / first).stat().st_size and (table.root / second).stat().st_size
    snapshot = load_snapshot(table.store)
    whole = table.store.get(second)
    table.store.put(second, whole[:-20])
    with pytest.raises(CorruptTable):
        clean_up_log(snapshot, NOW)
    assert table.commits() == {0, 1, 2, 3, 4}
    table.store.put(second, whole)
    assert len(requests_of(table)) == len([FIRST, "2.json", *LISTINGS[1:]]) + 2
    assert table.commits() == {2, 3, 4}


def test_all_checkpoints_are_read_where_old_sidecars_may_go(tmp_path: Path) -> None:
    """ "read all the available checkpoints in the _delta_log directory and identify the corresponding sidecar files" """
    table = Table(tmp_path, V2)
    table.checkpoint(2, v2=True)
    table.checkpoint(4, v2=True)
    table.clean_up(today=13)
    before = {path for path in table.paths() if path.startswith(SIDECAR_DIRECTORY)}
    assert len(before) == 2
    requests = requests_of(table, today=13)
    # Its own sidecar is known to be needed, the other old one is named by the later checkpoint.
    assert requests[:3] == LISTINGS
    assert [path.partition(".")[0] for path in requests[3:]] == ["2", "4"]
    assert {path for path in table.paths() if path.startswith(SIDECAR_DIRECTORY)} == before


@pytest.mark.parametrize(("before_version", "expected"), [("0", 2), ("2", 2), ("3", None)])
def test_protected_checkpoints_go_all_at_once(tmp_path: Path, before_version: str, expected: int | None) -> None:
    """ "writers to clean up metadata iff metadata can be cleaned up to the `requireCheckpointProtectionBeforeVersion`
    table property in one go" """
    table = Table(tmp_path, PROTECTED, **{"delta.requireCheckpointProtectionBeforeVersion": before_version})
    table.checkpoint(2)
    assert table.clean_up(today=20).first_version == expected


def _listing(commits: dict[int, int], checkpoints: set[int]) -> Listing:
    infos = {version: ObjectInfo(commit_path(version), 1, day * DAY) for version, day in commits.items()}
    return Listing(infos, {version: (ObjectInfo(f"{version}", 1, 0),) for version in sorted(checkpoints)})


@pytest.mark.parametrize(
    ("commits", "checkpoints", "expected"),
    [
        ({0: 0, 1: 1, 2: 2, 3: 9}, {1, 2}, 2),
        ({0: 0, 1: 1, 2: 9, 3: 9}, {1, 2}, 1),
        # The commit of the checkpoint is gone: the log would begin without it.
        ({0: 0, 1: 1, 3: 3, 4: 9}, {2}, None),
        ({2: 0, 3: 1, 4: 9}, {1}, None),
        ({1: 0, 2: 1, 3: 9}, {1}, 1),
        # A commit counts as old only if all before it are.
        ({0: 0, 1: 9, 2: 2, 3: 3}, {2}, None),
        ({0: 0, 1: 9, 2: 2, 3: 3}, {0, 2}, 0),
        ({0: 5, 1: 6}, {1}, None),
        ({}, {1}, None),
    ],
)
def test_which_checkpoint_the_log_begins_with(
    commits: dict[int, int], checkpoints: set[int], expected: int | None
) -> None:
    """ "We need to preserve the `cutOffCheckpoint` (both the checkpoint file and the JSON commit file at that version)" """
    assert cutoff_checkpoint(_listing(commits, checkpoints), 5 * DAY - 1) == expected


def test_a_machine_whose_clock_is_ahead_forgets_and_deletes_nothing(tmp_path, monkeypatch):
    store = open_store(tmp_path / "t")
    for n in range(10):
        commit_rows(open_target(store), [n], replace=Replace() if n else None)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 90 * 86_400)
    # The tenth version brings a checkpoint, and a clean-up.
    commit_rows(open_target(store), [10], replace=Replace())
    RECENT.clear()
    assert min(list_log(store).commits) == 0
    (store_path,) = (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet")
    assert sum(row is not None for row in pq.read_table(store_path)["remove"].to_pylist()) == 10


MINUTE = 60_000


@pytest.mark.parametrize(
    ("ago_ms", "first_version"),
    [(0, 2), (1, 2), (MINUTE - 1, 2), (-1, None), (DAY - MINUTE, 2), (DAY - 1, 2), (DAY, 2), (-DAY, None)],
)
def test_a_retention_that_is_said_counts_to_the_minute(tmp_path: Path, ago_ms: int, first_version: int | None) -> None:
    """So long before the moment, of which the seconds are left out, a commit must have been made."""
    table = Table(tmp_path)
    table.checkpoint(2)
    moment = 2 * DAY + DAY // 2
    now_ms = moment + 5 * DAY
    found = clean_up_log(load_snapshot(table.store), now_ms + ago_ms, dry_run=True, retention_ms=5 * DAY)
    assert found.first_version == first_version
    assert found.paths == (() if first_version is None else (commit_path(0), commit_path(1)))


def test_the_oldest_goes_first(tmp_path: Path) -> None:
    """A clean-up that is cut short leaves a log without holes."""
    table = Table(tmp_path, V2)
    for version in (1, 2, 3):
        table.checkpoint(version, v2=True)
    for path in (checksum_path(0), checksum_path(2), compacted_path(0, 1), compacted_path(3, 4), compacted_path(1, 2)):
        table.store.put(path, b"{}")
    paths = table.clean_up(today=20, dry_run=True).paths
    log = [path for path in paths if not path.startswith(SIDECAR_DIRECTORY)]
    versions = [int(path.rpartition("/")[2][:20]) for path in log]
    assert versions == sorted(versions) and set(versions) == {0, 1, 2, 3}
    assert log[:3] == sorted([commit_path(0), checksum_path(0), compacted_path(0, 1)])
    # A compaction that begins with the checkpoint goes, a checksum of it stays; sidecars come last.
    assert compacted_path(3, 4) in log and len([p for p in log if ".checkpoint." in p]) == 2
    assert (
        paths[len(log) :] == tuple(sorted(p for p in paths if p.startswith(SIDECAR_DIRECTORY)))
        and len(paths) == len(log) + 2
    )
