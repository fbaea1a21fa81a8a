"""DELETE on tables with vectors and without: rows, files, feed, row ids, history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dml_tables import MODES, last, make, tracked
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import Preview
from alluvium.plan.retry import RetryPolicy

pytestmark = pytest.mark.spark

VECTORS = MODES["mask"]
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


def ids(table: DeltaTable) -> list[int]:
    return sorted(row["id"] for row in table.toDF().select("id").collect())


@pytest.mark.parametrize("mode", MODES)
def test_scattered_rows_go(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED | TRACKED)
    before = {r["id"]: r["_row_id"] for r in tracked(path)}
    done = table.alias("t").delete("t.id in (3, 5) or v = 'v4'")
    assert ids(table) == [i for i in range(20) if i not in (3, 4, 5)]
    assert done.metrics["numDeletedRows"] == "3"
    assert done.version == 2
    adds, removes, changes = (last(path, key) for key in ("add", "remove", "cdc"))
    assert len(removes) == 2
    if mode == "mask":
        assert {a["path"] for a in adds} == {r["path"] for r in removes}
        assert sorted(a["deletionVector"]["cardinality"] for a in adds) == [1, 2]
        assert all(json.loads(a["stats"])["tightBounds"] is False for a in adds)
        assert all(json.loads(a["stats"])["numRecords"] == 10 for a in adds)
        assert not changes
        assert done.metrics["numDeletionVectorsAdded"] == "2"
    else:
        assert not {a["path"] for a in adds} & {r["path"] for r in removes}
        assert changes
        assert done.metrics["numCopiedRows"] == "17"
    assert {r["id"]: r["_row_id"] for r in tracked(path)} == {
        i: row_id for i, row_id in before.items() if i not in (3, 4, 5)
    }
    feed = alluvium.changes(spark, path, 2).select("id", "_change_type").collect()
    assert sorted((r[0], r[1]) for r in feed) == [(i, "delete") for i in (3, 4, 5)]
    # Masks add up.
    table.delete("id = 7")
    table.delete(sf.col("id") == 9)
    assert ids(table) == [i for i in range(20) if i not in (3, 4, 5, 7, 9)]


@pytest.mark.parametrize("mode", MODES)
def test_a_file_all_of_whose_rows_go_is_removed(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    done = table.delete("v > '' and id % 2 = 0")
    assert ids(table) == list(range(1, 20, 2))
    assert (len(last(path, "remove")), last(path, "add"), last(path, "cdc")) == (1, [], [])
    assert (done.metrics["numRemovedFiles"], done.metrics["numDeletedRows"]) == ("1", "10")


@pytest.mark.parametrize("mode", MODES)
def test_a_partition_goes_unread(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    for file in Path(path).rglob("p=1/*.parquet"):
        file.write_bytes(b"nobody may read this")
    preview = table.delete("p = 1", dry_run=True)
    assert isinstance(preview, Preview)
    assert len(preview.removed) == 1
    assert table.delete("p = 1").metrics["numDeletedRows"] == "10"
    assert ids(table) == list(range(0, 20, 2))
    assert table.delete().metrics["numDeletedRows"] == "10"
    assert ids(table) == []
    assert table.delete().attempts == 0


@pytest.mark.parametrize("mode", MODES)
def test_no_match_makes_no_commit(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    assert table.delete("v = 'none'").attempts == 0
    assert table.delete("id > 1000").attempts == 0
    assert table.delete("cast(null as boolean)").attempts == 0
    assert table.history(1).first()["version"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_preview_writes_nothing(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode])
    files = sorted(Path(path).rglob("*"))
    preview = table.delete("id = 3", dry_run=True)
    assert preview.operation.metrics["numDeletedRows"] == "1"
    assert len(preview.added if mode == "mask" else preview.removed) == 1
    assert sorted(Path(path).rglob("*")) == files


@pytest.mark.parametrize(
    "condition",
    ["nope = 1", "max(id) > 1", "rand() > 0.5", "id", "row_number() over (order by id) > 1"],
)
def test_bad_conditions_are_refused(spark, tmp_path, condition):
    path = str(tmp_path / "t")
    table = make(spark, path, {})
    with pytest.raises(InvalidRequest) as caught:
        table.delete(condition)
    assert caught.value.code == "invalid-expression"


def test_append_only_tables_keep_their_rows(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, VECTORS | {"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest) as caught:
        table.delete("id < 10 and v <> 'v1'")
    assert caught.value.code == "append-only"
    assert len(ids(table)) == 20


def test_the_loser_learns_who_won(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, VECTORS)
    stale = table._access.snapshot()
    table._access = _Pinned(table._access, stale)
    DeltaTable.forPath(spark, path).delete("id = 2 and v > ''")
    with pytest.raises(CommitConflict) as caught:
        table.delete("id = 4 and v > ''", retry=RetryPolicy(max_repeats=0))
    assert caught.value.conflicts[0].operation == "DELETE"
    # Another file is another matter.
    table.delete("id = 5 and v > '' and p = 1")
    assert ids(DeltaTable.forPath(spark, path)) == [i for i in range(20) if i not in (2, 5)]


class _Pinned:
    """Opens the table at a version that is no longer the newest."""

    def __init__(self, access, snapshot) -> None:
        self._access, self._snapshot = access, snapshot

    def snapshot(self):
        return self._snapshot

    def __getattr__(self, name: str):
        return getattr(self._access, name)


@pytest.mark.parametrize("mode", MODES)
def test_a_column_that_is_called_like_what_the_reader_tells_of_rows(spark, tmp_path, mode):
    """`_metadata.row_index` is a field of the table's then, and no place in a file."""
    path = str(tmp_path / "t")
    rows = spark.sql("select id, named_struct('row_index', 4 - id) `_metadata` from range(5)").coalesce(1)
    alluvium.write(rows, path, **MODES[mode], **TRACKED)
    table = DeltaTable.forPath(spark, path)
    for gone in (0, 3):
        table.delete(f"id = {gone}")
    assert ids(table) == [1, 2, 4]
    table.update("id = 2", {"_metadata.row_index": "70L"})
    found = {r["id"]: r for r in alluvium.open(path).to_arrow(["*", "_row_id"]).to_pylist()}
    assert {n: (r["_metadata"]["row_index"], r["_row_id"]) for n, r in found.items()} == {
        1: (3, 1),
        2: (70, 2),
        4: (0, 4),
    }
