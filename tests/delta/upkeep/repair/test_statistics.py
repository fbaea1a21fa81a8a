"""Statistics out of footers: of which files, of which columns, and what is said of them."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_metadata

from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.actions import Actions, format_file_actions, tombstones_of
from alluvium.delta.terms.spec import Add, DeletionVector, DomainMetadata, Protocol, format_actions
from alluvium.delta.upkeep.repair import statistics
from alluvium.delta.upkeep.repair.statistics import compute_statistics, files_without
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import CommitConflict
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = Struct((Field("id", LONG), Field("s", STRING)))
GOOD = '{"numRecords":3}'


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def parquet(*ids: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{n}" for n in ids]}), sink)
    return sink.getvalue()


def add(path: str, stats: str | None = None, **more: Any) -> Add:
    return Add(path=path, partition_values={}, size=7, modification_time=5, data_change=True, stats=stats, **more)


def commit(
    store: MemoryStore, *adds: Add, properties: dict[str, str] | None = None, features: tuple[str, ...] = ()
) -> Snapshot:
    reader = tuple(f for f in features if f == "deletionVectors")
    protocol = Protocol(
        min_reader_version=3 if reader else 1,
        min_writer_version=7 if features else 2,
        reader_features=reader or None,
        writer_features=features or None,
    )
    store.put(commit_path(0), format_actions([protocol, make_metadata(SCHEMA, properties=properties), *adds]))
    return load_snapshot(store)


def said(store: MemoryStore, version: int = 1) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, store.get(commit_path(version)).splitlines())
    return {line["add"]["path"]: line["add"] for line in lines if "add" in line}


@pytest.mark.parametrize(
    ("stats", "lacks"),
    [(None, True), ("", True), ("{", True), ("[]", True), ('{"numRecords":-1}', True), ('{"numRecords":"x"}', True),
     ("{}", False), (GOOD, False), ('{"numRecords":0}', False), ('{"minValues":7}', True)],
)  # fmt: skip
def test_which_files_lack_statistics(store: MemoryStore, stats: str | None, lacks: bool) -> None:
    snapshot = commit(store, add("good", GOOD), add("asked", stats))
    assert files_without(snapshot)["path"].to_pylist() == (["asked"] if lacks else [])


def test_statistics_in_columns_are_statistics(store: MemoryStore) -> None:
    snapshot = commit(store, add("a"), add("b"), add("c", GOOD))
    parsed = pa.array([{"numRecords": 1}, None, None], pa.struct([("numRecords", pa.int64())]))
    state = snapshot.state
    files = state.files.append_column("stats_parsed", parsed)
    object.__setattr__(state, "files", files)
    assert files_without(snapshot)["path"].to_pylist() == ["b"]


def test_the_files_are_committed_again_with_them(store: MemoryStore) -> None:
    for name, ids in (("a b", [1, 2]), ("c", [5]), ("d", [7, 8, 9])):
        store.put(name, parquet(*ids))
    tagged = add("a%20b", tags={"k": "v"}, base_row_id=None)
    snapshot = commit(store, tagged, add("c", GOOD), add("d", ""))
    done = compute_statistics(snapshot, "tests")
    told = said(store)
    assert set(told) == {"a%20b", "d"} and done.left == () and done.committed.version == 1
    assert done.committed.metrics == {"numUpdatedFiles": "2"} and done.committed.attempts == 1
    assert sorted(done.committed.files["path"].to_pylist()) == ["a%20b", "d"]
    assert done.committed.files["size"].to_pylist() == [7, 7]
    assert told["a%20b"] == {
        "path": "a%20b", "partitionValues": {}, "size": 7, "modificationTime": 5, "dataChange": False, "tags": {"k": "v"},
        "stats": '{"numRecords":2,"minValues":{"id":1,"s":"s1"},"maxValues":{"id":2,"s":"s2"},"nullCount":{"id":0,"s":0}}',
    }  # fmt: skip
    # Nothing is left to do, but where all are asked for.
    again = compute_statistics(load_snapshot(store), "tests")
    assert (again.committed.version, again.committed.attempts, again.committed.files.num_rows) == (1, 0, 0)
    every = compute_statistics(load_snapshot(store), "tests", every=True)
    assert set(said(store, 2)) == {"a%20b", "c", "d"} and every.committed.metrics == {"numUpdatedFiles": "3"}


def test_of_which_columns(store: MemoryStore) -> None:
    """ "Writers must write out per-file statistics for clustering columns" """
    store.put("a", parquet(1))
    properties = {"delta.dataSkippingNumIndexedCols": "1"}
    snapshot = commit(store, add("a"), properties=properties, features=("clustering", "domainMetadata"))
    compute_statistics(snapshot, "tests")
    assert json.loads(said(store)["a"]["stats"])["nullCount"] == {"id": 0}
    domain = DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["s"]]}', removed=False)
    store.put(commit_path(2), format_actions([domain]))
    compute_statistics(load_snapshot(store), "tests", every=True)
    assert json.loads(said(store, 3)["a"]["stats"])["nullCount"] == {"id": 0, "s": 0}


@pytest.mark.parametrize("features", [("deletionVectors",), ("appendOnly",)])
def test_bounds_are_tight_where_no_rows_are_deleted(store: MemoryStore, features: tuple[str, ...]) -> None:
    vector = DeletionVector(storage_type="u", path_or_inline_dv="ab", size_in_bytes=1, cardinality=1)
    has_vectors = features == ("deletionVectors",)
    store.put("a", parquet(1))
    store.put("b", parquet(2, 3))
    snapshot = commit(store, add("a"), add("b", deletion_vector=vector if has_vectors else None), features=features)
    compute_statistics(snapshot, "tests")
    tight = {path: json.loads(one["stats"]).get("tightBounds") for path, one in said(store).items()}
    assert tight == ({"a": True, "b": False} if has_vectors else {"a": None, "b": None})


@pytest.mark.parametrize("together", [1, 2, 5000])
def test_files_that_cannot_be_read_are_left_out_and_said(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(statistics, "_TOGETHER", together)
    for n in (0, 2, 4):
        store.put(f"f{n}", parquet(n))
    store.put("f1", b"no parquet")
    done = compute_statistics(commit(store, *(add(f"f{n}") for n in range(5))), "tests")
    assert {path: json.loads(one["stats"])["minValues"]["id"] for path, one in said(store).items()} == {
        "f0": 0, "f2": 2, "f4": 4
    }  # fmt: skip
    assert [(f.level, f.check, f.path) for f in done.left] == [("warning", "statistics", f"f{n}") for n in (1, 3)]
    assert "footer cannot be read" in done.left[0].message
    # None of them can be: nothing is committed.
    done = compute_statistics(load_snapshot(store), "tests")
    assert (done.committed.version, done.committed.attempts, len(done.left)) == (1, 0, 2)


def test_files_elsewhere_are_read_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far/x y").write_bytes(parquet(4))
    table = open_store(str(tmp_path / "t"))
    path = f"file:{tmp_path}/far/x%20y"
    table.put(
        commit_path(0),
        format_actions([Protocol(min_reader_version=1, min_writer_version=2), make_metadata(SCHEMA), add(path)]),
    )
    assert compute_statistics(load_snapshot(table), "tests").left == ()
    assert '"id":4' in str(load_snapshot(table).files["stats"].to_pylist())


@pytest.mark.parametrize("goes", [True, False])
def test_files_that_others_took_away_meanwhile_do_not_come_back(store: MemoryStore, goes: bool) -> None:
    """They are looked for anew in the version that is there by then."""
    for name in "ab":
        store.put(name, parquet(1))
    late = commit(store, add("a"), add("b"))
    gone = late.files.slice(0, 1) if goes else late.files.slice(0, 0)
    removed = Actions(removed=tombstones_of(gone, 9)).removed
    store.put(commit_path(1), b"".join(line + b"\n" for line in format_file_actions("remove", removed)) or b"{}\n")
    done = compute_statistics(late, "tests")
    assert done.committed.version == 2 and set(said(store, 2)) == ({"b"} if goes else {"a", "b"})


def test_other_conflicts_end_it(store: MemoryStore) -> None:
    store.put("a", parquet(1))
    late = commit(store, add("a"))
    store.put(commit_path(1), format_actions([make_metadata(SCHEMA, properties={"x": "y"})]))
    with pytest.raises(CommitConflict) as caught:
        compute_statistics(late, "tests")
    assert caught.value.code == "metadata-changed" and load_snapshot(store).version == 1
