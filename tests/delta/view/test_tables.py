"""Tables about a table, of versions written by hand and by `alluvium.write`."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from stream_log import Log, add

import alluvium
from alluvium.delta.terms.spec import Metadata
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.tables import METADATA_TABLES, live_files
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.storage.open import open_store

DATA = pa.table({"id": [1, 2, 3, 4, 5], "day": ["a", "a", None, "b", "a"]})
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(params=[{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def t(request: pytest.FixtureRequest) -> alluvium.Table:
    url = f"memory://{uuid.uuid4().hex}/t"
    alluvium.write(DATA, url, partition_by=["day"], **VECTORS, **request.param)
    alluvium.write(DATA.slice(0, 1), url, mode="append", txnAppId="nightly", txnVersion=7)
    alluvium.DeltaTable.forPath(url).delete("id = 5")
    return alluvium.open(url)


def rows(t: alluvium.Table, name: str) -> list[dict[str, Any]]:
    return t.metadata(name).to_pylist(maps_as_pydicts="strict")


def test_metadata_are_the_action_and_its_tables(t: alluvium.Table) -> None:
    action = t.snapshot.config.metadata
    assert t.metadata == action and action == t.metadata and isinstance(t.metadata, Metadata)
    assert t.metadata.partition_columns == ("day",)
    assert t.metadata != alluvium.open(t.url, version=0).schema
    assert msgspec.json.encode(t.metadata) == msgspec.json.encode(action)


def test_files(t: alluvium.Table) -> None:
    found = t.metadata("files")
    same = t.files()
    assert found.select(same.column_names).equals(same)
    assert sorted((r["num_rows"], r["deleted_rows"]) for r in found.to_pylist()) == [(1, 0), (1, 0), (1, 0), (2, 1)]


def test_partitions_are_what_their_files_have_together(t: alluvium.Table) -> None:
    found = {row["partition"]["day"]: row for row in rows(t, "partitions")}
    assert {day: (r["files"], r["num_rows"], r["deleted_rows"]) for day, r in found.items()} == {
        "a": (2, 3, 1),
        "b": (1, 1, 0),
        None: (1, 1, 0),
    }
    assert sum(row["size"] for row in found.values()) == sum(t.files()["size"].to_pylist())


def test_a_table_without_partitions_is_one() -> None:
    url = f"memory://{uuid.uuid4().hex}/t"
    for _ in range(2):
        alluvium.write(DATA, url, mode="append")
    (row,) = rows(alluvium.open(url), "partitions")
    assert (row["partition"], row["files"], row["num_rows"]) == ({}, 2, 10)
    alluvium.DeltaTable.forPath(url).delete()
    assert rows(alluvium.open(url), "partitions") == []
    assert alluvium.open(url).metadata("files").num_rows == 0


def test_commits_are_the_history(t: alluvium.Table) -> None:
    assert t.metadata("commits").equals(t.history().to_arrow())
    assert [row["version"] for row in rows(t, "commits")] == [2, 1, 0]


def test_columns(t: alluvium.Table) -> None:
    one, two = rows(t, "columns")
    assert (one["column"], one["type"], one["nullable"], one["partition_index"]) == ("id", "bigint", True, None)
    assert (two["column"], two["type"], two["partition_index"]) == ("day", "string", 0)
    is_mapped = "delta.columnMapping.mode" in t.properties
    assert (one["physical_name"] != "id") == is_mapped
    assert ("delta.columnMapping.id" in one["metadata"]) == is_mapped


def test_features(t: alluvium.Table) -> None:
    found = {row["feature"]: row for row in rows(t, "features")}
    vectors = found["deletionVectors"]
    assert (vectors["for_readers"], vectors["listed"], vectors["used"]) == (True, True, True)
    assert vectors["readable"] and vectors["writable"]
    assert (found["appendOnly"]["used"], found["appendOnly"]["for_readers"]) == (False, False)
    assert ("columnMapping" in found) == ("delta.columnMapping.mode" in t.properties)


def test_features_of_a_legacy_protocol_are_implied() -> None:
    url = f"memory://{uuid.uuid4().hex}/t"
    alluvium.write(DATA, url, **{"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"})
    t = alluvium.open(url)
    assert (t.protocol.min_reader_version, t.protocol.min_writer_version) == (1, 2)
    assert {row["feature"]: row["listed"] for row in rows(t, "features")} == {"appendOnly": False, "invariants": False}


def test_transactions(t: alluvium.Table) -> None:
    (row,) = rows(t, "transactions")
    assert (row["app_id"], row["version"]) == ("nightly", 7)
    assert rows(alluvium.open(t.url, version=0), "transactions") == []


def test_a_name_that_no_table_has(t: alluvium.Table) -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'partitions'") as caught:
        t.metadata("partition")
    assert caught.value.code == "unknown-metadata-table"
    with pytest.raises(InvalidRequest, match="metadata"):
        t.system("files")


def written() -> alluvium.Table:
    """A log by hand: two commits of files of two partitions under a protocol that lists features, one of which nobody knows."""
    url = f"memory://{uuid.uuid4().hex}/t"
    fields = [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "a number", "n": 1, "list": [1, "x"], "s": "text"}},
        {"name": "d", "type": "decimal(5,2)", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}}, {"name": "q", "type": "integer", "nullable": True, "metadata": {}},
    ]  # fmt: skip
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": ["q", "p"], "configuration": {"delta.enableRowTracking": "true", "delta.appendOnly": "true"}}  # fmt: skip
    writers = ["appendOnly", "rowTracking", "domainMetadata", "checkConstraints", "future-of-writers", "v2Checkpoint"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": writers,
    }

    def add(
        name: str, q: str | None, p: str | None, size: int, rows: int | None, moment: int, **more: Any
    ) -> dict[str, Any]:
        stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
        values = {"q": q, "p": p}
        return {
            "add": {
                "path": name,
                "partitionValues": values,
                "size": size,
                "modificationTime": moment,
                "dataChange": True,
                **stats,
                **more,
            }
        }

    commits = [
        [{"commitInfo": {"timestamp": 5, "operation": "WRITE"}}, {"protocol": protocol}, {"metaData": metadata},
         add("a", "1", "x", 10, 3, 7_000, baseRowId=0, defaultRowCommitVersion=0, tags={"k": "v"}),
         add("b", "1", "x", 20, 4, 9_000, baseRowId=3, defaultRowCommitVersion=0, clusteringProvider="liquid"),
         {"txn": {"appId": "z", "version": 4, "lastUpdated": 11}}],
        [{"commitInfo": {"timestamp": 6, "operation": "WRITE"}}, add("c", "2", None, 30, None, 8_000), add("d", "2", None, 1, 5, 1_000),
         add("e", None, "x", 5, 1, 2_000), {"txn": {"appId": "a", "version": 9}}, {"txn": {"appId": "z", "version": 5, "lastUpdated": 12}}],
    ]  # fmt: skip
    store = open_store(url)
    for version, actions in enumerate(commits):
        store.put(f"_delta_log/{version:020}.json", "\n".join(map(json.dumps, actions)).encode())
    return alluvium.open(url)


def at(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)


def test_every_value_of_files() -> None:
    found = {row["path"]: row for row in rows(written(), "files")}
    nothing = {"base_row_id": None, "default_row_commit_version": None, "clustering_provider": None, "tags": None}
    assert found["a"] == {
        "path": "a", "size": 10, "num_rows": 3, "partition": {"q": "1", "p": "x"}, "modification_time": at(7_000), "deleted_rows": 0,
        **nothing, "base_row_id": 0, "default_row_commit_version": 0, "tags": {"k": "v"},
    }  # fmt: skip
    assert (found["b"]["clustering_provider"], found["b"]["base_row_id"]) == ("liquid", 3)
    assert found["c"] == {
        "path": "c", "size": 30, "num_rows": None, "partition": {"q": "2", "p": None}, "modification_time": at(8_000), "deleted_rows": 0,
        **nothing,
    }  # fmt: skip


def test_every_value_of_partitions() -> None:
    found = rows(written(), "partitions")
    assert sorted(found, key=lambda row: row["size"]) == [
        {"partition": {"q": None, "p": "x"}, "files": 1, "size": 5, "num_rows": 1, "deleted_rows": 0, "modification_time": at(2_000)},
        {"partition": {"q": "1", "p": "x"}, "files": 2, "size": 30, "num_rows": 7, "deleted_rows": 0, "modification_time": at(9_000)},
        # A file that does not say how many rows it has makes the sum unknown.
        {"partition": {"q": "2", "p": None}, "files": 2, "size": 31, "num_rows": None, "deleted_rows": 0, "modification_time": at(8_000)},
    ]  # fmt: skip


def test_every_value_of_columns() -> None:
    shared = {"comment": None, "metadata": {}, "nullable": True, "partition_index": None}
    assert rows(written(), "columns") == [
        {**shared, "column": "id", "type": "bigint", "nullable": False, "comment": "a number", "physical_name": "id",
         "metadata": {"n": "1", "list": '[1,"x"]', "s": "text"}},
        {**shared, "column": "d", "type": "decimal(5,2)", "physical_name": "d"},
        {**shared, "column": "p", "type": "string", "physical_name": "p", "partition_index": 1},
        {**shared, "column": "q", "type": "int", "physical_name": "q", "partition_index": 0},
    ]  # fmt: skip


def test_every_value_of_features() -> None:
    found = {row.pop("feature"): tuple(row.values()) for row in rows(written(), "features")}
    # For readers, listed, used, readable, writable.
    assert found == {
        "appendOnly": (False, True, True, True, True),
        "checkConstraints": (False, True, False, True, True),
        "domainMetadata": (False, True, None, True, True),
        "future-of-writers": (False, True, None, True, False),
        "rowTracking": (False, True, True, True, True),
        "v2Checkpoint": (True, True, False, True, True),
    }


def test_every_value_of_transactions() -> None:
    assert rows(written(), "transactions") == [
        {"app_id": "a", "version": 9, "last_updated": None},
        {"app_id": "z", "version": 5, "last_updated": at(12)},
    ]


@pytest.mark.parametrize("mapped", [False, True])
def test_partition_values_of_some_of_the_files(mapped: bool) -> None:
    """Under the columns' names, whatever part of the log's lists is looked at; other keys are what they are."""
    names = {"q": "c-q", "p": "c-p"} if mapped else {"q": "q", "p": "p"}
    said = {
        name: {"delta.columnMapping.id": n, "delta.columnMapping.physicalName": names.get(name, name)}
        for n, name in enumerate(("id", "q", "p"))
    }
    fields = [
        {"name": name, "type": "string", "nullable": True, "metadata": said[name] if mapped else {}}
        for name in ("id", "q", "p")
    ]
    configuration = {"delta.columnMapping.mode": "name"} if mapped else {}
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": ["q", "p"], "configuration": configuration}  # fmt: skip
    adds = [
        {
            "add": {
                "path": f"f{n}",
                "partitionValues": {names["p"]: str(n), "odd": "x", names["q"]: None},
                "size": 1,
                "modificationTime": 0,
                "dataChange": True,
            }
        }
        for n in range(6)
    ]
    url = f"memory://{uuid.uuid4().hex}/t"
    lines = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": metadata}, *adds]
    open_store(url).put(f"_delta_log/{0:020}.json", "\n".join(map(json.dumps, lines)).encode())
    snapshot = load_snapshot(open_store(url))
    files = pa.concat_tables([snapshot.files.slice(4, 2), snapshot.files.slice(1, 3)])
    some = replace(snapshot, state=replace(snapshot.state, files=files), _found={})
    found = live_files(some).select(["path", "partition"]).to_pylist(maps_as_pydicts="strict")
    assert found == [{"path": f"f{n}", "partition": {"p": str(n), "odd": "x", "q": None}} for n in (4, 5, 1, 2, 3)]
    chosen = live_files(some, parse_predicate("p = '2' or p = '5'", snapshot.config.schema))
    assert [row["partition"]["p"] for row in chosen.to_pylist(maps_as_pydicts="strict")] == ["5", "2"]
    assert chosen["modification_time"].type == pa.timestamp("ms", tz="UTC")


def test_features_under_the_names_of_drafts() -> None:
    """What is listed is told as it is listed, and what a legacy version implies beside it only once."""
    writers = ["typeWidening-preview", "columnInvariants", "catalogOwned-preview"]
    log = Log(
        "tables-drafts",
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": writers}},
        add("a"),
    )
    found = {
        row.pop("feature"): tuple(row.values())
        for row in METADATA_TABLES["features"](load_snapshot(log.store)).to_pylist()
    }
    # For readers, listed, used, readable, writable.
    assert found == {
        "catalogOwned-preview": (False, True, None, True, False), "columnInvariants": (False, True, False, True, True),
        "typeWidening-preview": (False, True, False, True, True),
    }  # fmt: skip
    older = Log(
        "tables-legacy",
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        add("a"),
        delta__enableChangeDataFeed="true",
    )
    told = {
        row.pop("feature"): tuple(row.values())
        for row in METADATA_TABLES["features"](load_snapshot(older.store)).to_pylist()
    }
    assert told["columnMapping"] == (True, False, False, True, True) and told["changeDataFeed"] == (
        False,
        False,
        True,
        True,
        True,
    )
    assert set(told) == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
    }


def test_tables_that_there_are() -> None:
    assert list(METADATA_TABLES) == ["files", "commits", "partitions", "columns", "features", "transactions"]
