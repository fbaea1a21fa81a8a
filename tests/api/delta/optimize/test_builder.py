"""OPTIMIZE with Spark: rows, their identities and their order; what is committed; who may come between."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from dml_tables import last, make, rows_of, tracked
from pyspark.errors import AnalysisException, IllegalArgumentException

import alluvium
from alluvium import DeltaTable
from alluvium.commands.optimize import bins
from alluvium.errors import CommitConflict, InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Preview

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MASKED = {"delta.enableDeletionVectors": "true"}
MIN, MAX = "spark.databricks.delta.optimize.minFileSize", "spark.databricks.delta.optimize.maxFileSize"


@pytest.fixture
def setting(spark) -> Callable[[str, object], None]:
    """Sets a setting of the session until the test ends."""
    names = []

    def put(name: str, value: object) -> None:
        names.append(name)
        spark.conf.set(name, str(value))

    yield put
    for name in names:
        spark.conf.unset(name)


def append(spark, path: str, *ids: int, p: int | None = None) -> None:
    rows = [(i, i % 2 if p is None else p, f"v{i}") for i in ids]
    alluvium.write(spark.createDataFrame(rows, "id long, p int, v string").coalesce(1), path, mode="append")


def metrics_of(answer) -> dict:
    (row,) = answer.collect()
    return row["metrics"].asDict(recursive=True)


def no_strays(path: str, spark) -> bool:
    """Whether every file that is there is of some version."""
    there = {p.relative_to(path).as_posix() for p in Path(path).rglob("*.parquet") if "_delta_log" not in p.parts}
    known: set[str] = set()
    for version in range(alluvium.open(path).version + 1):
        known |= set(alluvium.open(path, version=version).files()["path"].to_pylist())
    return there == known


@pytest.mark.parametrize("most_apart", [bins.MOST_APART, 0], ids=["apart", "shuffled"])
def test_files_are_put_together_and_rows_stay_who_they_are(spark, tmp_path, monkeypatch, most_apart):
    monkeypatch.setattr(bins, "MOST_APART", most_apart)
    path = str(tmp_path / "t")
    table = make(spark, path, {**MASKED, "delta.enableRowTracking": "true"})
    append(spark, path, 20, 21, 22, 23)
    table.delete("id in (3, 4)")
    before, ids = rows_of(table), sorted(tracked(path), key=lambda row: row["id"])
    found = metrics_of(table.optimize().executeCompaction())
    assert (rows_of(table), sorted(tracked(path), key=lambda row: row["id"])) == (before, ids)
    counts = (
        "numFilesAdded",
        "numFilesRemoved",
        "partitionsOptimized",
        "numBins",
        "totalConsideredFiles",
        "totalFilesSkipped",
    )
    assert [found[name] for name in counts] == [2, 4, 2, 2, 4, 0]
    assert found["deletionVectorStats"] == {"numDeletionVectorsRemoved": 2, "numDeletionVectorRowsRemoved": 2}
    assert found["filesAdded"]["totalSize"] == sum(a["size"] for a in last(path, "add"))
    assert all(not a["dataChange"] and "deletionVector" not in a for a in last(path, "add"))
    assert all(not r["dataChange"] for r in last(path, "remove"))
    assert sorted((a["partitionValues"]["p"], '"numRecords":11' in a["stats"]) for a in last(path, "add")) == [
        ("0", True),
        ("1", True),
    ]
    (info,) = last(path, "commitInfo")
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    told = ("operation", "isolationLevel", "isBlindAppend", "tags")
    assert [info[k] for k in told] == ["OPTIMIZE", "SnapshotIsolation", False, {"delta.rowTracking.preserved": "true"}]
    assert info["operationMetrics"]["numDeletionVectorsRemoved"] == "2"
    version = alluvium.open(path).version
    again = metrics_of(table.optimize().executeCompaction())
    assert (again["numFilesAdded"], again["totalFilesSkipped"], again["filesAdded"]["min"]) == (0, 2, None)
    assert (alluvium.open(path).version, no_strays(path, spark)) == (version, True)


def test_partitions_are_chosen_and_a_dry_run_only_tells(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, {})
    append(spark, path, 20, 21)
    builder = table.optimize().where("P = 1 and p < 5").where("p + 0 > 0")
    told = builder.executeCompaction(dry_run=True)
    assert isinstance(told, Preview)
    assert (len(told.removed), told.operation.metrics["numRemovedFiles"], alluvium.open(path).version) == (2, "2", 2)
    assert metrics_of(builder.executeCompaction())["totalConsideredFiles"] == 2
    (info,) = last(path, "commitInfo")
    assert info["operationParameters"]["predicate"] == r"""["(('P = 1) AND ('p < 5))","(('p + 0) > 0)"]"""
    assert {a["partitionValues"]["p"] for a in last(path, "add")} == {"1"}


def test_what_does_not_fit_is_refused_before_anything_is_written(spark, tmp_path, setting):
    path = str(tmp_path / "t")
    table = make(spark, path, {"delta.dataSkippingNumIndexedCols": "1"})
    refused = {
        "predicate-on-data": (
            lambda t: t.where("id > 1").executeCompaction(),
            AnalysisException,
            "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        ),
        "invalid-expression": (
            lambda t: t.where("no_function(p) > 1").executeCompaction(),
            AnalysisException,
            "no_fun",
        ),
    }
    with pytest.raises(AnalysisException, match="non-partition column 'zz'"):
        table.optimize().where("zz > 1").executeCompaction()
    columns = {
        "p": (IllegalArgumentException, "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        "zz": (IllegalArgumentException, "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        "v": (AnalysisException, "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
    }
    for code, (call, kind, text) in refused.items():
        with pytest.raises(kind, match=text) as raised:
            call(table.optimize())
        assert raised.value.code == code
    for name, (kind, condition) in columns.items():
        with pytest.raises(kind, match=condition) as raised:
            table.optimize().executeZOrderBy(name)
        assert (raised.value.code, raised.value.column) == ("invalid-zorder-column", name)
    for call in (lambda: table.optimize().where(1), lambda: table.optimize().executeZOrderBy(1)):
        with pytest.raises(TypeError):
            call()
    setting(MAX, "0")
    with pytest.raises(InvalidRequest) as raised:
        table.optimize().executeCompaction()
    spark.conf.unset(MAX)
    assert raised.value.code == "invalid-setting"
    assert (alluvium.open(path).version, no_strays(path, spark)) == (1, True)


def test_a_z_order_narrows_files_by_every_column(spark, tmp_path, setting):
    path = str(tmp_path / "t")
    # Pseudo-random, but for skew: nine of ten rows have y = 0.
    rows = spark.range(40_000).selectExpr(
        "id",
        "(id * 7919) % 10007 as x",
        "if(id % 10 = 0, (id * 104729) % 9973, 0) as y",
        "sha2(cast(id as string), 256) as filler",
    )
    alluvium.write(rows.repartition(4), path)
    table = DeltaTable.forPath(spark, path)
    size = sum(alluvium.open(path).files()["size"].to_pylist())
    setting(MAX, size // 16)
    found = metrics_of(table.optimize().executeZOrderBy("x", "y"))
    assert (found["numFilesRemoved"], found["numBins"]) == (4, 1)
    assert 14 <= found["numFilesAdded"] <= 16
    assert found["zOrderStats"]["inputOtherFiles"]["num"] == 4
    assert last(path, "commitInfo")[0]["operationParameters"]["zOrderBy"] == '["x","y"]'
    assert table.toDF().selectExpr("count(*)", "sum(id)", "sum(x)").first() == (
        40_000,
        799980000,
        rows.selectExpr("sum(x)").first()[0],
    )
    opened = {c: len(alluvium.open(path).files(f"{c} = 5000")) for c in ("x", "y")}
    # Of files in no order each lookup opens all.
    assert opened["x"] <= 5
    assert opened["y"] <= 6


def test_values_of_every_type_that_has_an_order_are_ordered_by(spark, tmp_path, setting):
    path = str(tmp_path / "t")
    ddl = "b boolean, i int, d double, m decimal(20,2), s string, x binary, day date, at timestamp, st struct<a: int>, r array<int>"
    rows = [
        (n % 2 == 0, n, float("nan") if n == 3 else n / 3, Decimal(n), f"é{n:03}", bytes([n]), dt.date(1960, 1, 1) + dt.timedelta(n),
         dt.datetime(1960, 1, 1, 12) + dt.timedelta(n), (n,), [n])
        for n in range(40)
    ]  # fmt: skip
    rows.append((None,) * 10)
    df = spark.createDataFrame(rows, ddl).repartition(2)
    alluvium.write(df, path)
    table = DeltaTable.forPath(spark, path)
    setting(MAX, 1200)
    for names in (("S",), ("d", "at", "x", "b", "i", "m", "day", "st.a", "r")):
        found = metrics_of(table.optimize().executeZOrderBy(*names))
        assert found["numFilesAdded"] > 1, names
        assert sorted(map(str, table.toDF().collect())) == sorted(map(str, df.collect())), names
        if names == ("S",):
            assert len(alluvium.open(path).files("s = 'é020'")) == 1


def test_only_who_takes_its_files_away_costs_it_these(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, MASKED)
    append(spark, path, 20, 21)

    def others() -> None:
        append(spark, path, 30)
        # A vector on a file of the partition 1, which is written anew already.
        table.delete("id = 1")

    meanwhile(others)
    found = metrics_of(table.optimize().executeCompaction())
    assert [row[0] for row in rows_of(table)] == [0, *range(2, 22), 30]
    # The partition 0 first, without the new file, then 1 once more.
    assert (found["numFilesAdded"], found["numFilesRemoved"], found["partitionsOptimized"]) == (2, 4, 2)
    history = [row["operation"] for row in table.history().collect()]
    assert history[:4] == ["OPTIMIZE", "OPTIMIZE", "DELETE", "WRITE"]
    assert no_strays(path, spark)
    meanwhile(lambda: table.setProperties({"delta.checkpointInterval": "5"}))
    append(spark, path, 40)
    with pytest.raises(CommitConflict) as raised:
        table.optimize().executeCompaction()
    assert (raised.value.code, no_strays(path, spark)) == ("metadata-changed", True)


def test_mapped_columns_and_what_was_dropped(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, {"delta.columnMapping.mode": "name"})
    append(spark, path, 20, 21)
    table.renameColumn("v", "w")
    table.addColumns({"extra": "int"})
    table.dropColumns("extra")
    before = rows_of(table)
    table.optimize().executeZOrderBy("w")
    assert rows_of(table) == before
    assert len(alluvium.open(path).files()) == 2
    assert len(alluvium.open(path).files("w = 'v0'")) == 1


def test_statements(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, MASKED)
    append(spark, path, 20, 21)
    table.delete("id = 1")
    alluvium.enable(spark)
    answer = spark.sql(f"OPTIMIZE delta.`{path}` WHERE p = 0 ZORDER BY (id, v)")
    assert (answer.columns, metrics_of(answer)["numFilesRemoved"]) == (["path", "metrics"], 2)
    assert (
        metrics_of(spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)"))["deletionVectorStats"][
            "numDeletionVectorsRemoved"
        ]
        == 1
    )
    (info,) = last(path, "commitInfo")
    assert (info["operation"], info["operationParameters"]) == ("REORG", {"predicate": "[]", "applyPurge": True})
    version = alluvium.open(path).version
    assert metrics_of(spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)"))["numFilesRemoved"] == 0
    assert metrics_of(spark.sql(f"OPTIMIZE '{path}'"))["numFilesAdded"] == 1
    with pytest.raises(UnsupportedFeature, match="FULL"):
        spark.sql(f"OPTIMIZE '{path}' FULL")
    assert alluvium.open(path).version == version + 1
    assert len(rows_of(table)) == 21
