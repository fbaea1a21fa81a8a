"""Rows that go of files of every kind, beside a plain loop over sets of rows; and what of them is told in figures."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_metadata
from pyroaring import BitMap64

from alluvium.delta.features.rows.deletion_vectors import load_vectors, parse_descriptors, vectors_of
from alluvium.delta.log.names import commit_path
from alluvium.delta.rows.row_edits import EditedFiles, edit_files, live_counts
from alluvium.delta.rows.vector_files import vector_column, write_vectors
from alluvium.delta.terms.actions import format_file_actions
from alluvium.delta.terms.spec import FILES, Protocol, format_actions
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CorruptTable, NotFound
from alluvium.plan.changes import TOUCHED_FILES, EditFigures
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.open import open_store

PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)
ROWS = 20


def table(root: Path, vectors: list[set[int]], told: Sequence[int | None]) -> Snapshot:
    """Files of twenty rows, each third one elsewhere; some of whose rows are deleted, and what the log says of them."""
    store = open_store(str(root / "t"))
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(range(ROWS), pa.int64())}), sink)
    rows = []
    masked = [n for n, deleted in enumerate(vectors) if deleted]
    made, _ = write_vectors(store, [(BitMap64(vectors[n]).serialize(), len(vectors[n])) for n in masked])
    descriptors = dict(zip(masked, vector_column(made).to_pylist(), strict=True))
    for n in range(len(vectors)):
        place = root / ("far" if n % 3 == 2 else "t") / f"f {n}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(sink.getvalue())
        stats = (
            None
            if told[n] is None
            else json.dumps({"numRecords": told[n], "minValues": {"id": n}, "tightBounds": True})
        )
        rows.append({
            "path": f"file:{root}/far/f%20{n}" if n % 3 == 2 else f"f%20{n}", "size": 100 + n, "modificationTime": 1, "dataChange": True,
            "partitionValues": [], "stats": stats, "deletionVector": descriptors.get(n), "baseRowId": n * 1000,
        })  # fmt: skip
    files = pa.Table.from_pylist(rows, schema=FILES)
    head = format_actions([PROTOCOL, make_metadata(Struct((Field("id", LONG),)))])
    store.put(commit_path(0), head + b"".join(line + b"\n" for line in format_file_actions("add", files)))
    return load_snapshot(store)


def edited(snapshot: Snapshot, goes: dict[int, set[int] | None]) -> EditedFiles:
    paths = data_paths(snapshot.files).to_pylist()
    rows = [
        {"path": paths[n], "mask": None if mask is None else BitMap64(mask).serialize()} for n, mask in goes.items()
    ]
    return edit_files(snapshot, pa.Table.from_pylist(rows, schema=TOUCHED_FILES))


def number(row: dict[str, Any]) -> int:
    return int(row["path"].rpartition("%20")[2])


@pytest.mark.parametrize("seed", range(15))
def test_rows_that_go(tmp_path: Path, seed: int) -> None:
    lot = random.Random(seed)
    before = [set(lot.sample(range(ROWS), lot.choice([0, 0, 3, 10]))) for _ in range(6)]
    # Statistics may say more rows than there are, or fewer; of a file that goes as a whole they are not believed.
    told = [lot.choice([ROWS, ROWS + 1, 15 if max({0} | gone) < 15 else ROWS]) for gone in before]
    snapshot = table(tmp_path, before, told)
    goes: dict[int, set[int] | None] = {}
    for n in lot.sample(range(6), lot.choice([1, 3, 6])):
        kind = lot.choice(["whole", "some", "rest"])
        goes[n] = (
            None
            if kind == "whole"
            else set(range(ROWS)) - before[n]
            if kind == "rest"
            else set(lot.sample(range(ROWS), 4))
        )
    found = edited(snapshot, goes)
    assert found.removed.schema == found.masked.schema == FILES
    live = {number(row): row for row in snapshot.files.to_pylist()}
    assert [number(row) for row in found.removed.to_pylist()] == list(goes)
    assert all(row == live[number(row)] for row in found.removed.to_pylist())
    merged = {n: before[n] | mask for n, mask in goes.items() if mask is not None}
    # Files that would go as a whole, or lose rows that they are said not to have, are asked themselves.
    rows = {
        n: told[n] if max(len(gone), max(gone) + 1) <= told[n] and len(gone) < told[n] else ROWS
        for n, gone in merged.items()
    }
    after = {n: gone for n, gone in merged.items() if len(gone) < rows[n]}
    assert [number(row) for row in found.masked.to_pylist()] == list(after)
    vectors = load_vectors(parse_descriptors(vectors_of(found.masked)), snapshot.store, open_store)
    assert [set(BitMap64.deserialize(one)) for one in vectors] == list(after.values())
    for row in found.masked.to_pylist():
        n, stats = number(row), json.loads(row["stats"])
        assert stats == {"numRecords": rows[n], "minValues": {"id": n}, "tightBounds": False}
        kept = ("path", "size", "baseRowId", "modificationTime", "partitionValues")
        assert all(row[name] == live[n][name] for name in kept) and row["dataChange"] is True
        assert row["deletionVector"]["cardinality"] == len(after[n])
    gone = [n for n in goes if n not in after]
    assert (found.vectors_path is None) == (not after) and found.updated == sum(bool(before[n]) for n in after)
    added = snapshot.files.slice(0, 2)
    assert found.figures(added, 7) == EditFigures(
        files_added=2, bytes_added=201, files_removed=len(gone), bytes_removed=sum(100 + n for n in gone), masks_added=len(after),
        bytes_masked=sum(100 + n for n in after), masks_updated=found.updated,
        masks_removed=found.updated + sum(bool(before[n]) for n in gone), change_files=7,
    )  # fmt: skip


def test_nothing_is_written_where_files_go_as_a_whole(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [{1}, set(), set()], [ROWS, None, None])
    there = {info.path for info in snapshot.store.list_tree("")}
    found = edited(snapshot, {0: None, 2: None})
    assert found.masked.num_rows == 0 and (found.updated, found.vectors_path) == (0, None)
    assert found.figures(FILES.empty_table(), 0) == EditFigures(files_removed=2, bytes_removed=202, masks_removed=1)
    assert {info.path for info in snapshot.store.list_tree("")} == there
    nothing = edited(snapshot, {})
    assert (nothing.removed.num_rows, nothing.masked.num_rows) == (0, 0)
    assert nothing.figures(FILES.empty_table(), 0) == EditFigures()


@pytest.mark.parametrize("n", [0, 2], ids=["inside", "elsewhere"])
@pytest.mark.parametrize("told", [ROWS, ROWS - 3, ROWS + 5])
def test_rows_beyond_a_file_are_of_another_one(tmp_path: Path, n: int, told: int) -> None:
    snapshot = table(tmp_path, [set()] * 3, [told] * 3)
    if told > ROWS:
        # Nobody looks, as long as the statistics allow it and some rows are left.
        assert edited(snapshot, {n: {ROWS}}).masked.num_rows == 1
        return
    with pytest.raises(CorruptTable) as caught:
        edited(snapshot, {1: {0}, n: {ROWS}})
    assert caught.value.code == "damaged-file" and f"the {ROWS} of the file" in str(caught.value)
    assert caught.value.path == data_paths(snapshot.files)[n].as_py()


def test_files_that_do_not_say_how_many_rows_they_have(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [set(), {1, 2}, set()], [ROWS, ROWS, None])
    assert live_counts(snapshot, snapshot.files).to_pylist() == [ROWS, ROWS - 2, None]
    assert live_counts(snapshot, snapshot.files.slice(1)).to_pylist() == [ROWS - 2, None]
    with pytest.raises(CorruptTable) as caught:
        edited(snapshot, {0: {1}, 2: {1}})
    assert (caught.value.code, caught.value.path) == ("no-num-records", snapshot.files["path"][2].as_py())
    assert edited(snapshot, {2: None}).removed.num_rows == 1


@pytest.mark.parametrize("told", [ROWS, ROWS - 3])
def test_files_are_opened_only_where_statistics_do_not_suffice(tmp_path: Path, told: int) -> None:
    snapshot = table(tmp_path, [set(), {0, 1}, set()], [told] * 3)
    for n in range(3):
        (tmp_path / ("far" if n == 2 else "t") / f"f {n}").unlink()
    last = told - 1
    for n in range(3):
        assert edited(snapshot, {n: {last}}).masked.num_rows == 1
        for goes in ({last, told}, set(range(told))):
            with pytest.raises(NotFound):
                edited(snapshot, {n: goes})
