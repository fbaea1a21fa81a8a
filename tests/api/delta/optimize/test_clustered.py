"""OPTIMIZE of clustered tables with Spark: cubes, what the log says of them, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dml_tables import last
from pyspark.errors import AnalysisException

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Preview

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def enabled(spark):
    alluvium.enable(spark)
    yield
    alluvium.disable(spark)


CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."


def append(spark, path: str, first: int, count: int, files: int = 1) -> None:
    rows = spark.range(first, first + count).selectExpr(
        "id", "(id * 7919) % 10007 as x", "named_struct('y', cast((id * 104729) % 9973 as int)) as s"
    )
    alluvium.write(rows.repartition(files), path, mode="append")


def figures_of(answer) -> dict:
    (row,) = answer.collect()
    return row["metrics"].asDict(recursive=True)


def clustering_of(answer) -> list[int]:
    """Files in cubes, others, cubes there were, files taken, cubes made."""
    found = figures_of(answer)["clusteringStats"]
    counts = [found[name]["numFiles"] for name in ("inputZCubeFiles", "inputOtherFiles", "mergedFiles")]
    return [*counts[:2], found["inputNumZCubes"], counts[2], found["numOutputZCubes"]]


@pytest.fixture(scope="module")
def clustered(spark, tmp_path_factory) -> str:
    """40,000 rows in four files, not clustered yet."""
    path = str(tmp_path_factory.mktemp("clustered") / "t")
    spark.sql(f"create table delta.`{path}` (id long, x long, s struct<y: int>) using delta cluster by (x, s.y)")
    append(spark, path, 0, 40_000, 4)
    return path


def test_rows_lie_near_each_other_by_every_clustering_column(spark, clustered):
    table = DeltaTable.forPath(spark, clustered)
    told = table.optimize().executeCompaction(dry_run=True)
    assert isinstance(told, Preview)
    assert (len(told.removed), told.operation.parameters["clusterBy"]) == (4, '["x","s.y"]')
    size = sum(alluvium.open(clustered).files()["size"].to_pylist())
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size // 16))
    try:
        answer = table.optimize().executeCompaction(measure=True)
    finally:
        spark.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    assert clustering_of(answer.drop("lookUps")) == [0, 4, 0, 4, 1]
    by = {one["column"]: one for one in answer.first()["lookUps"]}
    # Of four files in no order each look-up opens all; of a square of 4 x 4 a row of four.
    assert {name: one["before"] for name, one in by.items()} == {"x": 4.0, "s.y": 4.0}
    assert all(one["after"] < 6 for one in by.values())
    added, (info,) = last(clustered, "add"), last(clustered, "commitInfo")
    assert 14 <= len(added) <= 16
    assert info["operationParameters"] == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": '["x","s.y"]', "auto": False, "isFull": False,
    }  # fmt: skip
    (tags,) = {json.dumps(a["tags"], sort_keys=True) for a in added}
    assert json.loads(tags)["ZCUBE_ZORDER_BY"] == '["x","s.y"]'
    assert {(a["clusteringProvider"], a["dataChange"]) for a in added} == {("liquid", False)}
    assert table.toDF().selectExpr("count(*)", "sum(id)").first() == (40_000, 799980000)
    assert clustering_of(table.optimize().executeCompaction()) == [len(added), 0, 1, 0, 0]


def test_what_came_since_is_clustered_with_small_cubes_and_columns_change(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` (id long, x long, s struct<y: int>) using delta cluster by (x) "
        "tblproperties('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    table = DeltaTable.forPath(spark, path)
    append(spark, path, 0, 100)
    assert clustering_of(table.optimize().executeCompaction()) == [0, 1, 0, 1, 1]
    append(spark, path, 100, 100)
    # Cubes of four megabytes are taken whatever came, but for those that the session calls large.
    spark.conf.set(f"{CUBE}threshold", "1")
    spark.conf.set(f"{CUBE}targetCubeSize", "2")
    assert clustering_of(spark.sql(f"optimize delta.`{path}`")) == [1, 1, 1, 1, 1]
    spark.conf.unset(f"{CUBE}threshold")
    table.delete("id < 10")
    assert clustering_of(table.optimize().executeCompaction()) == [2, 0, 2, 2, 2]
    spark.conf.unset(f"{CUBE}targetCubeSize")
    before = sorted(alluvium.open(path).to_arrow(["id", "_row_id", "_row_commit_version"]).to_pylist(), key=str)
    assert clustering_of(table.optimize().executeCompaction()) == [2, 0, 2, 2, 1]
    assert sorted(alluvium.open(path).to_arrow(["id", "_row_id", "_row_commit_version"]).to_pylist(), key=str) == before
    # A vector stays a purge's; the rows stay in their cube.
    table.delete("id < 20")
    (cube,) = {a["tags"]["ZCUBE_ID"] for a in last(path, "add")}
    table.optimize().executePurge()
    assert [(a["tags"]["ZCUBE_ID"], a["clusteringProvider"]) for a in last(path, "add")] == [(cube, "liquid")]
    spark.sql(f"alter table delta.`{path}` cluster by (s.y)")
    assert clustering_of(table.optimize().executeCompaction()) == [0, 1, 0, 0, 0]
    assert clustering_of(spark.sql(f"optimize delta.`{path}` full")) == [1, 0, 1, 1, 1]
    assert last(path, "add")[0]["tags"]["ZCUBE_ZORDER_BY"] == '["s.y"]'
    assert last(path, "commitInfo")[0]["operationParameters"]["isFull"] is True
    spark.sql(f"alter table delta.`{path}` cluster by none")
    append(spark, path, 200, 10)
    assert figures_of(table.optimize().executeCompaction())["clusteringStats"] is None
    (added,) = last(path, "add")
    assert "tags" not in added and "clusteringProvider" not in added
    assert table.toDF().count() == 190


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("optimize {} where x = 1", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
        ("optimize {} zorder by (id)", "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ("reorg table {} where x = 1 apply (purge)", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ],
)
def test_partitions_and_other_orders_are_refused(spark, clustered, statement, condition):
    version = alluvium.open(clustered).version
    with pytest.raises(AlluviumError) as raised:
        spark.sql(statement.format(f"delta.`{clustered}`"))
    assert (raised.value.code, raised.value.getCondition()) == ("clustered-table", condition)
    assert alluvium.open(clustered).version == version


def test_what_is_not_clustered_is_not_clustered_in_full(spark, tmp_path):
    path = str(tmp_path / "t")
    append(spark, path, 0, 10)
    for call in (
        lambda: spark.sql(f"optimize delta.`{path}` full zorder by (id)"),
        lambda: DeltaTable.forPath(spark, path).optimize().executeCompaction(full=True),
    ):
        with pytest.raises(AlluviumError) as raised:
            call()
        assert raised.value.getCondition() == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"
    spark.conf.set(f"{CUBE}threshold", "many")
    with pytest.raises((AlluviumError, AnalysisException)) as raised:
        DeltaTable.forPath(spark, path).optimize().executeCompaction()
    spark.conf.unset(f"{CUBE}threshold")
    assert raised.value.code == "invalid-setting"
    assert len(list(Path(path, "_delta_log").glob("*.json"))) == 1
