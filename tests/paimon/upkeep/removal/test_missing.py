"""Files that somebody has deleted from under a table: what is left of it can be read, and nothing else goes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.api.paimon.life.procedures import run_procedure
from alluvium.errors import AlluviumError, CommitConflict, StorageError, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.upkeep.removal.missing import remove_missing_files
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store

VECTORS = {"deletion-vectors.enabled": "true"}


def make(path: Path, keys: tuple[str, ...] = (), **options: str) -> PaimonTable:
    table = PaimonTable.create(
        str(path / "t"), pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"], keys, options
    )
    for day, first in (("a", 0), ("b", 10), ("a", 20)):
        append(open_target(open_store(table.url)), [{"k": first + k, "day": day} for k in range(3)])
    return table


def ks(table: PaimonTable) -> list[int]:
    return sorted(alluvium.open(table.url).to_arrow()["k"].to_pylist())


def lose(table: PaimonTable, version: int) -> str:
    """Deletes the file that a snapshot has added."""
    before = alluvium.open(table.url, version=version - 1).files()["path"].to_pylist() if version > 1 else []
    (path,) = set(alluvium.open(table.url, version=version).files()["path"].to_pylist()) - set(before)
    open_store(table.url).delete(path)
    return str(path)


@pytest.mark.parametrize("keys", [(), ("k", "day")])
def test_what_is_left_is_read(tmp_path: Path, keys: tuple[str, ...]) -> None:
    table = make(tmp_path, keys, **{"bucket": "1"} if keys else {})
    assert table.remove_unexisting_files().paths == () and load_snapshot(open_store(table.url)).version == 3
    lost = lose(table, 2)
    with pytest.raises(AlluviumError):
        ks(table)
    told = table.remove_unexisting_files(dry_run=True)
    assert (told.paths, told.rows, told.version) == ((lost,), 3, None)
    assert load_snapshot(open_store(table.url)).version == 3
    done = run_procedure("remove_unexisting_files", table.url, {}, {})
    assert done == [{"fileName": lost}]
    assert ks(table) == [0, 1, 2, 20, 21, 22]
    document = load_snapshot(open_store(table.url)).document
    assert document is not None
    assert (document.commit_kind, document.total_record_count, document.delta_record_count) == ("OVERWRITE", 6, -3)
    assert table.remove_unexisting_files().version is None and load_snapshot(open_store(table.url)).version == 4


def test_vectors_of_files_that_are_gone_go_and_no_others(tmp_path: Path) -> None:
    table = make(tmp_path, **VECTORS)
    store = open_store(table.url)
    paths = alluvium.open(table.url).files()["path"].to_pylist()
    masks = [BitMap64([1]).serialize()] * 3
    touched = pa.table([pa.array(paths), pa.array(masks, pa.binary())], schema=TOUCHED_FILES)
    open_target(store).commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))
    assert ks(table) == [0, 2, 10, 12, 20, 22]
    lose(table, 1)
    assert table.remove_unexisting_files().version == 5
    assert ks(table) == [10, 12, 20, 22]


def beside(table: PaimonTable, place: Path) -> list[Path]:
    """Has the files of the newest state lie elsewhere, as `data-file.external-paths` does it; where they are."""
    store = open_store(table.url)
    snapshot = load_snapshot(store)
    entries = removed_entries(snapshot, Replaced())
    paths = data_paths(entries, partitions_of(entries, snapshot.schema), snapshot.schema).to_pylist()
    place.mkdir(parents=True)
    moved = [place / f"moved-{path.rpartition('/')[2]}" for path in paths]
    for path, new in zip(paths, moved, strict=True):
        new.write_bytes(store.get(path))
    for name, values in (("file_name", [m.name for m in moved]), ("external_path", [m.as_uri() for m in moved])):
        at = entries.schema.get_field_index(name)
        entries = entries.set_column(at, entries.schema.field(at), pa.array(values))
    publish(store, Draft(snapshot.schema, entries, Replaced(), reads=True), snapshot, DEFAULT_RETRY)
    return moved


def test_files_elsewhere_are_asked_for_where_they_are(tmp_path: Path) -> None:
    table = make(tmp_path)
    moved = beside(table, tmp_path / "elsewhere")
    assert ks(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert table.remove_unexisting_files().paths == ()
    moved[1].unlink()
    done = table.remove_unexisting_files()
    assert [path.rpartition("/")[2] for path in done.paths] == [moved[1].name] and len(ks(table)) == 6


def test_files_of_a_place_that_is_not_there_are_not_gone(tmp_path: Path) -> None:
    """A disk that is not mounted has no files, and will have them again."""
    table, place = make(tmp_path), tmp_path / "disk/of/its/own"
    beside(table, place)
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    for dry_run in (True, False):
        with pytest.raises(StorageError, match="mounted"):
            table.remove_unexisting_files(dry_run)
    (tmp_path / "unmounted").rename(tmp_path / "disk")
    assert len(ks(table)) == 9


def test_a_file_that_cannot_be_asked_for_is_not_gone(tmp_path: Path) -> None:
    table = make(tmp_path)
    lose(table, 1)
    snapshot = load_snapshot(FaultyStore(open_store(table.url), Fault(2, verb="head", path="bucket-0")))
    with pytest.raises(StorageError):
        remove_missing_files(snapshot)
    assert load_snapshot(open_store(table.url)).version == 3


def test_whoever_writes_meanwhile(tmp_path: Path) -> None:
    """Rows that come meanwhile stay; a file that somebody else takes out is not taken out again."""
    table = make(tmp_path)
    lose(table, 1)
    early, late = (load_snapshot(open_store(table.url)) for _ in range(2))
    append(open_target(open_store(table.url)), [{"k": 99, "day": "a"}])
    assert remove_missing_files(early).version == 5
    assert ks(table) == [10, 11, 12, 20, 21, 22, 99]
    with pytest.raises(CommitConflict):
        remove_missing_files(late)


def test_columns_without_their_rows_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path, **{"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    lose(table, 1)
    assert table.remove_unexisting_files(dry_run=True).rows == 3
    with pytest.raises(UnsupportedFeature):
        table.remove_unexisting_files()


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    assert table.remove_unexisting_files().paths == ()
