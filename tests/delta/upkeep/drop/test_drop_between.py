"""What others commit in the middle of a drop."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.commit.draft import Draft
from alluvium.delta.log.names import commit_path
from alluvium.delta.log_upkeep.checkpoints import refresh_to
from alluvium.delta.terms.actions import Actions, tombstones_of
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.upkeep.drop.drop_feature import drop_feature
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import publish
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.open import open_store


def rewrite_as_long(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
    """Writes files of a column `n` anew, with longs."""
    root = Path(snapshot.store.url.removeprefix("file:"))
    added = files.to_pylist()
    for file in added:
        rows = pq.read_table(root / file["path"]).cast(pa.schema([("n", pa.int64())]))
        file["path"] = f"{uuid.uuid4()}.parquet"
        pq.write_table(rows, root / file["path"])
        file["size"] = (root / file["path"]).stat().st_size
    actions = Actions(added=pa.Table.from_pylist(added, files.schema), removed=tombstones_of(files, 0, False))
    draft = Draft(actions, ReadScope.nothing(), operation, snapshot.version)
    return refresh_to(snapshot, publish(snapshot.store, draft, snapshot, DEFAULT_RETRY).entry.version)


def stored_types(url: str) -> set[pa.DataType]:
    root = Path(url.removeprefix("file:"))
    paths = load_snapshot(open_store(url)).files["path"].to_pylist()
    return {pq.read_schema(root / path).field("n").type for path in paths}


@pytest.mark.parametrize("comes", ["never", "before", "after"])
def test_a_file_of_an_older_type_comes_while_others_are_written_anew(tmp_path: Path, comes: str) -> None:
    """By a writer who knows no widening: then types are forgotten, and nobody could tell any more."""
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"n": pa.array([1, 2], pa.int32())}), url)
    alluvium.alter(url).set_properties({"delta.enableTypeWidening": "true"})
    alluvium.alter(url).alter_column("n", type="bigint")
    pq.write_table(pa.table({"n": pa.array([3], pa.int32())}), tmp_path / "t" / "late.parquet")
    size = (tmp_path / "t" / "late.parquet").stat().st_size
    add = {"path": "late.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    written: list[int] = []

    def add_late(version: int) -> None:
        (tmp_path / "t" / commit_path(version)).write_text(json.dumps({"add": add}))

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        first = not written
        written.append(files.num_rows)
        if comes == "before" and first:
            add_late(snapshot.version + 1)
        done = rewrite_as_long(snapshot, files, config, operation)
        if comes == "after" and first:
            add_late(done.version + 1)
        return done

    drop_feature(load_snapshot(open_store(url)), "typeWidening", "test", rewrite=rewrite)
    assert written == ([1] if comes == "never" else [1, 1]) and stored_types(url) == {pa.int64()}
    assert sorted(alluvium.open(url).to_arrow().column("n").to_pylist()) == [1, 2, *([] if comes == "never" else [3])]


def test_who_comes_between_each_time_is_told(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"n": pa.array([1], pa.int32())}), url)
    alluvium.alter(url).set_properties({"delta.enableTypeWidening": "true"})
    alluvium.alter(url).alter_column("n", type="bigint")

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        done = rewrite_as_long(snapshot, files, config, operation)
        alluvium.write(pa.table({"n": pa.array([2], pa.int64())}), url, mode="append")
        return done

    retry = RetryPolicy(max_repeats=0)
    with pytest.raises(CommitConflict, match="nobody may come between"):
        drop_feature(load_snapshot(open_store(url)), "typeWidening", "test", retry=retry, rewrite=rewrite)
    assert "typeChanges" in load_snapshot(open_store(url)).config.metadata.schema_string
    assert sorted(alluvium.open(url).to_arrow().column("n").to_pylist()) == [1, 2]


def test_files_of_an_older_type_are_known_when_vectors_go(tmp_path: Path) -> None:
    """They are not written anew with those that have vectors: types were forgotten, and floats read as doubles."""
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"n": pa.array([1, 2], pa.int32())}), url)
    alluvium.write(pa.table({"n": pa.array([3], pa.int32())}), url, mode="append")
    alluvium.alter(url).set_properties({"delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true"})
    alluvium.alter(url).alter_column("n", type="bigint")
    PortableDeltaTable.forPath(url).delete("n = 1")

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        rows = pa.table({"n": pa.array([2], pa.int64())})
        pq.write_table(rows, tmp_path / "t" / "anew.parquet")
        row = {"path": "anew.parquet", "partitionValues": [], "size": 1, "modificationTime": 0, "dataChange": False}
        added = pa.Table.from_pylist([row], files.schema)
        actions = Actions(added=added, removed=tombstones_of(files, 0, False))
        draft = Draft(actions, ReadScope.nothing(), operation, snapshot.version)
        return refresh_to(snapshot, publish(snapshot.store, draft, snapshot, DEFAULT_RETRY).entry.version)

    drop_feature(load_snapshot(open_store(url)), "deletionVectors", "test", rewrite=rewrite)
    assert stored_types(url) == {pa.int32(), pa.int64()}
    assert "typeChanges" in load_snapshot(open_store(url)).config.metadata.schema_string
    assert sorted(alluvium.open(url).to_arrow().column("n").to_pylist()) == [2, 3]


def test_a_restore_while_files_are_written_anew_is_told(tmp_path: Path) -> None:
    """It may bring back files of older types, whatever it says of the table."""
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"n": pa.array([1, 2], pa.int32())}), url)
    alluvium.write(pa.table({"n": pa.array([3], pa.int32())}), url, mode="append")
    alluvium.alter(url).set_properties({"delta.enableTypeWidening": "true"})
    alluvium.alter(url).alter_column("n", type="bigint")
    alluvium.alter(url).unset_properties("delta.enableTypeWidening")
    whole = load_snapshot(open_store(url)).version
    PortableDeltaTable.forPath(url).delete("n = 3")

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        PortableDeltaTable.forPath(url).restoreToVersion(whole)
        return rewrite_as_long(snapshot, files, config, operation)

    with pytest.raises(CommitConflict, match="RESTORE"):
        drop_feature(load_snapshot(open_store(url)), "typeWidening", "test", rewrite=rewrite)
    assert "typeChanges" in load_snapshot(open_store(url)).config.metadata.schema_string
    assert sorted(alluvium.open(url).to_arrow().column("n").to_pylist()) == [1, 2, 3]
