"""Tables whose checkpoints have statistics as columns alone: files that are committed again keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.maintenance import write_checkpoint
from alluvium.errors import CorruptTable

BOUNDS = {"minValues": {"id": 0}, "maxValues": {"id": 4}, "nullCount": {"id": 0}, "numRecords": 5}


@pytest.fixture
def url(tmp_path: Path) -> str:
    properties: dict[str, Any] = {
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.enableDeletionVectors": "true",
    }
    alluvium.write(pa.table({"id": [0, 1, 2, 3, 4]}), str(tmp_path), **properties)
    write_checkpoint(str(tmp_path))
    return str(tmp_path)


def said(url: str) -> list[dict[str, object]]:
    """The statistics in each commit that adds a file, the newest last."""
    found = []
    for commit in sorted(Path(url, "_delta_log").glob("*.json")):
        adds = [json.loads(line).get("add") for line in commit.read_text().splitlines()]
        found += [json.loads(add["stats"]) for add in adds if add is not None]
    return found


def test_a_file_that_gets_a_vector_keeps_its_bounds(url: str) -> None:
    DeltaTable.forPath(url).delete("id = 1")
    assert said(url)[-1] == {**BOUNDS, "tightBounds": False}


def test_rows_are_numbered_and_their_numbers_go_again(url: str) -> None:
    table = DeltaTable.forPath(url)
    table.setProperties({"delta.enableRowTracking": "true"})
    assert alluvium.open(url).to_arrow(columns=["id", "_row_id"])["_row_id"].to_pylist() == [0, 1, 2, 3, 4]
    write_checkpoint(url)
    table.dropFeatureSupport("rowTracking")
    assert len(said(url)) == 3
    assert all({**BOUNDS, **one} == one for one in said(url))


def test_rows_are_counted_where_files_are_put_together(url: str) -> None:
    alluvium.write(pa.table({"id": [7]}), url, mode="append")
    write_checkpoint(url)
    (path,) = [file["path"] for file in alluvium.open(url).files().to_pylist() if file["num_rows"] == 5]
    # It is another file, which is shorter.
    data = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [0, 1]}), data)
    Path(url, path).write_bytes(data.getvalue().to_pybytes())
    with pytest.raises(CorruptTable) as caught:
        DeltaTable.forPath(url).optimize().executeCompaction()
    assert caught.value.code == "num-records-differ"
