"""What other writers say of a file stays with it, where the protocol has a place for it (decision 21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.maintenance import write_checkpoint

pytestmark = pytest.mark.spark

TAGS = {"x": "of another writer", "null": None}


def actions(url: Path, version: int, kind: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (url / f"_delta_log/{version:020}.json").read_text().splitlines())
    return [line[kind] for line in lines if kind in line]


def test_tags_and_statistics_of_files(spark, tmp_path: Path) -> None:
    url = tmp_path / "t"
    rows = spark.range(0, 1000, 1, 1).selectExpr("id", "id % 7 as n")
    alluvium.write(rows, str(url), **{"delta.enableDeletionVectors": "true"})
    first = url / "_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if add := line.get("add"):
            stats = json.dumps({**json.loads(add["stats"]), "xStats": {"a": [1]}})
            add |= {"tags": TAGS, "clusteringProvider": "liquid", "stats": stats, "xUnknown": {"a": 1}}
    first.write_text("\n".join(map(json.dumps, lines)) + "\n")
    for checksum in url.glob("_delta_log/*.crc"):
        checksum.unlink()
    table = DeltaTable.forPath(spark, str(url))
    table.delete("id = 5")
    (added,), (removed,) = actions(url, 1, "add"), actions(url, 1, "remove")
    assert added["deletionVector"]["cardinality"] == 1
    assert (added["tags"], added["clusteringProvider"], removed["tags"]) == (TAGS, "liquid", TAGS)
    assert json.loads(added["stats"])["xStats"] == {"a": [1]}
    # As delta-spark does, and may.
    assert "xUnknown" not in added and "xUnknown" not in removed
    table.restoreToVersion(0)
    (restored,) = actions(url, 2, "add")
    assert (restored["tags"], restored["clusteringProvider"], "deletionVector" in restored) == (TAGS, "liquid", False)
    write_checkpoint(str(url))
    (checkpoint,) = url.glob("_delta_log/*.checkpoint*.parquet")
    (row,) = [row for row in pq.read_table(checkpoint).column("add").to_pylist() if row is not None]
    assert (dict(row["tags"]), row["clusteringProvider"]) == (TAGS, "liquid")
    assert json.loads(row["stats"])["xStats"] == {"a": [1]}
    assert alluvium.read(spark, str(url)).count() == 1000
