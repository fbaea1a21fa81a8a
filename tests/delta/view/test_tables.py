"""Tables about a table, of versions written by hand and by `alluvium.write`."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import alluvium
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest

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
