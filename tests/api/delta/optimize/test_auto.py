"""Auto compaction and optimized writes: after which commits, of what, and that they harm none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dml_tables import last

import alluvium
from alluvium import DeltaTable
from alluvium.commands.optimize import auto
from alluvium.errors import CommitConflict

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def enabled(spark):
    alluvium.enable(spark)
    yield
    alluvium.disable(spark)


DELTA = "spark.databricks.delta."


@pytest.fixture
def setting(spark):
    """Sets settings of delta-spark until the test ends."""
    names = []

    def put(name: str, value: object) -> None:
        names.append(DELTA + name)
        spark.conf.set(DELTA + name, str(value))

    yield put
    for name in names:
        spark.conf.unset(name)


def append(spark, path: str, files: int = 2, **options: str):
    rows = spark.range(10).selectExpr("id a", "id % 2 p").repartition(files)
    return alluvium.write(rows, path, mode="append", **options)


def history(path: str) -> list[str]:
    """The operation of each commit, with the partitions where it was by itself."""
    found = []
    for commit in sorted(Path(path, "_delta_log").glob("*.json")):
        info = next(json.loads(line) for line in commit.read_text().splitlines() if "commitInfo" in line)["commitInfo"]
        said = info["operationParameters"]
        found.append(f"auto {said['predicate']}" if said.get("auto") else info["operation"])
    return found


def test_small_files_are_put_together_after_whatever_wrote_them(spark, tmp_path, setting):
    """What delta-spark 4.4 makes of the same statements: a table is looked at once, then whenever it has enough."""
    setting("autoCompact.minNumFiles", 4)
    path = str(tmp_path / "t")
    append(spark, path, **{"delta.autoOptimize.autoCompact": "true"})
    append(spark, path)
    append(spark, path)
    table = DeltaTable.forPath(spark, path)
    table.update("a = 3", {"a": "a + 1"})
    table.delete("a = 7")
    append(spark, path)
    append(spark, path)
    source = spark.sql("select 5L a, 1L p")
    merge = table.alias("t").merge(source.alias("s"), "t.a = s.a").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll().execute()
    spark.sql(f"insert into delta.`{path}` values (1, 1)")
    compacted = "auto []"
    assert history(path) == [
        "WRITE", compacted, "WRITE", "WRITE", compacted, "UPDATE", "DELETE", "WRITE", "WRITE", compacted, "MERGE", "WRITE",
    ]  # fmt: skip
    assert table.toDF().count() == 48


def test_only_partitions_that_were_written_to(spark, tmp_path, setting):
    setting("autoCompact.minNumFiles", 4)
    setting("autoCompact.enabled", "true")
    path = str(tmp_path / "t")
    spark.sql(f"create table delta.`{path}` (a long, p long) using delta partitioned by (p)")
    for values in ("(1, null)", "(2, null), (3, 1)", "(4, null)", "(5, null)"):
        spark.sql(f"insert into delta.`{path}` values {values}")
    assert history(path) == ["CREATE TABLE", *["WRITE"] * 4, 'auto ["(\'p <=> cast(null as bigint))"]']
    assert len(alluvium.open(path).files()) == 2
    setting("autoCompact.enabled", "false")
    append(spark, path, 5)
    assert history(path)[-1] == "WRITE"


def test_clustered_tables_are_clustered_and_new_ones_are_looked_at(spark, tmp_path, setting):
    setting("autoCompact.enabled", "true")
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` using delta cluster by (a) as select /*+ repartition(3) */ id a from range(30)"
    )
    assert history(path) == ["CREATE TABLE AS SELECT", "auto []"]
    (added,) = last(path, "add")
    assert (added["clusteringProvider"], added["tags"]["ZCUBE_ZORDER_BY"]) == ("liquid", '["a"]')


def test_a_compaction_that_fails_leaves_the_write(spark, tmp_path, setting, monkeypatch):
    def fails(*args: object) -> None:
        raise CommitConflict("somebody was quicker", [])

    path = str(tmp_path / "t")
    setting("autoCompact.enabled", "true")
    with monkeypatch.context() as patched:
        patched.setattr(auto, "optimize_table", fails)
        with pytest.warns(UserWarning, match="version 0 is committed, its auto compaction is not"):
            assert append(spark, path).version == 0
    setting("autoCompact.minNumFiles", "few")
    with pytest.warns(UserWarning, match=r"autoCompact\.minNumFiles"):
        assert append(spark, path).version == 1
    assert history(path) == ["WRITE", "WRITE"]


def test_optimized_writes_are_of_every_verb(spark, tmp_path, setting):
    path = str(tmp_path / "t")
    setting("optimizeWrite.enabled", "true")
    rows = spark.range(0, 40_000, 1, 4).selectExpr("id", "cast(id % 2 as int) p", "uuid() text")
    setting("optimizeWrite.binSize", "1")
    alluvium.write(rows, path, partition_by="p")
    assert len(alluvium.open(path).files()) >= 2
    setting("optimizeWrite.binSize", "512m")
    setting("optimizeWrite.maxShufflePartitions", "1")
    DeltaTable.forPath(spark, path).update("true", {"id": "id + 1"})
    assert len(alluvium.open(path).files()) == 2
    setting("optimizeWrite.enabled", "false")
    alluvium.write(rows, path, mode="append")
    assert len(alluvium.open(path).files()) == 2 + 8
    setting("optimizeWrite.enabled", "true")
    alluvium.write(rows.where("id = 7"), path, mode="overwrite", replaceWhere="id = 7")
    told = [row.operationParameters.get("optimizeWrite") for row in DeltaTable.forPath(spark, path).history().collect()]
    assert told == ["true", None, "true", "true"]
