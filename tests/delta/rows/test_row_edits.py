"""Commits that change rows of live files: masks that add up, files that go, figures."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.rows.deletion_vectors import load_vectors, parse_descriptors, vectors_of
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, CorruptTable
from alluvium.plan.changes import TOUCHED_FILES, Append, EditFigures, EditRows, NewFiles, Operation, ReadScope
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.open import open_store

ROWS = 1000


@pytest.fixture
def store(tmp_path):
    store = open_store(str(tmp_path / "t"))
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    config = table_config(NewTable(Struct((Field("id", LONG),)), properties=properties))
    written = pa.Table.from_pylist(
        [
            {"path": f"d/{n}.parquet", "size": 100 + n, "modification_time_ms": 5, "num_rows": ROWS, "partition": []}
            for n in range(3)
        ],
        schema=WRITTEN_FILES,
    )
    for n in range(3):
        with pa.BufferOutputStream() as sink:
            pq.write_table(pa.table({"id": range(ROWS)}), sink)
            store.put(f"d/{n}.parquet", sink.getvalue().to_pybytes())
    new = NewFiles(written, tuple(FileFooter(ROWS, {}) for _ in range(3)))
    DeltaTarget(store, config, None).commit(Append(new, Operation("WRITE"), ReadScope.nothing()))
    return store


def edit(store, masks: dict[str, object], snapshot=None) -> tuple[dict[str, str], EditFigures]:
    snapshot = snapshot or load_snapshot(store)
    rows = [
        {"path": path, "mask": None if mask is None else BitMap64(mask).serialize()} for path, mask in masks.items()
    ]
    told: list[EditFigures] = []
    changes = EditRows(
        NewFiles.none(),
        pa.Table.from_pylist(rows, schema=TOUCHED_FILES),
        Operation("DELETE"),
        ReadScope.table(),
        describe=lambda figures: told.append(figures) or {"n": "1"},
    )
    metrics = DeltaTarget(store, snapshot.config, snapshot).commit(changes).metrics
    return dict(metrics), told[0]


def masks_of(store) -> dict[str, list[int]]:
    snapshot = load_snapshot(store)
    files = snapshot.files.filter(snapshot.files["deletionVector"].is_valid())
    vectors = load_vectors(parse_descriptors(vectors_of(files)), store, open_store)
    return {p: list(BitMap64.deserialize(v)) for p, v in zip(files["path"].to_pylist(), vectors, strict=True)}


def test_masks_add_up_until_the_file_goes(store):
    metrics, figures = edit(store, {"d/0.parquet": [3, 5], "d/1.parquet": range(0, ROWS, 2)})
    assert metrics == {"n": "1"}
    assert figures == EditFigures(masks_added=2, bytes_masked=201)
    before = load_snapshot(store).files
    _, figures = edit(store, {"d/0.parquet": [4, 5], "d/1.parquet": range(1, ROWS, 2), "d/2.parquet": None})
    assert masks_of(store) == {"d/0.parquet": [3, 4, 5]}
    assert figures == EditFigures(
        files_removed=2, bytes_removed=203, masks_added=1, bytes_masked=100, masks_updated=1, masks_removed=2
    )
    live = load_snapshot(store).files.to_pylist()
    assert [row["path"] for row in live] == ["d/0.parquet"]
    # "that logical file must have correct `numRecords` information", and bounds that are wide from now on.
    assert json.loads(live[0]["stats"]) == {"numRecords": ROWS, "tightBounds": False}
    # "Writers must set the `baseRowId` field in recommitted [...] `add` actions [...] to the `baseRowId` value [...]
    # of the last committed `add` action with the same `path`."
    assert live[0]["baseRowId"] == {r["path"]: r["baseRowId"] for r in before.to_pylist()}["d/0.parquet"]


def test_vectors_of_a_lost_commit_are_deleted(store):
    stale = load_snapshot(store)
    edit(store, {"d/0.parquet": range(0, ROWS, 2)})
    there = sorted(o.path for o in store.list_tree("") if o.path.endswith(".bin"))
    with pytest.raises(CommitConflict):
        edit(store, {"d/0.parquet": range(0, ROWS, 3)}, stale)
    assert sorted(o.path for o in store.list_tree("") if o.path.endswith(".bin")) == there


def test_rows_are_counted_before_they_are_masked(store):
    snapshot = load_snapshot(store)
    path = "_delta_log/00000000000000000000.json"
    text = store.get(path).replace(b'\\"numRecords\\":1000,', b"")
    store.put(path, text)
    del snapshot
    with pytest.raises(CorruptTable) as caught:
        edit(store, {"d/0.parquet": [1]})
    assert caught.value.code == "no-num-records"


@pytest.mark.parametrize("told", [1, 2, ROWS - 1])
@pytest.mark.parametrize("rows", [[0], [0, 1], [ROWS - 1], range(ROWS - 1), range(1, ROWS)])
def test_a_file_goes_when_it_has_no_rows_left_and_not_when_its_statistics_say_so(store, told, rows):
    """A number of rows that forgets some would take them along."""
    path = "_delta_log/00000000000000000000.json"
    store.put(path, store.get(path).replace(b'\\"numRecords\\":1000', f'\\"numRecords\\":{told}'.encode()))
    edit(store, {"d/0.parquet": rows})
    assert masks_of(store) == {"d/0.parquet": list(rows)}
    live = {row["path"]: json.loads(row["stats"]) for row in load_snapshot(store).files.to_pylist()}
    assert live["d/0.parquet"]["numRecords"] in (told, ROWS) and live["d/0.parquet"]["numRecords"] > max(rows)
    edit(store, {"d/0.parquet": range(ROWS)})
    assert set(live) - {r["path"] for r in load_snapshot(store).files.to_pylist()} == {"d/0.parquet"}


def test_rows_beyond_the_file_are_not_masked(store):
    """The file was replaced since it was read."""
    with pytest.raises(CorruptTable) as caught:
        edit(store, {"d/1.parquet": [5, ROWS]})
    assert (caught.value.code, caught.value.path) == ("damaged-file", "d/1.parquet")
    assert masks_of(store) == {}


def test_candidates_tell_file_and_place(store):
    snapshot = load_snapshot(store)
    candidates = candidates_of(snapshot, snapshot.files)
    plan = candidates.only(pa.array([0, 2], pa.int64())).plan_scan()
    assert [c.name for c in plan.parts[0].output] == [
        "id", "__alluvium_row_id", "__alluvium_row_version", "__alluvium_file", "__alluvium_row",
    ]  # fmt: skip
    found = plan.parts[0].files
    numbers = dict(zip(snapshot.files["path"].to_pylist(), range(3), strict=True))
    for path, constants in zip(found["path"].to_pylist(), found["constants"].to_pylist(), strict=True):
        assert constants["__alluvium_file"] == numbers[path]
    assert found.num_rows == 2


def test_other_files_of_one_version_are_another_source(store):
    """Plans are kept by what they are of: two choices of as many files have the same numbers."""
    snapshot = load_snapshot(store)
    first, second = (candidates_of(snapshot, snapshot.files.slice(begin, 2)) for begin in (0, 1))
    assert first.numbers == second.numbers
    assert first.identity != second.identity
    assert first.identity == candidates_of(snapshot, snapshot.files.slice(0, 2)).identity
