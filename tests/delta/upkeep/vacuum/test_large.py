"""VACUUM of tables whose files are not held at once takes what VACUUM takes that holds them."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from large_logs import in_small_pieces, load_unread
from plain_writer import commit_rows, open_target
from vacuumed_tables import NOW, age, backdate_tombstones, files_of, litter, live, mask_first_file, newest

from alluvium.codecs.text_hashes import text_hashes
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.upkeep.vacuum import vacuum as vacuums
from alluvium.delta.upkeep.vacuum import versions
from alluvium.delta.upkeep.vacuum.large import LiveFiles, named_among
from alluvium.delta.upkeep.vacuum.vacuum import Vacuumed, VacuumPreview, VacuumRequest, vacuum
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import LISTED, Store

WEEK = VacuumRequest()
LITE = VacuumRequest(retention_ms=0, checks=False, lite=True)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch)
    monkeypatch.setattr(versions, "_RUN", 2)


def previewed(store: Store, request: VacuumRequest, unread: bool) -> tuple[object, ...]:
    RECENT.clear()
    snapshot = load_unread(store) if unread else load_snapshot(store)
    found = vacuum(snapshot, request, dry_run=True)
    assert isinstance(found, VacuumPreview)
    assert snapshot.is_unread == unread, "no list of all files was needed"
    rows = sorted((row["path"], row["size"]) for row in found.files.to_pylist())
    return rows, found.directories, found.lost_versions, found.lost_times_ms


def random_table(root: Path, seed: int) -> Store:
    """Files of two partitions that come and go, with vectors, of several ages; and what nobody knows between them."""
    rng = random.Random(seed)
    store = open_store(str(root))
    commit_rows(open_target(store, partitioned=True), [0], "a")
    for n in range(1, 9):
        p, verb = rng.choice("ab"), rng.random()
        if verb < 0.2:
            mask_first_file(store)
        elif verb < 0.4:
            commit_rows(open_target(store), [n], p, replace=Replace())
        else:
            commit_rows(open_target(store), [n], p)
        if rng.random() < 0.3:
            age(root, rng.choice([3, 10, 30]))
        if n in (4, 6):
            write_checkpoint_at(newest(store))
    if rng.random() < 0.3:
        backdate_tombstones(store)
    if rng.random() < 0.5:
        age(root, rng.choice([3, 10, 30]))
    names = [path.rpartition("/")[2] for path in files_of(root)]
    litter(root, "old.parquet", "p=a/x.parquet", "p=c/d/y.parquet", f"p=b/copy/{rng.choice(names)}", "_hidden/z")
    litter(root, "inner/_delta_log/00000000000000000000.json", "inner/f.parquet", "_change_data/c.parquet")
    litter(root, "young.parquet", days=0.1)
    for folder in ("empty/inside", "p=d", "_skipped"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    # The clock of a file system goes by ticks of some milliseconds.
    time.sleep(0.02)
    return store


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("request_", [WEEK, NOW, LITE], ids=["week", "now", "lite"])
def test_the_same_files_go(tmp_path: Path, seed: int, request_: VacuumRequest) -> None:
    store = random_table(tmp_path / "t", seed)
    assert previewed(store, request_, True) == previewed(store, request_, False)
    shutil.copytree(tmp_path / "t", tmp_path / "u", symlinks=True)
    other = open_store(str(tmp_path / "u"))
    RECENT.clear()
    one, two = vacuum(load_snapshot(store), request_), vacuum(load_unread(other), request_)
    assert isinstance(one, Vacuumed) and one == two
    assert files_of(tmp_path / "t") == files_of(tmp_path / "u")
    assert sorted(os.listdir(tmp_path / "t")) == sorted(os.listdir(tmp_path / "u"))
    assert live(other) <= files_of(tmp_path / "u")


def test_an_inventory(tmp_path: Path) -> None:
    store = random_table(tmp_path, 3)
    rows = [
        {"path": f"{tmp_path}/{path}", "length": 1, "isDir": False, "modificationTime": 1}
        for path in files_of(tmp_path)
    ]
    request = VacuumRequest(retention_ms=0, checks=False, inventory=pa.Table.from_pylist(rows))
    assert previewed(store, request, True) == previewed(store, request, False)


def two_files(root: Path) -> tuple[Store, list[str]]:
    """A table of two files, each in a folder of its own, and their paths."""
    store = open_store(str(root))
    commit_rows(open_target(store, partitioned=True), [0], "a")
    commit_rows(open_target(store), [1], "b")
    write_checkpoint_at(newest(store))
    return store, sorted(live(store))


def test_files_that_the_log_calls_by_another_path_stay(tmp_path: Path) -> None:
    """A folder may be a link to where they are listed: then they go by their names."""
    store, (path, _) = two_files(tmp_path / "t")
    folder = path.partition("/")[0]
    (tmp_path / "t" / folder).rename(tmp_path / "t" / "real")
    os.symlink("real", tmp_path / "t" / folder)
    litter(tmp_path / "t", "real/litter.parquet")
    age(tmp_path / "t", 30)
    found = previewed(store, WEEK, True)
    assert found == previewed(store, WEEK, False)
    assert found[0] == [("real/litter.parquet", (tmp_path / "t" / "real/litter.parquet").stat().st_size)]


def test_a_name_that_is_live_in_another_folder_keeps_no_file(tmp_path: Path) -> None:
    """Files that were listed by their paths do not go by their names."""
    store, (path, _) = two_files(tmp_path)
    other = f"copy/{path.rpartition('/')[2]}"
    litter(tmp_path, other)
    age(tmp_path, 30)
    found = previewed(store, WEEK, True)
    assert found == previewed(store, WEEK, False)
    assert found[0] == [(other, (tmp_path / other).stat().st_size)]


@pytest.mark.parametrize("moment", ["listed", "planned"])
def test_who_restores_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """What a commit brings back while VACUUM looks around is not taken."""
    store = open_store(str(tmp_path))
    for n in range(4):
        commit_rows(open_target(store), [n], replace=Replace() if n else None)
    write_checkpoint_at(newest(store))
    age(tmp_path, 30)
    backdate_tombstones(store)
    before = live(store)
    snapshot = load_unread(store)

    def bring_back() -> None:
        restore(load_snapshot(store), load_snapshot(store, 1), {"version": 1}, "us")

    if moment == "listed":
        whole = vacuums._list

        def listing(*arguments: object) -> pa.Table:
            found = whole(*arguments)  # type: ignore[arg-type]
            bring_back()
            return found

        monkeypatch.setattr(vacuums, "_list", listing)
    else:
        told = vacuums._Run._tell

        def tell(run: object, found: Snapshot, operation: object) -> int:
            if "START" in str(operation):
                bring_back()
            return told(run, newest(store), operation)  # type: ignore[arg-type]

        monkeypatch.setattr(vacuums._Run, "_tell", tell)
    vacuum(snapshot, WEEK)
    RECENT.clear()
    assert live(store) != before and live(store) <= files_of(tmp_path)


def test_of_a_listing_what_may_go_is_kept_and_one_of_each_folder(tmp_path: Path) -> None:
    store, paths = two_files(tmp_path)
    snapshot = load_unread(store)
    files = LiveFiles.of(snapshot)
    hashed = text_hashes(pa.array([*paths, "x/1", "x/2"]))
    assert files.hashes.tolist() == sorted(hashed.tolist()[:2])
    more = LiveFiles(np.sort(hashed), np.zeros(4, np.bool_))
    rows = [(path, 1, 1, False) for path in (*paths, "x/0", "x/1", "x/2", "top")] + [("x", 0, 0, True)]
    batch = pa.RecordBatch.from_pylist([dict(zip(LISTED.names, row, strict=True)) for row in rows], schema=LISTED)
    assert more.left_out(batch)["path"].to_pylist() == [*paths, "x/0", "x/1", "top", "x"]
    assert more.have_listed(pa.array([*paths, "x/1", "x/2", "x/0", "never"])).to_pylist() == [True] * 4 + [False] * 2
    assert files.have_listed(pa.array(paths)).to_pylist() == [False, False]
    assert sorted(named_among(snapshot, pa.array(["x", *paths]))) == paths


def test_no_live_files_at_all() -> None:
    none = LiveFiles(np.zeros(0, np.int64), np.zeros(0, np.bool_))
    assert none.have_listed(pa.array(["a"])).to_pylist() == [False]
