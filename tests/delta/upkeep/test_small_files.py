"""Which partitions auto compaction takes. No file is there: the log alone says all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from made_table import make_table

from alluvium.delta.upkeep import small_files
from alluvium.delta.upkeep.optimize import FileSizes
from alluvium.delta.upkeep.small_files import AutoCompaction, crowded_partitions, remember
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.open import open_store

SCHEMA = Struct((Field("id", LONG), Field("p", LONG), Field("q", STRING)))
WANTED = AutoCompaction(3, FileSizes(min_bytes=10, max_bytes=20))


def add(path: str, size: int = 1, p: str | None = "1", q: str | None = "a") -> dict:
    values = {"p": p, "q": q}
    return {"add": {"path": path, "partitionValues": values, "size": size, "modificationTime": 0, "dataChange": True}}


def snapshot_of(root: Path, *adds: dict, partition_by=("p", "q")) -> Snapshot:
    url = make_table(root / "t", SCHEMA, partition_by=list(partition_by))
    (root / "t" / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, adds)))
    return load_snapshot(open_store(url))


def crowded(snapshot: Snapshot, *written: str, wanted: AutoCompaction = WANTED):
    return crowded_partitions(snapshot, pa.chunked_array([written], pa.string()), wanted)


def test_a_partition_is_looked_at_once_and_then_when_it_has_many_small_files(tmp_path):
    files = [add("x"), add("large", 11), add("y", 10), add("z", 1, None), add("other", 1, "2"), add("o2", 1, "2")]
    snapshot = snapshot_of(tmp_path, *files)
    found = crowded(snapshot, "x", "z")
    assert found is not None
    # Only where the commit wrote; the one with more small files first.
    assert (len(found.keys), set(found.files["path"].to_pylist())) == (2, {"x", "large", "y", "z"})
    same = "(('p <=> cast(1 as bigint)) AND ('q <=> cast(a as string)))"
    null = "(('p <=> cast(null as bigint)) AND ('q <=> cast(a as string)))"
    assert found.shown == (f"({same} OR {null})",)
    remember(snapshot, found)
    assert crowded(snapshot, "x", "z") is None
    assert crowded(snapshot, "large", wanted=AutoCompaction(2, WANTED.sizes)) is not None
    assert crowded(snapshot, "other") is not None
    assert crowded(snapshot, "gone") is None


def test_of_many_partitions_the_fullest_are_taken(tmp_path):
    files = [add("x"), add("y1", 1, "2"), add("y2", 1, "2"), add("z", 1, "3")]
    found = crowded(snapshot_of(tmp_path, *files), "x", "y1", "z", wanted=AutoCompaction(3, WANTED.sizes, 1))
    assert found is not None
    assert found.shown == ("(('p <=> cast(2 as bigint)) AND ('q <=> cast(a as string)))",)


@pytest.mark.parametrize("size", [10, 11])
def test_a_table_without_partitions_is_one(tmp_path, size):
    one = {"path": "x", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    found = crowded(snapshot_of(tmp_path, {"add": one}, partition_by=()), "x")
    # Large files alone are no reason.
    assert (None if found is None else found.shown) == (() if size == 10 else None)


def test_what_was_not_met_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(small_files, "_MOST_REMEMBERED", 2)
    seen = small_files._Seen()
    seen.add([("t", b"1"), ("t", b"2")])
    assert seen.has(("t", b"1"))
    seen.add([("t", b"3")])
    assert [seen.has(("t", key)) for key in (b"1", b"2", b"3")] == [True, False, True]
