"""Snapshots are not read anew while their log is the same."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_metadata

from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.spec import Add, format_actions
from alluvium.delta.view import recent
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot, refresh
from alluvium.errors import NotFound
from alluvium.storage.stores.local import LocalStore

LONG_AGO_S = 1_000_000_000


class CountingStore(LocalStore):
    """Notes which objects are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.reads: list[str] = []

    def get(self, path: str) -> bytes:
        if "_last_checkpoint" not in path:
            self.reads.append(path)
        return super().get(path)

    def open_input(self, path: str) -> pa.NativeFile:
        self.reads.append(path)
        return super().open_input(path)


class Table:
    """A table whose log entries are as old as a test wants."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = CountingStore(root)

    def commit(self, version: int, path: str, age_s: float | None = 0) -> None:
        head = [LEGACY, make_metadata()] if version == 0 else []
        add = Add(path=path, partition_values={}, size=5, modification_time=1, data_change=True)
        self.store.put(commit_path(version), format_actions([*head, add]))
        self.date(commit_path(version), LONG_AGO_S + version if age_s == 0 else age_s)

    def date(self, path: str, seconds: float | None) -> None:
        if seconds is not None:
            os.utime(self.root / path, (seconds, seconds))

    def load(self, version: int | None = None, **arguments: str) -> tuple[Snapshot, list[str]]:
        """The snapshot, and what was read for it."""
        self.store.reads.clear()
        snapshot = load_snapshot(self.store, version, **arguments)
        return snapshot, list(self.store.reads)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    RECENT.clear()
    made = Table(tmp_path / "t")
    made.commit(0, "a")
    made.commit(1, "b")
    return made


def paths(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.files.column("path").to_pylist())


def test_the_same_log_is_read_once(table: Table) -> None:
    first, reads = table.load()
    assert reads == [commit_path(0), commit_path(1)]
    again, reads = table.load()
    assert reads == []
    assert again.files is first.files
    assert again.statistics(again.files) is first.statistics(first.files)


def test_of_a_longer_log_only_what_is_new_is_read(table: Table) -> None:
    table.load()
    table.commit(2, "c")
    snapshot, reads = table.load()
    assert (snapshot.version, paths(snapshot), reads) == (2, ["a", "b", "c"], [commit_path(2)])
    assert [info.path for info in snapshot.state.segment.commits] == [commit_path(n) for n in range(3)]
    assert table.load()[1] == []


def test_versions_are_kept_apart(table: Table) -> None:
    table.load()
    old, reads = table.load(0)
    assert (paths(old), reads) == (["a"], [commit_path(0)])
    assert table.load(0)[1] == table.load()[1] == []
    assert paths(table.load()[0]) == ["a", "b"]


def test_a_time_zone_is_another_question(table: Table) -> None:
    table.load()
    snapshot, reads = table.load(time_zone="Europe/Prague")
    assert (snapshot.time_zone, len(reads)) == ("Europe/Prague", 2)


@pytest.mark.parametrize("changed", [{"path": "bb"}, {"age_s": LONG_AGO_S + 5}])
def test_another_log_at_the_same_place(table: Table, changed: dict[str, object]) -> None:
    """Another size, or another time, is another file: so of a table that was dropped and made anew."""
    table.load()
    shutil.rmtree(table.root)
    table.commit(0, "x")
    table.commit(1, **{"path": "y", **changed})
    snapshot, reads = table.load()
    assert paths(snapshot) == sorted(["x", str(changed.get("path", "y"))])
    assert len(reads) == 2


def test_a_log_whose_times_were_preserved(table: Table) -> None:
    """Names, sizes and times of all files are those of before, as after `cp -a`: the files are others."""
    table.load()
    shutil.rmtree(table.root)
    table.commit(0, "x")
    table.commit(1, "y")
    snapshot, reads = table.load()
    assert (paths(snapshot), len(reads)) == (["x", "y"], 2)


def test_a_disk_with_coarse_times(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not tell files apart, so that what changed a moment ago is read again."""
    now_s = time.time()
    monkeypatch.setattr(table.store, "list_from", lambda *a: [
        replace(info, identity="", modified_ms=int(now_s * 1000) - 500) for info in LocalStore.list_from(table.store, *a)
    ])  # fmt: skip
    assert [len(table.load()[1]) for _ in range(2)] == [2, 2]
    monkeypatch.undo()
    assert [len(table.load()[1]) for _ in range(2)] == [2, 0]


def test_a_refresh_does_not_mix_two_tables(table: Table) -> None:
    snapshot, _ = table.load()
    shutil.rmtree(table.root)
    for version, path in enumerate("xyz"):
        table.commit(version, path)
    assert paths(refresh(snapshot)) == ["x", "y", "z"]
    shutil.rmtree(table.root)
    table.commit(0, "v")
    assert (refresh(snapshot).version, paths(refresh(snapshot))) == (0, ["v"])
    shutil.rmtree(table.root)
    with pytest.raises(NotFound) as caught:
        refresh(snapshot)
    assert caught.value.code == "not-a-table"


def test_files_of_this_very_moment_are_read_again(table: Table) -> None:
    """Whoever replaces one now could do so within the same tick of the clock that their times are counted by."""
    soon = time.time() + 60
    table.commit(1, "b", age_s=soon)
    assert len(table.load()[1]) == 2
    assert len(table.load()[1]) == 2


def test_a_new_checkpoint_is_another_log(table: Table) -> None:
    snapshot, _ = table.load()
    write_checkpoint(table.store, snapshot.state, CheckpointOptions(0, 0))
    for path in (table.root / "_delta_log").glob("*checkpoint*"):
        table.date(str(path.relative_to(table.root)), LONG_AGO_S + 9)
    again, reads = table.load()
    assert (paths(again), len(reads)) == (["a", "b"], 2)
    assert table.load()[1] == []


def test_a_damaged_checkpoint_is_told_each_time(table: Table) -> None:
    snapshot, _ = table.load()
    write_checkpoint(table.store, snapshot.state, CheckpointOptions(0, 0))
    path = next(p for p in (table.root / "_delta_log").glob("*.checkpoint.parquet"))
    path.write_bytes(b"PAR1 no PAR1")
    table.date(str(path.relative_to(table.root)), LONG_AGO_S + 9)
    for _ in range(2):
        with pytest.warns(UserWarning, match="the checkpoint is damaged"):
            assert paths(table.load()[0]) == ["a", "b"]


def test_a_copy_with_other_files_has_its_own_statistics(table: Table) -> None:
    """Copies of a snapshot share what was found out about it, as long as it is about the same files."""
    snapshot, _ = table.load()
    assert snapshot.statistics(snapshot.files).num_files == 2
    fewer = replace(snapshot, state=replace(snapshot.state, files=snapshot.files.slice(1)))
    assert fewer.statistics(fewer.files).num_files == 1
    assert [plan_scan(s).parts[0].files.num_rows for s in (snapshot, fewer, snapshot)] == [2, 1, 2]


def test_memory_has_a_bound(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_SNAPSHOTS", 2)
    for version in (0, 1, None):
        table.load(version)
    assert [len(table.load(version)[1]) for version in (1, None, 0)] == [0, 0, 1]
    monkeypatch.setattr(recent, "MAX_BYTES", 10)
    RECENT.clear()
    assert [len(table.load()[1]) for _ in range(2)] == [2, 2]


def test_what_nobody_asks_for_is_let_go(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.load(0)
    monkeypatch.setattr(recent, "MAX_IDLE_S", -1.0)
    table.load()
    monkeypatch.undo()
    assert len(table.load(0)[1]) == 1
