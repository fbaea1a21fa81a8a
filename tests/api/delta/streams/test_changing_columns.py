"""Streams with a log of columns: stopped at each change, agreed to, and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest


def stopped(streams, **options) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        streams.copy("t", "out", **options)
    assert isinstance(caught.value, StreamingQueryException)
    return caught.value


def test_columns_that_change(streams) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    rows = streams.spark.sql("select 1L id, 1 n, 'x' a")
    alluvium.write(rows, streams.path("t"), **properties)
    # The sink takes any columns.
    alluvium.write(streams.spark.sql("select 0L id, 0L n, 'x' a, 'x' b"), streams.path("out"))
    table = DeltaTable.forPath(streams.spark, streams.path("t"))
    tracked = {"schemaTrackingLocation": streams.path("out-checkpoint")}
    streams.copy("t", "out", **tracked)
    path = f"delta.`{streams.path('t')}`"
    streams.spark.sql(f"alter table {path} rename column a to b")
    streams.spark.sql(f"alter table {path} alter column n type bigint")
    alluvium.write(streams.spark.sql("select 2L id, 5000000000L n, 'y' b"), streams.path("t"), mode="append")
    changed = stopped(streams, **tracked)
    assert (changed.code, changed.version) == ("stream-metadata-changed", 1)
    assert changed.getCondition() == "DELTA_STREAMING_METADATA_EVOLUTION"
    for agreed in ({}, {"allowSourceColumnRename": "always"}):
        blocked = stopped(streams, **tracked, **agreed)
        assert (blocked.code, blocked.version) == ("stream-change-not-agreed", 2)
        assert "allowSourceColumnTypeChange" in str(blocked.hint)
    streams.copy("t", "out", **tracked, allowSourceColumnRename="2", allowSourceColumnTypeChange="always")
    found = alluvium.open(streams.path("out")).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["n"], row["a"], row["b"]) for row in found] == [
        (0, 0, "x", "x"),
        (1, 1, "x", None),
        (2, 5_000_000_000, None, "y"),
    ]
    places = [json.loads(text) for text in streams.offsets("out")]
    assert [(p["sourceVersion"], p["reservoirVersion"], p["index"]) for p in places] == [
        (1, 1, -1),
        (3, 1, -20),
        (3, 1, -19),
        (1, 4, -1),
    ]
    table_id = table.detail().collect()[0]["id"]
    log = Path(streams.path("out-checkpoint")) / f"_schema_log_{table_id}"
    entries = [json.loads((log / str(n)).read_text().splitlines()[1]) for n in range(3)]
    place = f"file:{streams.path('out-checkpoint')}/sources/0"
    assert [e["sourceMetadataPath"] for e in entries] == [place] * 3
    assert [(e["deltaCommitVersion"], e.get("previousMetadataSeqNum")) for e in entries] == [
        (0, None),
        (1, None),
        (2, 0),
    ]


def test_logs_that_are_not_the_querys(streams) -> None:
    streams.append("t", 0, 3)
    outside = stopped(streams, schemaTrackingLocation=streams.path("elsewhere"))
    assert outside.getCondition() == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    with pytest.raises(InvalidRequest):
        streams.read("t", schemaTrackingLocation=streams.path("out-checkpoint"), failOnDataLoss=False)
    checkpoint = streams.path("two-checkpoint")
    one = streams.read("t", schemaTrackingLocation=checkpoint, streamingSourceTrackingId="one")
    both = one.union(streams.read("t", schemaLocation=checkpoint, streamingSourceTrackingId="two"))
    streams.into(both, "two").awaitTermination()
    assert streams.ids("two") == [0, 0, 1, 1, 2, 2]
    found = {}
    for path in Path(checkpoint).glob("_schema_log_*/0"):
        found[path.parent.name.rpartition("_")[2]] = json.loads(path.read_text().splitlines()[1])["sourceMetadataPath"]
    assert found == {"one": f"file:{checkpoint}/sources/0", "two": f"file:{checkpoint}/sources/1"}
