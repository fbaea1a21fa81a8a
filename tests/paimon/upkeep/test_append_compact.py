"""Which files of append tables are small enough, and enough, to be written anew: the rules of `AppendCompactCoordinator`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from pyroaring import BitMap64

from alluvium.errors import UnsupportedFeature
from alluvium.expr import tree
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.upkeep.append_compact import choose_small_files, ensure_append_compactable
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope
from alluvium.schema import types as t
from alluvium.storage.open import open_store


def made(path: Path, files: dict[str, int], **options: str) -> Snapshot:
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"], options=options)
    for day, count in files.items():
        for number in range(count):
            append(open_target(store), [{"k": number, "day": day}, {"k": number + 100, "day": day}])
    return load_snapshot(store)


def chosen(snapshot: Snapshot, where: tree.Expression | None = None) -> int:
    return choose_small_files(snapshot, where).num_rows


def test_five_small_files_of_a_partition_are_enough(tmp_path: Path) -> None:
    snapshot = made(tmp_path, {"a": 5, "b": 4})
    assert chosen(snapshot) == 5
    is_b = tree.Compare("=", tree.Column(("day",), t.STRING), tree.Literal("b", t.STRING))
    assert chosen(snapshot, is_b) == 0
    is_one = tree.Compare("=", tree.Column(("k",), t.INTEGER), tree.Literal(1, t.INTEGER))
    with pytest.raises(UnsupportedFeature) as undecided:
        chosen(snapshot, is_one)
    assert undecided.value.code == "replace-where-data"


def test_a_task_is_full_with_two_target_sizes(tmp_path: Path) -> None:
    # Beside what a file counts for, its size is nothing: five of them are twice the target, and four are not.
    options = {"target-file-size": "1 mb", "source.split.open-file-cost": "410 kb"}
    assert chosen(made(tmp_path, {"a": 9}, **options)) == 5


def test_files_that_are_not_small_stay(tmp_path: Path) -> None:
    assert chosen(made(tmp_path, {"a": 6}, **{"target-file-size": "100 b"})) == 0


def test_of_a_file_much_may_be_deleted(tmp_path: Path) -> None:
    snapshot = made(tmp_path, {"a": 1}, **{"deletion-vectors.enabled": "true"})
    assert chosen(snapshot) == 0
    target = open_target(snapshot.store)
    path = "day=a/bucket-0/" + snapshot.entries["file_name"][0].as_py()
    touched = pa.table([[path], pa.array([BitMap64([0]).serialize()], pa.binary())], schema=TOUCHED_FILES)
    target.commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))
    assert chosen(load_snapshot(snapshot.store)) == 1


def test_what_is_not_compacted(tmp_path: Path) -> None:
    tracked = {"row-tracking.enabled": "true"}
    ensure_append_compactable(made(tmp_path / "r", {}, **tracked))
    ensure_append_compactable(made(tmp_path / "e", {}, **tracked, **{"data-evolution.enabled": "true"}))
    with pytest.raises(UnsupportedFeature) as refused:
        ensure_append_compactable(made(tmp_path / "b", {}, **{"bucket": "2", "bucket-key": "k"}))
    assert refused.value.code == "unsupported-compaction"
