"""What a commit of rows says of itself."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from plain_writer import SCHEMA, commit_rows, open_target, stage_rows

import alluvium
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import NewFiles, Operation, Replace, WrittenRows
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def told(path: Path) -> dict[str, str]:
    found = alluvium.open(str(path)).history(1)[0]["operationMetrics"]
    return {name: value for name, value in found.items() if not name.endswith("Bytes")}


def test_metrics_of_writes(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    commit_rows(open_target(store), [1, 2])
    assert told(tmp_path) == {"numFiles": "1", "numOutputRows": "2"}
    commit_rows(open_target(store), [3], replace=Replace())
    assert told(tmp_path) == {"numFiles": "1", "numOutputRows": "1", "numRemovedFiles": "1"}


def test_metrics_of_a_stream(tmp_path: Path) -> None:
    """The reference calls them otherwise."""
    target = open_target(open_store(str(tmp_path)))
    target.commit(replace(stage_rows(target, [1, 2]), operation=Operation("STREAMING UPDATE")))
    assert told(tmp_path) == {"numAddedFiles": "1", "numOutputRows": "2", "numRemovedFiles": "0"}


def of_rows(target: DeltaTarget, ids: list[int], replaced: Replace | None, operation: str) -> WrittenRows:
    staged = replace(stage_rows(target, ids, replace=replaced), operation=Operation(operation))
    return staged if ids else replace(staged, new=NewFiles.none())


WHERE = Replace(parse_predicate("p = 'a'", SCHEMA), "p = 'a'")


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "there"])
@pytest.mark.parametrize("operation", ["WRITE", "STREAMING UPDATE"])
def test_metrics_of_every_kind_of_write(partitioned: bool, exists: bool, operation: str) -> None:
    """As the reference was seen to tell them."""
    for replaced, rows in itertools.product((None, Replace(), Replace(dynamic=True), WHERE), (0, 3)):
        if replaced is WHERE and not partitioned:
            continue
        store = MemoryStore(uuid.uuid4().hex, "table")
        before = 0
        if exists:
            commit_rows(open_target(store, partitioned=partitioned), [1, 2])
            before = load_snapshot(store).files["size"][0].as_py()
        target = open_target(store, partitioned=partitioned)
        done = target.commit(of_rows(target, list(range(rows)), replaced, operation))
        by_condition = exists and replaced is WHERE
        # The dynamic overwrite of no rows replaces no partition.
        gone = int(exists and replaced is not None and (rows > 0 or not replaced.dynamic))
        one = rows > 0 or not (partitioned or by_condition)
        expected = {"numFiles": str(int(one)), "numOutputBytes": str(sum(done.files["size"].to_pylist()))}
        if one:
            expected["numOutputRows"] = str(rows)
        if exists and replaced is not None:
            expected |= {"numRemovedFiles": str(gone), "numRemovedBytes": str(gone * before)}
        if by_condition:
            expected["numAddedChangeFiles"] = "0"
        if by_condition and rows:
            expected |= {"numCopiedRows": "0", "numDeletedRows": "2"}
        if operation == "STREAMING UPDATE":
            told = {"numRemovedFiles": str(gone), "numAddedFiles": expected["numFiles"]}
            expected = {**told, "numOutputRows": str(rows), "numOutputBytes": expected["numOutputBytes"]}
        assert done.metrics == expected, (replaced, rows)


def test_rows_that_an_overwrite_deletes_are_those_that_were_not_deleted_before() -> None:
    url = f"memory://{uuid.uuid4().hex}/t"
    rows = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "p": ["a"] * 4})
    alluvium.write(rows, url, partition_by=["p"], **{"delta.enableDeletionVectors": "true"})
    alluvium.DeltaTable.forPath(url).delete("id = 2")
    store = open_store(url)
    target = open_target(store)
    staged = replace(stage_rows(target, [7], replace=WHERE), operation=Operation("WRITE"))
    assert target.commit(staged).metrics["numDeletedRows"] == "3"
