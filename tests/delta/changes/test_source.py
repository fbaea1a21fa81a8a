"""The change feed of tables made from literals, read without Spark.

Specification: "Add CDC File", "Change Data Files", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from change_table import EXTRA, ON, SCHEMA, START_MS, STEP_MS, VECTORS, ChangeTable, changed, metadata, protocol, vector

import alluvium
from alluvium.delta.changes.bounds import Bound
from alluvium.delta.changes.source import load_changes
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.schema.types import DOUBLE, INTEGER, LONG, STRING, Field, Struct
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def table(tmp_path: Path) -> ChangeTable:
    return ChangeTable(tmp_path / "a table %20 ü")


def test_cdc_files_alone_are_read_where_there_are_some(table: ChangeTable) -> None:
    """ "If there are `cdc` actions in this version, then read only those to get the row-level changes, and skip the
    remaining `add` and `remove` actions in this version."
    """
    table.commit(protocol(), metadata(), table.add("a.parquet", [1, 2]))
    table.rows("b.parquet", id=[1, 2], v=["v1", "new"])
    changes = [(2, "v2", "update_preimage"), (2, "new", "update_postimage")]
    table.commit(table.remove("a.parquet"), table.add("b.parquet"), table.cdc("c.parquet", changes))
    t = alluvium.open(table.url)
    assert changed(t.changes(1)) == [(2, "new", "update_postimage", 1), (2, "v2", "update_preimage", 1)]
    assert changed(t.changes(0, 0)) == [(1, "v1", "insert", 0), (2, "v2", "insert", 0)]
    assert t.to_arrow().num_rows == 2


def test_without_cdc_files_adds_are_inserts_and_removes_are_deletes(table: ChangeTable) -> None:
    """ "Otherwise, if there are no `cdc` actions in this version, read and treat all the rows in the `add` and `remove`
    actions as inserted and deleted rows, respectively."
    """
    table.commit(protocol(), metadata(), table.add("a%20b.parquet"))
    table.rows("a b.parquet", id=[1], v=["x"])
    table.commit(table.remove("a%20b.parquet"), table.add("c.parquet", [2]))
    t = alluvium.open(table.url)
    assert changed(t.changes(0)) == [(1, "x", "delete", 1), (1, "x", "insert", 0), (2, "v2", "insert", 1)]


def test_files_that_are_only_rearranged_hold_no_changes(table: ChangeTable) -> None:
    """ "`dataChange`: When `false` the logical file must already be present in the table or the records in the added
    file must be contained in one or more `remove` actions in the same version"
    """
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]), table.add("b.parquet", [2]))
    table.commit(
        table.remove("a.parquet", dataChange=False), table.remove("b.parquet", dataChange=False),
        table.add("c.parquet", [1, 2], dataChange=False),
    )  # fmt: skip
    assert alluvium.open(table.url).changes(1).num_rows == 0


def test_the_extra_columns(table: ChangeTable) -> None:
    """ "The following extra columns should also be generated: `_commit_version` `Long` [...] `_commit_timestamp`
    `Timestamp`: The timestamp associated when the commit was created."
    """
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.commit(table.add("b.parquet", [2]))
    found = alluvium.open(table.url).changes(0)
    assert found.schema.names == ["id", "v", *EXTRA]
    utc = pa.timestamp("us", tz="UTC")
    assert [found.schema.field(name).type for name in EXTRA] == [pa.string(), pa.int64(), utc]
    times = dict(zip(found["_commit_version"].to_pylist(), found["_commit_timestamp"].to_pylist(), strict=True))
    expected = [dt.datetime.fromtimestamp((START_MS + n * STEP_MS) / 1000, dt.timezone.utc) for n in range(2)]
    assert times == dict(enumerate(expected))


def test_times_of_commits_never_run_backwards(table: ChangeTable) -> None:
    table.commit(protocol(), metadata())
    table.commit(table.add("a.parquet", [1]), at_ms=START_MS - 5_000)
    (moment,) = alluvium.open(table.url).changes(1)["_commit_timestamp"].to_pylist()
    assert moment == dt.datetime.fromtimestamp((START_MS + 1) / 1000, dt.timezone.utc)


def test_in_commit_timestamps_are_the_times_where_enabled(table: ChangeTable) -> None:
    """ "For commits with version >= `delta.inCommitTimestampEnablementVersion`, readers should use the
    `inCommitTimestamp` field of the `commitInfo` action."
    """
    on = {**ON, "delta.enableInCommitTimestamps": "true"}
    since = {"delta.inCommitTimestampEnablementVersion": "1", "delta.inCommitTimestampEnablementTimestamp": "5000"}
    table.commit(protocol(1, 7, writerFeatures=["inCommitTimestamp", "changeDataFeed"]), metadata(), at_ms=4_000)
    table.commit({"commitInfo": {"inCommitTimestamp": 5_000}}, metadata(properties={**on, **since}))
    table.commit({"commitInfo": {"inCommitTimestamp": 6_000}}, table.add("a.parquet", [1]))
    table.commit({"commitInfo": {"inCommitTimestamp": 7_000}}, table.add("b.parquet", [2]))
    t = alluvium.open(table.url)
    assert [m.timestamp() for m in t.changes(2, 2)["_commit_timestamp"].to_pylist()] == [6]
    at = dt.datetime.fromtimestamp
    assert changed(t.changes(at(6), at(6))) == [(1, "v1", "insert", 2)]
    assert changed(t.changes(at(6.001))) == [(2, "v2", "insert", 3)]
    assert t.changes(at(4), at(5.5)).num_rows == 0


def test_a_commit_without_the_time_that_it_must_carry_is_damage(table: ChangeTable) -> None:
    on = {**ON, "delta.enableInCommitTimestamps": "true"}
    table.commit(protocol(1, 7, writerFeatures=["inCommitTimestamp", "changeDataFeed"]), metadata(properties=on))
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(table.url).changes(0)
    assert (caught.value.code, caught.value.version) == ("no-in-commit-timestamp", 0)


@pytest.mark.parametrize(
    ("before", "after", "deleted", "inserted"),
    [
        (None, [1], [1], []),
        ([1], [1, 2], [2], []),
        ([1, 2], [2, 3], [3], [1]),
        ([1, 2], None, [], [1, 2]),
        ([1], [1], [], []),
        (None, None, [], []),
    ],
)
def test_a_file_that_stays_with_another_vector_changed_by_the_difference(
    table: ChangeTable, before: list[int] | None, after: list[int] | None, deleted: list[int], inserted: list[int]
) -> None:
    """ "it is **legal** for the same `path` to occur in an `add` action and a `remove` action, but with two different
    `dvId`s."
    """
    old = {} if before is None else {"deletionVector": vector(before)}
    new = {} if after is None else {"deletionVector": vector(after)}
    table.commit(VECTORS, metadata(), table.add("a.parquet", range(5), **old))
    table.commit(table.remove("a.parquet", **old), table.add("a.parquet", **new))
    expected = [*((n, f"v{n}", "delete", 1) for n in deleted), *((n, f"v{n}", "insert", 1) for n in inserted)]
    assert changed(alluvium.open(table.url).changes(1)) == sorted(expected)


def test_rows_that_were_deleted_before_do_not_go_again(table: ChangeTable) -> None:
    table.commit(VECTORS, metadata(), table.add("a.parquet", range(3), deletionVector=vector([0])))
    table.commit(table.remove("a.parquet", deletionVector=vector([0])))
    t = alluvium.open(table.url)
    assert changed(t.changes(1)) == [(1, "v1", "delete", 1), (2, "v2", "delete", 1)]
    assert changed(t.changes(0, 0)) == [(1, "v1", "insert", 0), (2, "v2", "insert", 0)]


def test_one_file_with_another_vector_in_each_version(table: ChangeTable) -> None:
    one, two = vector([0]), vector([0, 1])
    table.commit(VECTORS, metadata(), table.add("a.parquet", range(3)))
    table.commit(table.remove("a.parquet"), table.add("a.parquet", deletionVector=one))
    table.commit(table.remove("a.parquet", deletionVector=one), table.add("a.parquet", deletionVector=two))
    table.commit(table.remove("a.parquet", deletionVector=two))
    expected = [(0, "v0", "delete", 1), (1, "v1", "delete", 2), (2, "v2", "delete", 3)]
    assert changed(alluvium.open(table.url).changes(1)) == expected


@pytest.mark.parametrize("says", [{"tightBounds": True}, {}], ids=["tight", "silent"])
@pytest.mark.parametrize("remembers", [True, False], ids=["remove with statistics", "remove without"])
def test_bounds_of_the_rows_that_are_left_say_nothing_of_those_that_went(
    table: ChangeTable, says: dict[str, bool], remembers: bool
) -> None:
    """ "`tightBounds`: Whether per-column statistics are currently tight or wide": then they are of live rows alone."""

    def stats(last: int, **more: bool) -> dict[str, str]:
        bounds = {"minValues": {"id": 0}, "maxValues": {"id": last}, "nullCount": {"id": 0}}
        return {"stats": json.dumps({"numRecords": 10, **bounds, **more})}

    table.commit(VECTORS, metadata(), table.add("a.parquet", range(10), **stats(9)))
    gone = table.remove("a.parquet", **(stats(9) if remembers else {}))
    table.commit(gone, table.add("a.parquet", deletionVector=vector([9]), **stats(8, **says)))
    assert changed(alluvium.open(table.url).changes(1, where="id = 9")) == [(9, "v9", "delete", 1)]


def test_vectors_are_read_only_for_files_that_are_opened(table: ChangeTable) -> None:
    broken = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1}
    table.commit(VECTORS, metadata(), table.add("a.parquet", range(3)), table.add("b.parquet", [9]))
    table.commit(table.remove("a.parquet"), table.add("a.parquet", deletionVector=broken))
    table.commit(table.remove("b.parquet"))
    t = alluvium.open(table.url)
    assert changed(t.changes(1, where="_commit_version > 1")) == [(9, "v9", "delete", 2)]
    with pytest.raises(CorruptTable) as caught:
        t.changes(1)
    assert caught.value.code == "damaged-deletion-vector"


def test_a_merge_that_changed_nothing_has_no_changes(table: ChangeTable) -> None:
    """delta-spark 4.4 rewrites files in such a merge, with `dataChange` and without `cdc`, and shows no changes."""
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    info = {"operation": "MERGE", "operationMetrics": dict.fromkeys(names, "0")}
    table.commit({"commitInfo": info}, table.remove("a.parquet"), table.add("b.parquet", [1]))
    del info["operationMetrics"][names[0]]
    table.commit({"commitInfo": info}, table.remove("b.parquet"), table.add("c.parquet", [1]))
    assert changed(alluvium.open(table.url).changes(1)) == [(1, "v1", "delete", 2), (1, "v1", "insert", 2)]


def test_partition_values_come_from_the_log(table: ChangeTable) -> None:
    """ "Actual partition values for a file must be read from the transaction log." """
    table.commit(protocol(), metadata(partition_by=["v"]))
    for n, value in enumerate(["a", None]):
        table.rows(f"{n}.parquet", id=[n])
        table.commit(table.add(f"{n}.parquet", partitionValues={"v": value}))
    table.rows("_change_data/c.parquet", id=[0], _change_type=["delete"])
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {"v": "a"}, "size": 1, "dataChange": False}
    table.commit(table.remove("0.parquet", partitionValues={"v": "a"}), {"cdc": cdc})
    t = alluvium.open(table.url)
    assert changed(t.changes(0, where="v = 'a'")) == [(0, "a", "delete", 3), (0, "a", "insert", 1)]
    assert t.changes(0, where="v is null")["_commit_version"].to_pylist() == [2]


def test_a_table_that_was_partitioned_anew_within_the_range(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.rows("b.parquet", id=[2])
    table.commit(
        metadata(partition_by=["v"]), table.remove("a.parquet"), table.add("b.parquet", partitionValues={"v": "x"})
    )
    found = changed(alluvium.open(table.url).changes(0))
    assert found == [(1, "v1", "delete", 1), (1, "v1", "insert", 0), (2, "x", "insert", 1)]


def test_vectors_that_change_in_files_of_several_layouts(table: ChangeTable) -> None:
    """Rows that were deleted before are not deleted once more, whatever partition columns the files have."""
    plain, parted = {"stats": '{"numRecords":3}'}, {"stats": '{"numRecords":3}', "partitionValues": {"v": "x"}}
    table.commit(VECTORS, metadata(), table.add("a.parquet", [1, 2, 3], deletionVector=vector([0]), **plain))
    table.rows("b.parquet", id=[4, 5, 6])
    table.commit(metadata(partition_by=["v"]), table.add("b.parquet", deletionVector=vector([2]), **parted))
    table.commit(
        table.remove("a.parquet", deletionVector=vector([0])),
        table.add("a.parquet", deletionVector=vector([0, 1]), **plain),
        table.remove("b.parquet", deletionVector=vector([2]), partitionValues={"v": "x"}),
        table.add("b.parquet", deletionVector=vector([0, 2]), **parted),
    )
    assert changed(alluvium.open(table.url).changes(2)) == [(2, "v2", "delete", 2), (4, "x", "delete", 2)]


def test_a_remove_that_says_nothing_of_its_file_is_completed(table: ChangeTable) -> None:
    """ "`extendedFileMetadata`: When `true` the fields `partitionValues`, `size`, and `tags` are present" """
    bare = {"deletionTimestamp": 0, "dataChange": True}
    table.commit(protocol(), metadata(partition_by=["v"]))
    for n in range(3):
        table.rows(f"{n}.parquet", id=[n])
        table.commit(table.add(f"{n}.parquet", partitionValues={"v": f"p{n}"}))
    table.commit(*({"remove": {"path": f"{n}.parquet", **bare}} for n in range(3)))
    t = alluvium.open(table.url)
    expected = [(n, f"p{n}", "delete", 4) for n in range(3)]
    assert changed(t.changes(4)) == expected
    assert [row for row in changed(t.changes(2)) if row[2] == "delete"] == expected
    source = load_changes(load_snapshot(open_store(table.url)), Bound(4))
    assert source.size_bytes == sum((table.root / f"{n}.parquet").stat().st_size for n in range(3))


def test_a_remove_of_a_file_of_the_first_version_is_completed(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.commit({"remove": {"path": "a.parquet", "deletionTimestamp": 0, "dataChange": True}})
    assert changed(alluvium.open(table.url).changes(1)) == [(1, "v1", "delete", 1)]


def test_a_remove_is_completed_by_what_stood_before_the_whole_range(table: ChangeTable) -> None:
    """Behind it follow versions in which the file is gone: the state is asked for before the first of them."""
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]), table.add("b.parquet", [2]))
    table.commit({"remove": {"path": "a.parquet", "deletionTimestamp": 0, "dataChange": True}})
    table.commit(table.add("c.parquet", [3]))
    table.commit(table.remove("b.parquet"))
    assert changed(alluvium.open(table.url).changes(1)) == [
        (1, "v1", "delete", 1), (2, "v2", "delete", 3), (3, "v3", "insert", 2)
    ]  # fmt: skip


def test_a_remove_of_a_file_that_nobody_added(table: ChangeTable) -> None:
    table.commit(protocol(), metadata())
    table.commit({"remove": {"path": "x.parquet", "dataChange": True}})
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(table.url).changes(1)
    assert (caught.value.code, caught.value.path) == ("unknown-file-removed", "x.parquet")


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_feed_must_be_on_in_the_whole_range(table: ChangeTable, first: int) -> None:
    table.commit(protocol(), metadata(properties={}))
    table.commit(metadata(), table.add("a.parquet", [1]))
    table.commit(metadata(properties={"delta.enableChangeDataFeed": "False"}))
    table.commit(table.add("b.parquet", [2]))
    table.commit(metadata(properties={"delta.enableChangeDataFeed": "TRUE"}), table.add("c.parquet", [3]))
    t = alluvium.open(table.url)
    with pytest.raises(InvalidRequest) as caught:
        t.changes(first)
    assert caught.value.code == "change-feed-disabled"
    assert caught.value.version == (0 if first == 0 else 2)
    assert f"from version {1 if first == 0 else 4}" in (caught.value.hint or "")
    assert changed(t.changes(1, 1)) == [(1, "v1", "insert", 1)]
    assert changed(t.changes(4)) == [(3, "v3", "insert", 4)]


def test_columns_that_were_added_are_null_before(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    wider = Struct((*SCHEMA.fields, Field("w", DOUBLE)))
    table.commit(metadata(wider))
    table.rows("b.parquet", id=[2], v=["x"], w=[0.5])
    table.commit(table.add("b.parquet"))
    t = alluvium.open(table.url)
    assert changed(t.changes(0, 1)) == [(1, "v1", None, "insert", 0)]
    assert changed(t.changes(0)) == [(1, "v1", None, "insert", 0), (2, "x", 0.5, "insert", 2)]
    # A view of an older version knows nothing of what came later.
    older = alluvium.open(table.url, version=0)
    assert changed(older.changes(0, 99)) == [(1, "v1", "insert", 0)]


def test_a_column_that_came_without_nulls_has_them_in_rows_of_before(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.commit(metadata(Struct((*SCHEMA.fields, Field("w", DOUBLE, False)))))
    table.rows("b.parquet", id=[2], v=["x"], w=[0.5])
    table.commit(table.add("b.parquet"))
    t = alluvium.open(table.url)
    whole, later = t.changes(0), t.changes(2)
    assert whole.schema.field("w").nullable and sorted(whole["w"].to_pylist(), key=str) == [0.5, None]
    assert not later.schema.field("w").nullable and later["w"].to_pylist() == [0.5]
    assert whole.schema.field("id").nullable == later.schema.field("id").nullable


@pytest.mark.parametrize(
    ("later", "column"),
    [
        (Struct((Field("id", LONG),)), "v"),
        (Struct((Field("id", LONG), Field("other", STRING))), "v"),
        (Struct((Field("id", STRING), Field("v", STRING))), "id"),
        (Struct((Field("id", LONG, False), Field("v", STRING))), "id"),
    ],
)
def test_a_range_without_a_common_schema_is_refused(table: ChangeTable, later: Struct, column: str) -> None:
    table.commit(protocol(), metadata(), table.add("a.parquet", [1]))
    table.commit(metadata(later))
    t = alluvium.open(table.url)
    with pytest.raises(InvalidRequest) as caught:
        t.changes(0)
    assert (caught.value.code, caught.value.column, caught.value.version) == ("incompatible-schema", column, 0)
    assert t.changes(1).num_rows == 0


def test_types_may_be_widened_in_the_range(table: ChangeTable) -> None:
    """ "Readers must be able to read data files that were written before the type change" """
    narrow, wide = (Struct((Field("id", kind), Field("v", STRING))) for kind in (INTEGER, LONG))
    widening = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening", "changeDataFeed"]}
    table.commit(protocol(3, 7, **widening), metadata(narrow))
    table.rows("a.parquet", id=pa.array([1], pa.int32()), v=["x"])
    table.commit(table.add("a.parquet"))
    table.commit(metadata(wide), table.add("b.parquet", [1 << 40]))
    found = alluvium.open(table.url).changes(0)
    assert found.schema.field("id").type == pa.int64()
    assert changed(found) == [(1, "x", "insert", 1), (1 << 40, f"v{1 << 40}", "insert", 2)]


def test_a_table_that_has_a_column_of_the_feed_itself(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(Struct((Field("_Commit_Version", LONG),))))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.open(table.url).changes(0)
    assert caught.value.code == "reserved-column"


@pytest.mark.parametrize("kind", ["missing", "damaged"])
def test_a_cdc_file_that_is_gone_or_cut(table: ChangeTable, kind: str) -> None:
    table.commit(protocol(), metadata(), table.cdc("c.parquet", [(1, "a", "delete")]))
    path = table.root / "_change_data" / "c.parquet"
    path.unlink() if kind == "missing" else path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises((NotFound, CorruptTable)) as caught:
        alluvium.open(table.url).changes(0)
    assert caught.value.code == {"missing": "missing-file", "damaged": "damaged-file"}[kind]
    assert caught.value.path == "_change_data/c.parquet"


def test_a_cdc_path_that_leads_out_of_the_table(table: ChangeTable) -> None:
    table.commit(protocol(), metadata(), table.cdc("c.parquet", [(1, "a", "delete")], path="../x.parquet"))
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(table.url).changes(0)
    assert caught.value.code == "path-escapes-root"


def test_a_version_of_the_range_that_needs_another_reader(table: ChangeTable) -> None:
    table.commit(protocol(3, 7, readerFeatures=["fromTheFuture"], writerFeatures=["fromTheFuture"]), metadata())
    table.commit(protocol())
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.open(table.url).changes(0)
    assert caught.value.features == ("fromTheFuture",)


def test_a_log_that_was_cleaned_up(table: ChangeTable) -> None:
    for n in range(4):
        head = (protocol(), metadata()) if n == 0 else ()
        table.commit(*head, table.add(f"{n}.parquet", [n]))
    write_checkpoint_at(load_snapshot(open_store(table.url), 2))
    for n in range(2):
        (table.root / "_delta_log" / f"{n:020d}.json").unlink()
    t = alluvium.open(table.url)
    assert changed(t.changes(2)) == [(2, "v2", "insert", 2), (3, "v3", "insert", 3)]
    assert changed(t.changes(2, 2)) == [(2, "v2", "insert", 2)]
    with pytest.raises(NotFound) as caught:
        t.changes(1)
    assert (caught.value.code, caught.value.version) == ("missing-version", 1)
    assert "from version 2" in (caught.value.hint or "")


class CountingStore(MemoryStore):
    """Notes which objects are read."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name, path)
        self.reads: list[str] = []

    def get(self, path: str) -> bytes:
        self.reads.append(path)
        return super().get(path)


def test_a_log_entry_is_read_once_and_not_more_than_needed(table: ChangeTable) -> None:
    store = CountingStore("feed", "/t")
    for n in range(30):
        head = (protocol(), metadata()) if n == 0 else ()
        table.commit(*head, table.add(f"{n}.parquet", [n]))
        name = f"_delta_log/{n:020d}.json"
        store.put(name, (table.root / name).read_bytes())
    snapshot = load_snapshot(store)
    store.reads.clear()
    source = load_changes(snapshot, Bound(20))
    source.plan_scan(None)
    source.plan_scan(None)
    assert sorted(store.reads) == [f"_delta_log/{n:020d}.json" for n in range(20, 30)]
