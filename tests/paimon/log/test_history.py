"""The history of a Paimon table: a row a snapshot, newest first."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from paimon_tables import write_readings

from alluvium.paimon import PaimonTable
from alluvium.paimon.log.history import HISTORY, read_history
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.open import open_store


def test_every_snapshot_up_to_this_one(tmp_path: Path) -> None:
    write_readings(tmp_path / "t")
    last = tmp_path / "t" / "snapshot" / "snapshot-3"
    document = json.loads(last.read_text())
    last.write_text(json.dumps({**document, "changelogRecordCount": 5, "commitKind": "COMPACT", "schemaId": 0}))
    store = open_store(str(tmp_path / "t"))
    found = read_history(load_snapshot(store, At()))
    assert found.schema == HISTORY
    assert [row["version"] for row in found.to_pylist()] == [3, 2, 1]
    newest = found.to_pylist()[0]
    assert newest["timestamp"].timestamp() * 1000 == 1_700_000_180_000
    assert (newest["userId"], newest["operation"]) == ("test", "COMPACT")
    assert newest["operationParameters"] == [("commitIdentifier", "3"), ("schemaId", "0")]
    counts = [("totalRecordCount", "5"), ("deltaRecordCount", "1"), ("changelogRecordCount", "5")]
    assert newest["operationMetrics"] == counts
    assert found.to_pylist()[2]["operationMetrics"] == [("totalRecordCount", "2"), ("deltaRecordCount", "2")]
    assert read_history(load_snapshot(store, At()), 2)["version"].to_pylist() == [3, 2]
    assert read_history(load_snapshot(store, At(snapshot_id=2)))["version"].to_pylist() == [2, 1]


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int64())]))
    none = read_history(load_snapshot(open_store(str(tmp_path / "t")), At()))
    assert none.schema == HISTORY and none.num_rows == 0
