"""Snapshots whose checkpoint is left unread: whatever is asked of them is what is asked of the same version read whole."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_metadata, make_stats
from large_logs import in_small_pieces, listed, load_unread
from plain_writer import SCHEMA, commit_rows

import alluvium
from alluvium.api.delta import snapshots as doors
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.description.create import new_config
from alluvium.delta.log import state as states
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log.large.pieces import Pieces
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.log.state import MAX_CHECKPOINT_BYTES
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.terms.spec import Add, DeletionVector, Protocol, Remove, format_actions
from alluvium.delta.view import snapshot as snapshots
from alluvium.delta.view.answers import count_from_log
from alluvium.delta.view.scan import decided_files, plan_scan, select_files, whole_files
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot, refresh
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore

PROTOCOL = Protocol(
    min_reader_version=3, min_writer_version=7,
    reader_features=("deletionVectors",), writer_features=("deletionVectors",),
)  # fmt: skip
WHERE = (None, "id = 5", "id >= 7", "p = 'a'", "p = 'b' AND id < 4", "p = 'nowhere'", "id IS NULL")


def add(path: str, low: int, p: str, vector: DeletionVector | None = None) -> Add:
    return Add(
        path=path, partition_values={"p": p}, size=low + 1, modification_time=1, data_change=True,
        stats=make_stats(low, low + 1), deletion_vector=vector,
    )  # fmt: skip


def remove(path: str) -> Remove:
    return Remove(path=path, deletion_timestamp=10, data_change=True)


def commit(store: MemoryStore, version: int, *actions: Add | Remove) -> None:
    head = [PROTOCOL, make_metadata(partition_by=["p"])] if version == 0 else []
    store.put(commit_path(version), format_actions([*head, *actions]))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """Ten files, two of them removed since the checkpoint, one described anew, one new, and one with a vector."""
    in_small_pieces(monkeypatch)
    made = MemoryStore(uuid.uuid4().hex, "t")
    vector = DeletionVector(
        storage_type="i", path_or_inline_dv="^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", size_in_bytes=44,
        cardinality=1,
    )  # fmt: skip
    commit(made, 0, *(add(f"f{n}", n, "ab"[n % 2]) for n in range(9)), add("masked", 9, "b", vector))
    write_checkpoint(made, load_snapshot(made).state, CheckpointOptions(0, 1 << 50, max_actions=3))
    commit(made, 1, remove("f3"), add("f4", 40, "a"))
    commit(made, 2, remove("f8"), add("new", 5, "b"))
    RECENT.clear()
    yield made
    RECENT.clear()


@pytest.mark.parametrize("where", WHERE, ids=str)
def test_what_is_asked_of_a_version(store: MemoryStore, where: str | None) -> None:
    predicate = None if where is None else parse_predicate(where, SCHEMA)
    whole, late = load_snapshot(store), load_unread(store)
    one, other = select_files(whole, predicate), select_files(late, predicate)
    assert listed(one.files) == listed(other.files) and one.skipped == other.skipped
    certain = dict(zip(one.files["path"].to_pylist(), one.certain.to_pylist(), strict=True))
    assert dict(zip(other.files["path"].to_pylist(), other.certain.to_pylist(), strict=True)) == certain
    assert late.is_unread == (predicate is not None), "with a predicate nobody needs all of them"
    plans = [plan_scan(snapshot, predicate) for snapshot in (whole, load_unread(store))]
    kept = [sorted(path for part in plan.parts for path in part.files["path"].to_pylist()) for plan in plans]
    assert kept[0] == kept[1]
    late = load_unread(store)
    one, other = count_from_log(whole, predicate), count_from_log(late, predicate)
    assert (one.rows, one.decided, listed(one.undecided)) == (other.rows, other.decided, listed(other.undecided))
    assert late.is_unread


def test_all_files_when_somebody_needs_them(store: MemoryStore) -> None:
    whole, late = load_snapshot(store), load_unread(store)
    assert late.files is late.files and not late.is_unread
    assert listed(late.files) == listed(whole.files) and listed(late.tombstones) == listed(whole.tombstones)
    assert late.statistics(late.files) is late.statistics(late.files)
    assert select_files(late, parse_predicate("id = 5", SCHEMA)).files["path"].to_pylist() == ["f5", "new"]
    # What one reader needed of a table that is too large stays with him.
    assert load_unread(store).is_unread


def test_pieces_of_all_kinds(store: MemoryStore) -> None:
    late = load_unread(store)
    seen = late.map_files(lambda files: files["path"].to_pylist())
    assert len(seen) > 4 and sorted(chain.from_iterable(seen)) == sorted(load_snapshot(store).files["path"].to_pylist())
    gone = late.map_tombstones(lambda gone: gone["path"].to_pylist())
    assert sorted(chain.from_iterable(gone)) == ["f3", "f8"]
    picked = late.pick_files(lambda files: files.slice(0, 1))
    assert picked.schema.names == load_snapshot(store).files.schema.names and picked.num_rows == len(seen)
    assert late.pick_files(lambda files: files.slice(0, 0)).num_rows == 0
    assert late.is_unread


def test_a_refresh_reads_what_came_since(store: MemoryStore) -> None:
    late = load_unread(store)
    commit(store, 3, remove("f0"), remove("new"), add("f3", 3, "b"))
    newer = refresh(late)
    assert newer.version == 3 and newer.is_unread
    assert listed(newer.files) == listed(load_snapshot(store).files)
    assert sorted(newer.tombstones["path"].to_pylist()) == ["f0", "f8", "new"]


def settled(files: pa.Table) -> list[dict[str, object]]:
    """Files as a checkpoint has them, and commits do not."""
    return [{**row, "dataChange": False} for row in listed(files)]


@pytest.mark.parametrize("broken", [b"not parquet at all", None], ids=str)
def test_a_checkpoint_that_breaks_meanwhile(store: MemoryStore, broken: bytes | None) -> None:
    """The commits lead to the version, too."""
    expected = settled(load_snapshot(store).files)
    predicate = parse_predicate("id >= 7", SCHEMA)
    kept = settled(select_files(load_snapshot(store), predicate).files)
    late = load_unread(store)
    path = list_log(store).checkpoints[0][1].path
    if broken is None:
        store.delete(path)
    else:
        store.put(path, broken)
    with pytest.warns(UserWarning, match="was read without"):
        assert settled(select_files(late, predicate).files) == kept
    assert settled(late.files) == expected
    last = write_checkpoint_at(late)
    assert (last.version, last.num_of_add_files) == (2, 9)
    assert settled(load_snapshot(store).files) == expected


def test_a_file_that_the_checkpoint_lists_twice_is_read_once(store: MemoryStore) -> None:
    """As where the checkpoint is read as a whole; nothing is certain of a selection in which one is twice."""
    part = list_log(store).checkpoints[0]
    store.put(part[0].path, store.get(part[1].path))
    whole = load_snapshot(store)
    for where in ("id >= 0", "p = 'a'", "p = 'b'"):
        late, predicate = load_unread(store), parse_predicate(where, SCHEMA)
        found, expected = select_files(late, predicate), select_files(whole, predicate)
        assert listed(found.files) == listed(expected.files)
        assert len(found.certain) == found.files.num_rows
    assert listed(load_unread(store).files) == listed(whole.files)
    late = load_unread(store)
    assert late.count_files() == whole.files.num_rows
    for where in (None, "p = 'a'"):
        asked = None if where is None else parse_predicate(where, SCHEMA)
        found, counted = count_from_log(load_unread(store), asked), count_from_log(whole, asked)
        assert (found.rows, found.decided) == (counted.rows, counted.decided)
    last = write_checkpoint_at(load_unread(store))
    assert last.num_of_add_files == whole.files.num_rows
    assert settled(load_snapshot(store).files) == settled(whole.files)


@pytest.mark.parametrize("how", [{}, {"max_actions": 3}, {"v2": True, "max_actions": 3}], ids=str)
def test_what_counts_as_large(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]) -> None:
    """Bytes, or actions: some writers need but a few bytes for each."""
    assert (MAX_CHECKPOINT_BYTES, MAX_CHECKPOINT_BYTES // states.ACTION_BYTES) == (512 << 20, 2_999_278)
    write_checkpoint(store, load_snapshot(store).state, CheckpointOptions(0, 1 << 50, **how))
    listing = list_log(store).checkpoints[2]
    files = [*listing, *store.list_from("_delta_log/_sidecars")]
    total = sum(info.size for info in files)
    rows = sum(pq.read_metadata(store.open_input(info.path)).num_rows for info in files)

    def is_unread(limit: int) -> bool:
        RECENT.clear()
        return load_snapshot(store, max_checkpoint_bytes=limit).is_unread

    assert [is_unread(limit) for limit in (total - 1, total)] == [True, False]
    monkeypatch.setattr(states, "ACTION_BYTES", total)
    assert [is_unread(limit) for limit in (rows * total - 1, rows * total)] == [True, False]


def test_another_table_takes_its_place_while_it_is_read(tmp_path: Path) -> None:
    table = Appends(tmp_path)
    for n in range(1, 5):
        table.append(table.unread(), n)
    held, seen = table.unread(), []

    def see(files: pa.Table) -> pa.Table:
        if not seen:
            shutil.rmtree(tmp_path)
            other = Appends(tmp_path)
            for n in range(1, 5):
                other.append(other.unread(), 100 + n, 200 + n)
        seen.append(files)
        return files

    with pytest.raises(NotFound, match="another stands in its place"):
        held.map_files(see)
    assert seen


def test_another_table_took_its_place(tmp_path: Path) -> None:
    """What is held of the first is not mixed with what lies there now."""
    table = Appends(tmp_path)
    for n in range(1, 5):
        table.append(table.unread(), n)
    held, again = table.unread(), table.unread()
    shutil.rmtree(tmp_path)
    other = Appends(tmp_path)
    for n in range(1, 5):
        other.append(other.unread(), 100 + n, 200 + n)
    where = parse_predicate("id > 100", SCHEMA)
    for ask in (lambda: held.files, lambda: count_from_log(held, None), lambda: select_files(again, where)):
        with pytest.raises(NotFound, match="another stands in its place") as raised:
            ask()
        assert raised.value.code == "missing-version"
    assert other.unread().files.num_rows == 5


class Appends:
    """A table on disk, a checkpoint at each third version."""

    def __init__(self, root: Path, **properties: str) -> None:
        self.store = LocalStore(str(root))
        config = new_config(SCHEMA, [], {"delta.checkpointInterval": "3", **properties})
        commit_rows(DeltaTarget(self.store, config, None), [0])

    def unread(self) -> Snapshot:
        RECENT.clear()
        return load_snapshot(self.store, max_checkpoint_bytes=0)

    def append(self, base: Snapshot, *ids: int, replace: Replace | None = None) -> None:
        commit_rows(DeltaTarget(self.store, base.config, base), list(ids), replace=replace)


def test_appends_need_no_list_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do the checkpoints that are their turn; others append in between."""
    table = Appends(tmp_path)
    for n in range(1, 5):
        table.append(table.unread(), n)

    def refuse(snapshot: Snapshot) -> None:
        raise AssertionError("all files are read")

    base = table.unread()
    assert base.is_unread
    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "whole", property(refuse))
        patch.setattr(Pieces, "map_files", lambda *arguments: refuse(base))
        for n in range(5, 12):
            commit_rows(DeltaTarget(table.store, base.config, load_snapshot(table.store, max_checkpoint_bytes=0)), [n])
        table.append(base, 12)
    assert list(list_log(table.store).checkpoints) == [3, 6, 9, 12]
    RECENT.clear()
    assert load_snapshot(table.store).files.num_rows == 13
    assert load_snapshot(table.store, 9).files.num_rows == 10


