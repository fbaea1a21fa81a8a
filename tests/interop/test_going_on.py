"""delta-spark goes on with tables that each verb and feature of ours wrote: it appends, deletes, updates, merges, restores,
optimises, writes a checkpoint and vacuums; then we go on again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dml_tables import make
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.maintenance import check_table, compact_commits, write_checkpoint

pytestmark = NEEDS_REFERENCE

MASKS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
V2 = {"delta.checkpointPolicy": "v2", "delta.enableInCommitTimestamps": "true"}


def changed_rows(spark, table: DeltaTable, path: str) -> None:
    """Every row verb: of rows 0 to 19 four are left out, two are updated, one is new."""
    table.delete("id in (7, 8)")
    table.delete("id = 9")
    table.update("id = 10", {"v": "'u'"})
    source = spark.sql("select * from values (11L, 1, 'm'), (12L, 0, 'gone'), (50L, 0, 'new') s(id, p, v)")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("s.v = 'gone'")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def overwritten(spark, table: DeltaTable, path: str) -> None:
    rows = spark.sql("select id, cast(id % 2 as int) p, concat('v', id) v from range(20)")
    alluvium.write(rows.where("p = 1"), path, mode="overwrite", replaceWhere="p = 1")
    alluvium.write(rows.where("p = 0"), path, mode="overwrite", partitionOverwriteMode="dynamic")
    alluvium.write(rows, path, mode="overwrite")
    changed_rows(spark, table, path)


def restored(spark, table: DeltaTable, path: str) -> None:
    changed_rows(spark, table, path)
    version = table.history(1).first()["version"]
    table.delete("id < 5")
    table.restoreToVersion(version)


def altered(spark, table: DeltaTable, path: str) -> None:
    changed_rows(spark, table, path)
    table.addColumns({"extra": "int"})
    table.update("id = 10", {"extra": "1"})
    table.addConstraint("positive", "id >= 0")
    table.dropColumns("extra")
    write_checkpoint(path)


def with_logs(spark, table: DeltaTable, path: str) -> None:
    """Beside every kind of overwriting a checkpoint and a log compaction of ours."""
    overwritten(spark, table, path)
    write_checkpoint(path)
    table.update("id = 10", {"v": "'u'"})
    compact_commits(path, 2, 5)


def optimised(spark, table: DeltaTable, path: str) -> None:
    changed_rows(spark, table, path)
    table.optimize().where("p = 1").executeCompaction()
    table.optimize().executeZOrderBy("id", "v")


def converted(spark, table: DeltaTable, path: str) -> None:
    """The rows as files that Spark wrote, and another file that is gone when the table is repaired."""
    changed_rows(spark, table, path)
    table.toDF().write.partitionBy("p").parquet(f"{path}.files")
    shutil.rmtree(path)
    shutil.move(f"{path}.files", path)
    lost = Path(path, "p=1", "lost.parquet")
    shutil.copy(next(Path(path, "p=1").glob("*.parquet")), lost)
    found = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p int")
    lost.unlink()
    assert found.repair().missing.num_rows == 1
    found.compute_statistics(every=True)


#: What each table is made with, and by what.
TABLES: dict[str, tuple[dict[str, str], Callable[..., None]]] = {
    "rewritten": (FEED, with_logs),
    "masked": ({**MASKS, **TRACKED, **FEED}, restored),
    "altered": ({**MASKS, **MAPPED, **V2}, altered),
    "converted": ({}, converted),
    "optimised": ({**MASKS, **MAPPED, **TRACKED}, optimised),
}
LEFT = {str(n): f"v{n}" for n in range(20) if n not in (7, 8, 9, 12)} | {"10": "u", "11": "m", "50": "new"}
CHANGED = {n: v for n, v in LEFT.items() if n != "1"} | {
    "101": "new", "2": "updated", "3": "merged", "200": "inserted",
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(spark, tmp_path_factory) -> dict[str, tuple[str, dict]]:
    root: Path = tmp_path_factory.mktemp("going on")
    for name, (properties, write) in TABLES.items():
        path = str(root / name)
        write(spark, make(spark, path, properties), path)
        assert check_table(path) == (), name
    jobs = [{"table": str(root / name), "columns": ["id", "p", "v"]} for name in TABLES]
    found = judge(root, jobs, "reference_going_on")
    return {name: (str(root / name), answer) for name, answer in zip(TABLES, found, strict=True)}


@pytest.mark.parametrize("name", TABLES)
def test_the_reference_goes_on(answers, name: str) -> None:
    path, answer = answers[name]
    assert answer["error"] is None
    assert answer["result"] == {"found": LEFT, "changed": CHANGED, "restored": LEFT, "last": CHANGED}
    table = alluvium.open(path)
    rows = table.to_arrow(["id", "v"]).to_pylist()
    assert {str(row["id"]): row["v"] for row in rows} == CHANGED
    assert len(rows) == len(CHANGED)


@pytest.mark.parametrize("name", ["masked", "altered"])
def test_we_go_on_again(spark, answers, name: str) -> None:
    path, _ = answers[name]
    table = DeltaTable.forPath(spark, path)
    table.delete("id in (101, 4)")
    write_checkpoint(path)
    left = {row["id"] for row in table.toDF().collect()}
    assert left == {int(n) for n in CHANGED} - {101, 4}
    assert [f for f in check_table(path) if f.check not in ("change-data",)] == []
