"""Tables that change their shape: schemas merged on write, buckets rescaled, rows put in order, statistics taken."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import alluvium
from alluvium.commands.paimon import rescale
from alluvium.errors import CommitConflict, InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = pytest.mark.spark


def write(df: DataFrame, url: Path, mode: str = "append", **options: Any) -> alluvium.Committed:
    return alluvium.write(df, str(url), mode=mode, format="paimon", **options)


def rows_of(url: Path) -> list[dict[str, Any]]:
    return sorted(alluvium.open(str(url)).to_arrow().to_pylist(), key=repr)


def test_schemas_merge(spark: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    write(spark.sql("SELECT 1 AS a, 'x' AS b, named_struct('p', 1) AS s"), url)
    wider = spark.sql("SELECT 3L AS a, named_struct('q', 'z', 'p', 2) AS s, 2.5D AS c")
    with pytest.raises(InvalidRequest):
        write(wider, url)
    before = PaimonTable.forPath(str(url)).schema
    with pytest.raises(InvalidRequest) as caught:
        write(spark.sql("SELECT 'text' AS a"), url, mergeSchema=True)
    assert caught.value.code == "cast-not-allowed"
    assert PaimonTable.forPath(str(url)).schema == before
    write(wider, url, **{"write.merge-schema": "true"})
    write(spark.sql("SELECT 4 AS a, 'n' AS b"), url, mergeSchema=True)
    table = PaimonTable.forPath(str(url)).schema
    assert [(f.id, f.name, str(f.type)) for f in table.fields] == [
        (0, "a", "BIGINT"), (1, "b", "STRING"), (2, "s", "ROW<`p` INT NOT NULL, `q` STRING>"), (5, "c", "DOUBLE"),
    ]  # fmt: skip
    assert (table.id, "write.merge-schema" in table.options) == (1, False)
    assert rows_of(url) == [
        {"a": 1, "b": "x", "s": {"p": 1, "q": None}, "c": None},
        {"a": 3, "b": None, "s": {"p": 2, "q": "z"}, "c": 2.5},
        {"a": 4, "b": "n", "s": None, "c": None},
    ]
    write(
        spark.sql("SELECT 5 AS a, DATE'2024-01-01' AS b"),
        url,
        **{"write.merge-schema": "true", "write.merge-schema.explicit-cast": "true"},
    )
    assert [str(f.type) for f in PaimonTable.forPath(str(url)).schema.fields][:2] == ["INT", "DATE"]


def test_schemas_merge_by_statements(spark: SparkSession, tmp_path: Path) -> None:
    alluvium.enable(spark, catalogs={"lake": str(tmp_path)})
    try:
        spark.sql("CREATE TABLE lake.default.t (k INT, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
        spark.conf.set("spark.paimon.write.merge-schema", "true")
        spark.sql("INSERT INTO lake.default.t BY NAME SELECT 1 AS k, 2.5D AS w")
        spark.conf.unset("spark.paimon.write.merge-schema")
        assert [tuple(row) for row in spark.sql("SELECT * FROM lake.default.t").collect()] == [(1, None, 2.5)]
        frame = spark.sql("SELECT 2 AS k, true AS x")
        frame.write.format("paimon").mode("append").option("mergeSchema", "true").save(str(tmp_path / "default.db/t"))
        assert spark.table("lake.default.t").columns == ["k", "v", "w", "x"]
    finally:
        spark.conf.unset("spark.paimon.write.merge-schema")
        alluvium.disable(spark)


def buckets(url: Path, **at: Any) -> set[tuple[str, int]]:
    files = alluvium.open(str(url), **at).system("files").to_pylist()
    return {(f["partition"], f["bucket"]) for f in files}


@pytest.mark.parametrize("keys", [{}, {"merge-engine": "deduplicate"}], ids=["append", "keys"])
def test_rescale(spark: SparkSession, tmp_path: Path, keys: dict[str, str]) -> None:
    url = tmp_path / "t"
    rows = spark.range(40).selectExpr(
        "cast(id as int) AS k", "cast(id % 2 as string) AS day", "if(id < 9, null, id) AS v"
    )
    key = {"primary_keys": ["day", "k"]} if keys else {}
    table = PaimonTable.create(
        str(url), rows.schema, ["day"], options={"bucket": "2", "bucket-key": "k", **keys}, **key
    )
    write(rows, url)
    write(rows.where("k < 4"), url)
    before = rows_of(url)
    # Rows that are only moved stay what they are.
    table.alter([SchemaChange.update_column_default("v", "5")])
    done = table.rescale(3, "day = '0'")
    assert rows_of(url) == before
    assert {bucket for _, bucket in buckets(url)} == {0, 1, 2}
    assert alluvium.open(str(url)).system("snapshots")["commit_kind"].to_pylist()[-1] == "OVERWRITE"
    assert alluvium.open(str(url)).files(where="day = '1'").num_rows > 0
    # A writer that goes by the table's option would put rows of a key into another bucket.
    with pytest.raises(InvalidRequest) as caught:
        write(rows.where("day = '0'"), url)
    assert caught.value.code == "bucket-change"
    write(rows.where("k = 1"), url)
    table.alter([SchemaChange.set_option("bucket", "3")])
    assert table.rescale().version == done.version + 2
    write(rows.where("k = 39"), url)
    assert len(rows_of(url)) == len(before) + (0 if keys else 2)
    assert alluvium.read(spark, str(url)).where("k = 39 and day = '1'").count() == (1 if keys else 2)


def test_what_is_not_rescaled(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(3), tmp_path / "free")
    with pytest.raises(UnsupportedFeature) as refused:
        PaimonTable.forPath(str(tmp_path / "free")).rescale(2)
    assert refused.value.code == "unsupported-rescale"
    empty = PaimonTable.create(str(tmp_path / "t"), spark.range(0).schema, options={"bucket": "2", "bucket-key": "id"})
    with pytest.raises(InvalidRequest) as caught:
        empty.rescale(3)
    assert caught.value.code == "no-snapshot"
    write(spark.range(3), tmp_path / "t")
    with pytest.raises(InvalidRequest) as caught:
        empty.rescale(0)
    assert caught.value.code == "invalid-bucket"


def test_rows_that_a_branch_shows_do_not_become_the_tables_own(spark: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    rows = spark.range(8).selectExpr("cast(id as int) AS k", "if(id < 4, 'own', 'shown') AS day")
    options = {"bucket": "2", "bucket-key": "k"}
    table = PaimonTable.create(str(url), rows.schema, ["day"], options=options)
    write(rows.where("k < 4"), url)
    table.create_branch("b")
    write(rows.where("k = 4"), url, branch="b")
    table.alter([SchemaChange.set_option("scan.fallback-branch", "b")])
    with pytest.raises(UnsupportedFeature) as refused:
        table.rescale(3)
    assert refused.value.code == "unsupported-rescale" and [row["k"] for row in rows_of(url)] == [0, 1, 2, 3, 4]
    # What comes on the branch is still shown.
    write(rows.where("k = 5"), url, branch="b")
    assert len(rows_of(url)) == 6


def test_statistics(spark: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    rows = spark.sql(
        "SELECT * FROM VALUES (1, 'aa', 1.5D, DATE'2024-01-02', TIMESTAMP'2024-01-02 03:04:05', 1.10BD, array(1)), "
        "(2, 'b', -0.5D, DATE'1969-12-31', TIMESTAMP'2020-01-01 00:00:00.5', 2.20BD, array(2)), "
        "(2, null, null, null, null, null, null) AS t(i, s, d, day, at, m, l)"
    )
    write(rows, url)
    table = PaimonTable.forPath(str(url))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        assert table.analyze().version == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    (said,) = alluvium.open(str(url)).system("statistics").to_pylist()
    assert (said["snapshot_id"], said["mergedRecordCount"]) == (1, 3)
    columns = json.loads(said["colstat"])
    assert columns["i"] == {
        "colId": 0,
        "distinctCount": 2,
        "min": "1",
        "max": "2",
        "nullCount": 0,
        "avgLen": 4,
        "maxLen": 4,
    }
    assert columns["s"] == {"colId": 1, "distinctCount": 2, "nullCount": 1, "avgLen": 2, "maxLen": 2}
    assert [(columns[c]["min"], columns[c]["max"]) for c in ("d", "day", "m")] == [
        ("-0.5", "1.5"), ("-1", "19724"), ("1.10", "2.20"),
    ]  # fmt: skip
    assert "l" not in columns
    with pytest.raises(UnsupportedFeature):
        table.analyze(["l"])
    with pytest.raises(InvalidRequest):
        table.analyze(["no"])
    alluvium.enable(spark)
    try:
        spark.sql(f"ANALYZE TABLE paimon.`{url}` COMPUTE STATISTICS FOR COLUMNS i")
        (said,) = alluvium.open(str(url)).system("statistics").to_pylist()
        assert list(json.loads(said["colstat"])) == ["i"]
        assert [tuple(r) for r in spark.sql(f"CALL sys.analyze(table => 'paimon.`{url}`')").collect()] == [(True,)]
    finally:
        alluvium.disable(spark)
    assert alluvium.open(str(url)).to_arrow().num_rows == 3


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_rows_in_order(spark: SparkSession, tmp_path: Path, strategy: str) -> None:
    url = tmp_path / "t"
    rows = spark.range(400).selectExpr("id % 2 AS day", "(id * 7919) % 400 AS a", "(id * 104729) % 20 AS b")
    write(rows, url, partition_by=["day"], **{"target-file-size": "1 mb"})
    table = PaimonTable.forPath(str(url))
    before, untouched = rows_of(url), set(alluvium.open(str(url)).files(where="day = 0")["path"].to_pylist())
    done = table.compact("day = 1", order_strategy=strategy, order_by=["a", "b"])
    assert (done.attempts, rows_of(url)) == (1, before)
    # "Use dynamic partition overwrite"
    assert alluvium.open(str(url)).system("snapshots")["commit_kind"].to_pylist()[-1] == "OVERWRITE"
    assert set(alluvium.open(str(url)).files(where="day = 0")["path"].to_pylist()) == untouched
    (path,) = alluvium.open(str(url)).files(where="day = 1")["path"].to_pylist()
    pairs = [(row["a"], row["b"]) for row in pq.read_table(url / path).to_pylist()]
    if strategy == "order":
        assert pairs == sorted(pairs)
    else:
        # Neighbours along a curve are near each other in both columns, those in no order are not.
        steps = [abs(x[0] - y[0]) / 400 + abs(x[1] - y[1]) / 20 for x, y in pairwise(pairs)]
        assert sum(steps) / len(steps) < 0.25
        assert pairs != sorted(pairs)


def test_what_is_not_put_in_order(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(3), tmp_path / "t")
    table = PaimonTable.forPath(str(tmp_path / "t"))
    for asked in (
        {"order_strategy": "no", "order_by": ["id"]},
        {"order_strategy": "order"},
        {"order_strategy": "zorder", "order_by": ["no"]},
    ):
        with pytest.raises(InvalidRequest) as caught:
            table.compact(**asked)
        assert caught.value.code == "invalid-order-by"


@pytest.mark.parametrize("bucket", ["-1", "2", "-2"])
def test_rows_of_keys_are_not_put_in_another_order(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), spark.range(0).schema, [], ["id"], {"bucket": bucket})
    write(spark.range(3), tmp_path / "t")
    before = alluvium.open(str(tmp_path / "t")).version
    with pytest.raises(UnsupportedFeature) as caught:
        table.compact(order_strategy="order", order_by=["id"])
    assert caught.value.code == "unsupported-compaction" and "primary key" in str(caught.value)
    assert alluvium.open(str(tmp_path / "t")).version == before


def test_a_writer_beside_a_rescaling(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came after the rows were read would be lost, so that the rescaling is."""
    url = tmp_path / "t"
    table = PaimonTable.create(str(url), spark.range(0).schema, options={"bucket": "1", "bucket-key": "id"})
    write(spark.range(3), url)
    real = rescale.write_rows

    def late(*given: Any) -> alluvium.Committed:
        write(spark.range(7, 8), url)
        return real(*given)

    monkeypatch.setattr(rescale, "write_rows", late)
    with pytest.raises(CommitConflict):
        table.rescale(2)
    assert [row["id"] for row in rows_of(url)] == [0, 1, 2, 7]
