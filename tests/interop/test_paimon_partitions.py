"""Partitions that are dropped: of two copies of a table ours and Java's `truncatePartitions` leave the same, and Java goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from reference_engine import NEEDS_PAIMON, paimon
from test_paimon_life import Java

import alluvium
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.upkeep.removal.drop_partitions import drop_partitions
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON

COLUMNS = [
    {"name": "k", "type": "INT NOT NULL"},
    {"name": "p", "type": "INT NOT NULL"},
    {"name": "q", "type": "STRING NOT NULL"},
]
ROWS = [[k, p, q] for k, (p, q) in enumerate((p, q) for p in (1, 2) for q in ("x", "a/b=c"))]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"primaryKeys": ["k", "p", "q"], "options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
        {"primaryKeys": ["k", "p", "q"], "options": {"bucket": "2", "changelog-producer": "input"}},
    ],
    ids=["append", "vectors", "changelog"],
)
def test_both_drop_alike(tmp_path: Path, options: dict[str, Any]) -> None:
    java = Java(tmp_path, tmp_path / "t")
    java.does(create={"fields": COLUMNS, "partitionKeys": ["p", "q"], **options})
    java.does(write={"rows": ROWS})
    java.does(write={"rows": ROWS[::2]})
    java.run()
    shutil.copytree(tmp_path / "t", tmp_path / "twin")
    steps = [{"drop_partition": [{"p": "1", "q": "a/b=c"}, {"p": "2", "q": "x"}]}]
    paimon(tmp_path, {"table": str(tmp_path / "twin"), "steps": steps})
    url = str(tmp_path / "t")
    wanted = [(1, "a/b=c"), (2, "x")]
    done = drop_partitions(
        load_snapshot(open_store(url), At()),
        lambda values: [at for at, row in enumerate(values.to_pylist()) if (row["p"], row["q"]) in wanted],
    )
    assert done.attempts == 1

    def told(name: str, table: str) -> list[dict[str, Any]]:
        return alluvium.open(str(tmp_path / name)).system(table).to_pylist()

    for table, columns in [
        ("partitions", ("partition", "record_count", "file_count")),
        ("snapshots", ("snapshot_id", "commit_kind", "total_record_count", "delta_record_count")),
        ("table_indexes", ("partition", "index_type", "row_count")),
    ]:
        ours, theirs = ([{c: row[c] for c in columns} for row in told(name, table)] for name in ("t", "twin"))
        assert sorted(map(str, ours)) == sorted(map(str, theirs)), table
    left = alluvium.open(url).to_arrow()["k"].to_pylist()
    java.reads(sorted(left))
    java.does(write={"rows": [[9, 2, "x"]]})
    java.does(compact={"full": True})
    java.reads(sorted([*left, 9]))
    java.run()
    assert sorted(alluvium.open(url).to_arrow()["k"].to_pylist()) == sorted([*left, 9])
