"""Bins: what is small, what is packed with what, what stays. No file is there: the log alone says all."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from made_table import make_table

from alluvium.delta.upkeep.optimize import (
    Bins,
    FileSizes,
    compaction_bins,
    ensure_all_rows,
    joined_bins,
    of_partitions,
    order_bins,
    purge_bins,
    rewrite_metrics,
    still_live,
    with_vectors,
)
from alluvium.delta.view.partitions import partition_keys
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CorruptTable
from alluvium.plan.changes import EditFigures
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.open import open_store

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 34}


def add(path: str, size: int, p: str | None = "a", deleted: int = 0, rows: int | None = 100) -> dict:
    stats = None if rows is None else json.dumps({"numRecords": rows})
    one = {
        "path": path,
        "partitionValues": {"p": p},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": stats,
    }
    return {"add": one | ({"deletionVector": {**VECTOR, "cardinality": deleted}} if deleted else {})}


def snapshot_of(root: Path, *adds: dict) -> Snapshot:
    url = make_table(root / "t", SCHEMA, partition_by=["p"])
    (root / "t" / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, adds)))
    return load_snapshot(open_store(url))


def paths_of(bins: Bins) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for path, number in zip(bins.files["path"].to_pylist(), bins.numbers.to_pylist(), strict=True):
        found.setdefault(number, set()).add(path)
    return [found[n] for n in sorted(found)]


def test_small_files_of_a_partition_are_packed_smallest_first(tmp_path):
    snapshot = snapshot_of(
        tmp_path, add("a9", 9), add("a1", 1), add("a5", 5), add("a4", 4), add("b3", 3, "b"), add("b2", 2, "b"), add("n", 1, None),
        add("large", 20),
    )  # fmt: skip
    bins = compaction_bins(snapshot, snapshot.files, FileSizes(min_bytes=10, max_bytes=10))
    # 1 + 4 + 5 fill a bin; 9 would be alone, and so would the one of the partition of null.
    assert paths_of(bins) == [{"a1", "a4", "a5"}, {"b2", "b3"}]
    assert (bins.count, bins.counts) == (2, (1, 1))
    assert paths_of(bins.only(pa.array([1], pa.int64()))) == [{"b2", "b3"}]


def test_a_file_above_the_ratio_is_taken_whatever_its_size_but_not_alone(tmp_path):
    snapshot = snapshot_of(
        tmp_path, add("small", 1), add("spoilt", 50, deleted=6), add("well", 50, deleted=5), add("untold", 50, deleted=9, rows=None),
        add("alone", 50, "b", deleted=90),
    )  # fmt: skip
    bins = compaction_bins(snapshot, snapshot.files, FileSizes(min_bytes=10, max_bytes=100, max_deleted_ratio=0.05))
    assert paths_of(bins) == [{"small", "spoilt"}]
    # A file of just the ratio is left.
    exact = FileSizes(min_bytes=10, max_bytes=200, max_deleted_ratio=0.0625)
    snapshot = snapshot_of(
        tmp_path / "exact", add("x", 1), add("y", 50, deleted=4, rows=64), add("z", 50, deleted=5, rows=64)
    )
    assert paths_of(compaction_bins(snapshot, snapshot.files, exact)) == [{"x", "z"}]


def test_nothing_to_do(tmp_path):
    snapshot = snapshot_of(tmp_path, add("one", 1), add("other", 1, "b"))
    assert compaction_bins(snapshot, snapshot.files, FileSizes()).count == 0
    assert compaction_bins(snapshot, snapshot.files.slice(0, 0), FileSizes()).count == 0
    assert purge_bins(snapshot, with_vectors(snapshot.files), FileSizes()).count == 0


def test_what_is_purged_is_purged_alone_too(tmp_path):
    snapshot = snapshot_of(
        tmp_path, add("a", 5, deleted=1), add("whole", 1), add("b", 6, deleted=1), add("c", 4, "b", deleted=1)
    )
    bins = purge_bins(snapshot, with_vectors(snapshot.files), FileSizes(max_bytes=10))
    assert paths_of(bins) == [{"a"}, {"b"}, {"c"}]


def test_a_partition_is_ordered_as_a_whole_and_cut_by_its_bytes(tmp_path):
    snapshot = snapshot_of(tmp_path, add("x", 15), add("y", 16), add("z", 3, "b"))
    bins = order_bins(snapshot, snapshot.files, FileSizes(max_bytes=10))
    assert (paths_of(bins), bins.counts) == ([{"x", "y"}, {"z"}], (3, 1))


def test_partitions_are_found_again_by_their_keys(tmp_path):
    snapshot = snapshot_of(tmp_path, add("x", 1), add("y", 1, "b"), add("z", 1, None))
    keys = partition_keys(snapshot.files.slice(2), snapshot.config, "UTC")
    assert of_partitions(snapshot, snapshot.files, keys)["path"].to_pylist() == ["z"]


def test_a_file_is_live_still_if_nobody_deleted_rows_of_it(tmp_path):
    before = snapshot_of(tmp_path, add("same", 1), add("masked", 1), add("gone", 1))
    removed = [{"remove": {"path": p, "dataChange": True, "deletionTimestamp": 1}} for p in ("masked", "gone")]
    path = tmp_path / "t" / "_delta_log" / f"{2:020}.json"
    path.write_text("\n".join(map(json.dumps, [*removed, add("masked", 1, deleted=3)])))
    assert still_live(load_snapshot(open_store(str(tmp_path / "t"))), before.files).to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    ("sizes", "quarters"),
    [([], (0, 0, 0, 0, 0)), ([7], (7, 7, 7, 7, 7)), ([3, 1], (1, 1, 3, 3, 3)), ([4, 3, 2, 1], (1, 2, 3, 4, 4))],
)
def test_sizes_are_told_as_the_reference_tells_them(sizes, quarters):
    told = rewrite_metrics(EditFigures(files_added=2, masks_removed=1), pa.chunked_array([sizes], pa.int64()))
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    assert tuple(int(told[name]) for name in names) == quarters
    assert (told["numAddedFiles"], told["numDeletionVectorsRemoved"]) == ("2", "1")


@pytest.mark.parametrize(
    ("written", "rows", "fits"),
    [
        ([0, 1], [190, 100], True),
        ([0, 0, 1, 1], [90, 100, 0, 100], True),
        ([0, 1], [190, 99], False),
        # As many together, but not in each partition.
        ([0, 1], [189, 101], False),
        ([0], [190], False),
        ([None, None], [189, 101], True),
        ([None, 1], [189, 100], False),
    ],
)
def test_new_files_hold_all_rows_that_the_old_ones_tell_of(tmp_path, written, rows, fits):
    snapshot = snapshot_of(
        tmp_path, add("x", 1), add("y", 1, deleted=10), add("z", 1, "b"), add("u", 1, "c", rows=None)
    )
    known = purge_bins(snapshot, snapshot.files.slice(0, 3), FileSizes())
    given = snapshot, known, pa.array(written, pa.int64()), pa.array(rows, pa.int64())
    if fits:
        ensure_all_rows(*given)
    else:
        with pytest.raises(CorruptTable) as raised:
            ensure_all_rows(*given)
        assert raised.value.code == "num-records-differ" and raised.value.path in ("x", "y", "z")
    # Of a file that does not say how many rows it has nothing is asked.
    every = purge_bins(snapshot, snapshot.files, FileSizes())
    ensure_all_rows(snapshot, every, pa.array([0, 1, 2], pa.int64()), pa.array([190, 100, 7], pa.int64()))
    ensure_all_rows(snapshot, every.only(pa.array([2])), pa.array([], pa.int64()), pa.array([], pa.int64()))


def test_bins_of_several_are_numbered_on(tmp_path):
    snapshot = snapshot_of(tmp_path, *(add(f"f{n}", 5, "ab"[n % 2]) for n in range(8)))
    sizes = FileSizes(min_bytes=10, max_bytes=10)
    some = [
        purge_bins(snapshot, snapshot.files.slice(start, count), sizes)
        for start, count in ((0, 4), (4, 1), (5, 0), (5, 3))
    ]
    found = joined_bins([replace(one, counts=tuple(range(n, n + len(one.counts)))) for n, one in enumerate(some)])
    assert found.files["path"].to_pylist() == [path for one in some for path in one.files["path"].to_pylist()]
    expected, counts = [], []
    for n, one in enumerate(some):
        expected += [number + len(counts) for number in one.numbers.to_pylist()]
        counts += range(n, n + len(one.counts))
    assert (found.numbers.to_pylist(), found.counts, found.count) == (expected, tuple(counts), len(counts))


@pytest.mark.parametrize("seed", range(6))
def test_each_bin_is_of_one_partition_and_none_is_too_large(tmp_path, seed):
    lot = random.Random(seed)
    files = [
        add(f"f{n}", lot.randrange(1, 12), lot.choice(["a", "b", None]), lot.choice([0, 4, 60])) for n in range(25)
    ]
    snapshot = snapshot_of(tmp_path, *files)
    known = {one["add"]["path"]: one["add"] for one in files}
    sizes = FileSizes(min_bytes=8, max_bytes=15, max_deleted_ratio=0.05)
    bins = compaction_bins(snapshot, snapshot.files, sizes)
    for paths in paths_of(bins):
        assert len({known[path]["partitionValues"]["p"] for path in paths}) == 1 and len(paths) > 1
        assert sum(known[path]["size"] for path in paths) <= 15
        for path in paths:
            assert known[path]["size"] < 8 or known[path].get("deletionVector", {}).get("cardinality", 0) > 5
    assert bins.counts == (1,) * bins.count and sorted(set(bins.numbers.to_pylist())) == list(range(bins.count))
    ordered = order_bins(snapshot, snapshot.files, FileSizes(max_bytes=10))
    for number, paths in enumerate(paths_of(ordered)):
        assert ordered.counts[number] == max(1, sum(known[path]["size"] for path in paths) // 10)
    assert sum(map(len, paths_of(ordered))) == 25 and ordered.count == 3


def test_all_that_the_history_says_of_files_that_were_written_anew():
    figures = EditFigures(files_added=2, bytes_added=30, files_removed=5, bytes_removed=99, masks_removed=3)
    assert rewrite_metrics(figures, pa.chunked_array([[20], [10]], pa.int64())) == {
        "numRemovedFiles": "5", "numRemovedBytes": "99", "p25FileSize": "10", "numDeletionVectorsRemoved": "3", "minFileSize": "10",
        "p75FileSize": "20", "p50FileSize": "20", "numAddedBytes": "30", "numAddedFiles": "2", "maxFileSize": "20",
    }  # fmt: skip


def test_how_many_rows_are_missing_is_told(tmp_path):
    snapshot = snapshot_of(tmp_path, add("x", 1), add("y", 1, "b", deleted=10))
    bins = purge_bins(snapshot, snapshot.files, FileSizes())
    with pytest.raises(CorruptTable, match="hold 90 rows, and 7 were read") as raised:
        ensure_all_rows(snapshot, bins, pa.array([0, 1], pa.int64()), pa.array([100, 7], pa.int64()))
    assert raised.value.path == "y"
    with pytest.raises(CorruptTable, match="hold 190 rows, and 107 were read"):
        ensure_all_rows(snapshot, bins, pa.array([None, 1], pa.int64()), pa.array([100, 7], pa.int64()))
