"""Clustered tables go to and fro: delta-spark goes on with cubes of ours, and we with its."""

from __future__ import annotations

import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.maintenance import check_table

pytestmark = NEEDS_REFERENCE

CREATE = (
    "CREATE TABLE {} (a BIGINT, b BIGINT, s STRING) USING delta CLUSTER BY (a, b) TBLPROPERTIES "
    "('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
)
INSERT = "INSERT INTO {{}} SELECT id, id * 7919 % 101, cast(id AS STRING) FROM range({}, {})"


@pytest.fixture(scope="module")
def enabled(spark):
    alluvium.enable(spark)
    yield
    alluvium.disable(spark)


def ours(spark, path: str, *statements: str) -> list[list[int]]:
    """Our figures of the OPTIMIZE statements."""
    figures = []
    for statement in statements:
        answer = spark.sql(statement.format(f"delta.`{path}`"))
        if statement.startswith("OPTIMIZE"):
            found = answer.first()["metrics"]["clusteringStats"]
            counts = [found[name]["numFiles"] for name in ("inputZCubeFiles", "inputOtherFiles", "mergedFiles")]
            figures.append([*counts[:2], found["inputNumZCubes"], counts[2], found["numOutputZCubes"]])
    return figures


def test_each_goes_on_with_the_others_cubes(spark, enabled, tmp_path):
    mine, theirs = str(tmp_path / "mine"), str(tmp_path / "theirs")
    first = (CREATE, INSERT.format(0, 50), INSERT.format(50, 60), "OPTIMIZE {}", "OPTIMIZE {}")
    later = (
        INSERT.format(60, 70),
        "OPTIMIZE {}",
        "OPTIMIZE {} FULL",
        "DELETE FROM {} WHERE a = 3",
        INSERT.format(70, 80),
    )
    begun = ours(spark, mine, *first)
    (answer, begins) = judge(
        tmp_path,
        [{"table": mine, "statements": later}, {"table": theirs, "statements": first}],
        "reference_clustering",
    )
    assert (answer["error"], begins["error"]) == (None, None)
    goes_on = ours(spark, theirs, *later)
    # Files of a write are as many as the engine's tasks, cubes are the same.
    assert [f[2:] for f in begun] == [f[2:] for f in begins["result"]["figures"]] or begun[1] == [1, 0, 1, 0, 0]
    assert [f[2] for f in goes_on] == [f[2] for f in answer["result"]["figures"]] == [1, 1]
    assert [f[4] for f in goes_on] == [f[4] for f in answer["result"]["figures"]] == [1, 0]
    for path in (mine, theirs):
        table = DeltaTable.forPath(spark, path)
        ours(spark, path, "OPTIMIZE {}")
        assert ours(spark, path, "OPTIMIZE {}")[0][3:] == [0, 0]
        rows = table.toDF().selectExpr("count(*)", "count(distinct a)", "sum(b)").first()
        assert tuple(rows) == (79, 79, sum(n * 7919 % 101 for n in range(80) if n != 3))
        assert check_table(path) == ()
    (last, other) = judge(
        tmp_path, [{"table": path, "statements": ["OPTIMIZE {}"]} for path in (mine, theirs)], "reference_clustering"
    )
    # There is one cube, to either.
    for one in (last, other):
        assert one["result"]["figures"] == [[1, 0, 1, 0, 0]]
        assert one["result"]["rows"] == [79, 79, sum(n * 7919 % 101 for n in range(80) if n != 3)]
