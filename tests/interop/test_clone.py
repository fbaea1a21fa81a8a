"""Clones beside delta-spark: it reads ours, whose files and vectors lie elsewhere, and goes on with them."""

from __future__ import annotations

from pathlib import Path

from plain_writer import SCHEMA, commit_rows, open_target
from reference_engine import NEEDS_REFERENCE, judge
from vacuumed_tables import mask_first_file, newest

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.storage.open import open_store

pytestmark = NEEDS_REFERENCE


def test_delta_spark_goes_on_with_clones(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s é%20+#")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    config = table_config(NewTable(SCHEMA, ("p",), properties))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    commit_rows(open_target(store), [1, 2], "a b%c")
    commit_rows(open_target(store), [3, 4, 5], "é:+")
    mask_first_file(store)
    left = sorted(alluvium.open(store.url).to_arrow()["id"].to_pylist())
    tables = []
    for name, shallow in (("shallow c%", True), ("deep d#", False)):
        clone(newest(store), open_store(tmp_path / name), None, CloneRequest("delta.`s`", shallow))
        tables.append(str(tmp_path / name))
    (answer,) = judge(tmp_path, [{"tables": tables, "changed": tables[0]}], "reference_clones")
    assert answer["error"] is None, answer["error"]
    after = sorted([*(n for n in left if n != 4), 100])
    told = {"source": "delta.`s`", "sourceVersion": "3"}
    assert answer["result"] == [[[left, "CLONE", told]] * 2, after]
    rows = alluvium.open(tables[0]).to_arrow(columns=["id", "_row_id"]).to_pylist()
    assert sorted(row["id"] for row in rows) == after
    assert len({row["_row_id"] for row in rows}) == len(rows)
    assert sorted(alluvium.open(store.url).to_arrow()["id"].to_pylist()) == left
