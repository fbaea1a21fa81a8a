"""The same DELETE, UPDATE and MERGE in both engines: equal rows, change feeds, row ids and histories."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from dml_tables import MODES, make
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium import DeltaTable

pytestmark = [
    *NEEDS_REFERENCE,
    pytest.mark.skipif(
        "ALLUVIUM_SCENARIOS" not in os.environ, reason="never run yet: set ALLUVIUM_SCENARIOS=1 to compare row changes"
    ),
]

SOURCE = "(select * from values (5L, 1, 's5'), (6L, 0, 's6'), (100L, 1, 's100') as s(id, p, v))"
STEPS = [
    "DELETE FROM {table} WHERE id = 3",
    "UPDATE {table} SET v = concat(v, '!') WHERE id IN (4, 5)",
    f"MERGE INTO {{table}} t USING {SOURCE} s ON t.id = s.id WHEN MATCHED AND s.id = 6 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    f"MERGE INTO {{table}} t USING {SOURCE} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'q' "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 10 THEN UPDATE SET v = 'n' "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 11 THEN DELETE",
    "DELETE FROM {table} WHERE p = 0",
    "UPDATE {table} SET v = 'all'",
]
#: Times differ, sizes and files go by how each engine spreads rows.
COUNTS = (
    "numDeletedRows", "numUpdatedRows", "numCopiedRows", "numTargetRowsInserted", "numTargetRowsUpdated",
    "numTargetRowsDeleted", "numTargetRowsMatchedUpdated", "numTargetRowsNotMatchedBySourceDeleted", "numSourceRows",
)  # fmt: skip
#: Feed and identities together: what depends on both is the hardest.
PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}


def ours(spark, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    source = spark.sql(f"select * from {SOURCE}").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    table.delete("id = 3")
    table.update("id in (4, 5)", {"v": "concat(v, '!')"})
    merge.whenMatchedDelete("s.id = 6").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    merge.whenMatchedUpdate(set={"v": "'q'"}).whenNotMatchedBySourceUpdate(
        "t.id = 10", {"v": "'n'"}
    ).whenNotMatchedBySourceDelete("t.id = 11").execute()
    table.delete("p = 0")
    table.update(set={"v": "'all'"})


def rows(folder: Path) -> list[tuple]:
    return sorted(tuple(r.values()) for r in pq.read_table(folder).to_pylist())


def test_the_same_script_in_both(spark, tmp_path):
    jobs = []
    for mode, properties in MODES.items():
        plain = {"delta.enableDeletionVectors": "false"} if mode == "rewrite" else {}
        for engine in ("ours", "theirs"):
            make(spark, str(tmp_path / f"{engine}-{mode}"), {**properties, **PROPERTIES, **plain})
        ours(spark, str(tmp_path / f"ours-{mode}"))
        theirs = str(tmp_path / f"theirs-{mode}")
        jobs += [{"do": "statement", "table": theirs, "sql": sql} for sql in STEPS]
        for engine in ("ours", "theirs"):
            table = str(tmp_path / f"{engine}-{mode}")
            # Every version, so that each kind of commit is judged alone.
            jobs += [
                {
                    "do": "read", "table": table, "out": f"{table}-{v}", "version": v,
                    "columns": ["id", "p", "v", "_metadata.row_id as r", "_metadata.row_commit_version as c"],
                }
                for v in range(2, 8)
            ]  # fmt: skip
            jobs.append({
                "do": "read", "table": table, "out": f"{table}-feed",
                "options": {"readChangeFeed": "true", "startingVersion": "2"},
                "columns": ["id", "p", "v", "_change_type", "_commit_version"],
            })  # fmt: skip
    failed = [result for result in judge(tmp_path, jobs) if result]
    assert not failed
    for mode in MODES:
        mine, judged = (tmp_path / f"{engine}-{mode}" for engine in ("ours", "theirs"))
        for version in range(2, 8):
            left, right = (rows(Path(f"{table}-{version}")) for table in (mine, judged))
            # Fresh row ids go by files; those of rows that were there before must not move.
            assert [(i, p, v, r if i != 100 else None, c) for i, p, v, r, c in left] == [
                (i, p, v, r if i != 100 else None, c) for i, p, v, r, c in right
            ]
        assert rows(Path(f"{mine}-feed")) == rows(Path(f"{judged}-feed"))
        histories = [alluvium.open(str(table)).history() for table in (mine, judged)]
        for own, known in zip(*histories, strict=True):
            assert own["operation"] == known["operation"]
            assert {n: own["operationMetrics"].get(n) for n in COUNTS} == {
                n: known["operationMetrics"].get(n) for n in COUNTS
            }