def test_who_replaces_needs_them(tmp_path: Path) -> None:
    table = Appends(tmp_path)
    for n in range(1, 5):
        table.append(table.unread(), n)
    late = table.unread()
    table.append(table.unread(), 5, replace=Replace())
    assert load_snapshot(table.store).files.num_rows == 1
    with pytest.raises(CommitConflict) as raised:
        table.append(late, 6, replace=Replace())
    assert raised.value.code == "concurrent-append"
    RECENT.clear()
    assert load_snapshot(table.store).files.num_rows == 1


def test_ids_of_rows_go_on(tmp_path: Path) -> None:
    """ "Writers must set the `baseRowId` field to a value that is higher than the row id high water mark." """
    table = Appends(tmp_path, **{"delta.enableRowTracking": "true"})
    for n in range(1, 9):
        table.append(table.unread(), *range(n))
    RECENT.clear()
    files = load_snapshot(table.store).files
    numbers = sorted(files["baseRowId"].to_pylist())
    assert numbers == [0, *(1 + n * (n - 1) // 2 for n in range(1, 9))]
    assert files.filter(pa.compute.is_null(files["defaultRowCommitVersion"])).num_rows == 0


@pytest.mark.parametrize(
    "where", ["p = 'a'", "p = 'b'", "p = 'nowhere'", "id = 5", "p = 'a' AND id > 3", None], ids=str
)
def test_what_goes_as_a_whole(store: MemoryStore, where: str | None) -> None:
    predicate = None if where is None else parse_predicate(where, SCHEMA)
    whole, late = whole_files(load_snapshot(store), predicate), load_unread(store)
    found = decided_files(late, predicate)
    assert late.is_unread == (predicate is not None)
    if whole.undecided.num_rows:
        assert found is None and decided_files(load_snapshot(store), predicate) is None
    else:
        assert found is not None and listed(found) == listed(whole.every)
        again = decided_files(load_snapshot(store), predicate)
        assert again is not None and listed(again) == listed(whole.every)
    assert load_unread(store).count_files() == load_snapshot(store).files.num_rows == 9


def test_rows_are_changed_without_a_list_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DELETE, UPDATE and MERGE that meet some files, and an overwrite of one partition."""
    url = str(tmp_path)
    for n in range(6):
        rows = pa.table({"id": pa.array([n, n + 10], pa.int64()), "p": ["ab"[n % 2]] * 2})
        alluvium.write(rows, url, mode="append", partition_by="p")
    write_checkpoint_at(load_snapshot(LocalStore(url)))

    def refuse(snapshot: Snapshot) -> None:
        raise AssertionError("all files are read")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots.load_snapshot, "__defaults__", (None, None, "UTC", 0))
        patch.setattr(doors, "MAX_CHECKPOINT_BYTES", 0)
        patch.setattr(doors.open_snapshot, "__defaults__", (None, None, "UTC", open_store, 0))
        patch.setattr(Snapshot, "whole", property(refuse))
        RECENT.clear()
        table = PortableDeltaTable.forPath(url)
        table.delete("id = 3")
        table.delete("p = 'b' AND id = 11")
        table.update("id = 2", {"id": "22"})
        source = pa.table({"id": pa.array([4, 40], pa.int64()), "p": ["a", "c"]})
        merge = table.merge(source, "t.id = s.id")
        merge.whenMatchedUpdate(set={"id": "s.id + 100"}).whenNotMatchedInsertAll().execute()
        alluvium.write(pa.table({"id": pa.array([7], pa.int64()), "p": ["c"]}), url, mode="overwrite",
                       replaceWhere="p = 'c'")  # fmt: skip
    RECENT.clear()
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == [0, 1, 5, 7, 10, 12, 13, 14, 15, 22, 104]
