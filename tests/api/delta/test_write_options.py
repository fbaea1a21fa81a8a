"""Options and properties that say how rows become files."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store


def last_commit(root: Path) -> list[dict]:
    newest = sorted((root / "_delta_log").glob("*.json"))[-1]
    return [json.loads(line) for line in newest.read_text().splitlines()]


def data_files(root: Path) -> list[Path]:
    paths = load_snapshot(open_store(str(root))).files.column("path").to_pylist()
    return [root / path for path in paths]


@pytest.fixture
def setting(spark) -> Iterator[object]:
    changed: list[str] = []

    def change(key: str, value: str) -> None:
        spark.conf.set(key, value)
        changed.append(key)

    yield change
    for key in changed:
        spark.conf.unset(key)


def test_rows_that_are_only_rearranged(spark, tmp_path: Path) -> None:
    """ "the records in the added file must be contained in one or more remove actions in the same version" """
    root = tmp_path / "t"
    alluvium.write(
        spark.range(0, 100, 1, 4), str(root), **{"delta.appendOnly": "true", "delta.enableRowTracking": "true"}
    )
    rows = alluvium.read(spark, str(root)).coalesce(1)
    alluvium.write(rows, str(root), mode="overwrite", dataChange=False)
    commit = last_commit(root)
    assert {a["add"]["dataChange"] for a in commit if "add" in a} == {False}
    assert [a["remove"]["dataChange"] for a in commit if "remove" in a] == [False] * 4
    # "Writers should set that flag to false otherwise": the copies have new row ids.
    assert commit[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "false"}
    assert alluvium.read(spark, str(root)).count() == 100
    for mode, df, code in (
        ("append", rows, "data-changed"),
        ("overwrite", spark.range(99), "data-changed"),
        ("overwrite", spark.range(101), "data-changed"),
        ("overwrite", spark.sql("select id, 1 x from range(100)"), "schema-mismatch"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(df, str(root), mode=mode, dataChange="false")
        assert caught.value.code == code
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(rows.selectExpr("id", "1 x"), str(root), mode="overwrite", dataChange=False, mergeSchema=True)
    assert caught.value.code == "contradicting-options"
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(rows, str(tmp_path / "new"), mode="overwrite", dataChange=False)
    assert caught.value.code == "data-changed"
    assert alluvium.open(str(root)).version == 1


def test_optimized_writes(spark, tmp_path: Path, setting) -> None:
    """One file a partition instead of one for each task and partition; large ones are split at the target size."""
    setting("spark.sql.adaptive.enabled", "false")
    rows = spark.range(0, 80_000, 1, 8).selectExpr("id", "cast(id % 4 as int) p", "uuid() text")
    alluvium.write(rows, str(tmp_path / "plain"), partition_by="p")
    assert len(data_files(tmp_path / "plain")) == 32
    alluvium.write(rows, str(tmp_path / "option"), partition_by="p", optimizeWrite=True)
    assert len(data_files(tmp_path / "option")) == 4
    properties = {"delta.autoOptimize.optimizeWrite": "true", "delta.targetFileSize": "1mb"}
    alluvium.write(rows, str(tmp_path / "property"), **properties)
    assert 2 <= len(data_files(tmp_path / "property")) < 8
    alluvium.write(rows, str(tmp_path / "property"), mode="append", optimizeWrite=False)
    assert len(data_files(tmp_path / "property")) >= 2 + 8
    setting("spark.databricks.delta.optimizeWrite.enabled", "true")
    alluvium.write(rows.repartition(3), str(tmp_path / "session"), partition_by="p")
    assert len(data_files(tmp_path / "session")) == 4
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert alluvium.read(spark, str(tmp_path / "option")).where("p = 3").count() == 20_000


def test_compression_and_random_prefixes(spark, tmp_path: Path) -> None:
    root = tmp_path / "t"
    properties = {
        "delta.parquet.compression.codec": "zstd",
        "delta.randomizeFilePrefixes": "true",
        "delta.randomPrefixLength": "3",
    }
    alluvium.write(
        spark.sql("select id, id % 2 p from range(10)").coalesce(1), str(root), partition_by="p", **properties
    )
    alluvium.write(spark.sql("select 10L id, null p"), str(root), mode="append", compression="gzip")
    codecs = [pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in data_files(root)]
    assert sorted(codecs) == ["GZIP", "ZSTD", "ZSTD"]
    for path in data_files(root):
        prefix = path.relative_to(root).parts[0]
        assert len(prefix) == 3 and prefix.isalnum()
    assert sorted((row.id, row.p) for row in alluvium.read(spark, str(root)).where("id > 8").collect()) == [
        (9, 1), (10, None)]  # fmt: skip


def test_partition_columns_in_the_files(spark, tmp_path: Path) -> None:
    """ "writers must require that partition column values are materialized into any newly created data file, placed after
    the data columns in the parquet schema."
    """
    url = str(tmp_path / "t")
    (
        DeltaTable.create(spark)
        .location(url)
        .addColumn("p", "string")
        .addColumn("p_", "int")
        .addColumn("d", "date")
        .addColumn("id", "bigint")
        .partitionedBy("p", "d")
        .property("delta.enableMaterializePartitionColumnsFeature", "true")
        .execute()
    )
    rows = spark.sql("select 'a b/c' p, 1 p_, date'2024-01-31' d, 1L id union all select null, 2, null, 2L")
    alluvium.write(rows, url, mode="append", optimizeWrite=True)
    files = data_files_of_log(url)
    assert len(files) == 2
    for path in files:
        assert pq.ParquetFile(path).schema_arrow.names == ["p_", "id", "p", "d"]
    table = alluvium.open(url)
    assert sorted(str(row) for row in table.to_arrow(["p", "d", "id"]).to_pylist()) == sorted(
        [str({"p": "a b/c", "d": dt.date(2024, 1, 31), "id": 1}),
         str({"p": None, "d": None, "id": 2})])  # fmt: skip
    assert alluvium.read(spark, url).where("p = 'a b/c'").select("p_").collect()[0].p_ == 1
    assert alluvium.read(spark, url).columns == ["p", "p_", "d", "id"]


def data_files_of_log(url: str) -> list[Path]:
    return sorted(path for path in Path(url).rglob("*.parquet") if "_delta_log" not in path.parts)
