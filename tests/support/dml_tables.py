"""Small partitioned tables for the tests of DELETE, UPDATE and MERGE, and what their newest commit says."""

from __future__ import annotations

import json
from pathlib import Path

from templates import copy_of

import alluvium
from alluvium import DeltaTable

MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}


def make(spark, path: str, properties: dict[str, str], rows: int = 20) -> DeltaTable:
    """`id` from 0, `p` = id % 2 (the partition), `v` = "v" + id; a file a partition."""
    copy_of((__name__, *properties.items(), rows), path, lambda new: _make(spark, new, properties, rows))
    return DeltaTable.forPath(spark, path)


def _make(spark, path: str, properties: dict[str, str], rows: int) -> None:
    builder = DeltaTable.create(spark).location(path).addColumn("id", "long").addColumn("p", "int")
    builder = builder.addColumn("v", "string").partitionedBy("p")
    for key, value in properties.items():
        builder = builder.property(key, value)
    builder.execute()
    df = spark.range(rows).selectExpr("id", "cast(id % 2 as int) as p", "concat('v', id) as v")
    alluvium.write(df.coalesce(1), path, mode="append")


def last(path: str, key: str) -> list[dict]:
    """The actions of one kind in the newest commit."""
    newest = sorted(Path(path, "_delta_log").glob("*.json"))[-1]
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    return [line[key] for line in lines if key in line]


def rows_of(table: DeltaTable) -> list:
    """All rows, by their first column."""
    return sorted(table.toDF().collect(), key=lambda row: row[0])


def tracked(path: str) -> list[dict]:
    """The rows' ids and the versions that changed them."""
    return alluvium.open(path).to_arrow(["id", "_row_id", "_row_commit_version"]).to_pylist()
