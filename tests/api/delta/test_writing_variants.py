"""Variants that Spark writes for us: never shredded, counted, checked, read by every lane."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store

ROWS = """select id, if(id = 3, null, parse_json(concat('{"a": ', id, ', "b": "x"}'))) v,
    array(parse_json('[1, 2]')) items, named_struct('v', parse_json('true'), 'n', id) s from range(0, 6, 1, 1)"""


def parquet_columns(root: Path) -> set[str]:
    return {
        pq.ParquetFile(path).schema.column(i).path
        for path in root.glob("*/*.parquet")
        for i in range(len(pq.ParquetFile(path).schema))
    }


def stats(root: Path) -> list[dict]:
    found = load_snapshot(open_store(str(root))).files.column("stats").to_pylist()
    return [json.loads(text) for text in found]


def test_variants_are_written_unshredded(spark, tmp_path: Path) -> None:
    """ "must write a column of type `variant` to parquet in the "unshredded" representation as a struct containing the
    fields `value` and `metadata`", whatever the session would do by itself.
    """
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    spark.conf.set("spark.sql.variant.forceShreddingSchemaForTest", "a int")
    try:
        alluvium.write(spark.sql(ROWS), str(tmp_path / "t"))
        assert spark.conf.get("spark.sql.variant.writeShredding.enabled") == "true"
    finally:
        spark.conf.unset("spark.sql.variant.writeShredding.enabled")
        spark.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")
    columns = parquet_columns(tmp_path / "t")
    assert {"v.value", "v.metadata", "s.v.value", "s.v.metadata"} <= columns
    assert not any("typed_value" in column for column in columns)
    read = alluvium.read(spark, str(tmp_path / "t"))
    found = read.selectExpr("id", "to_json(v) v", "to_json(items[0]) i", "to_json(s.v) s").orderBy("id").collect()
    assert [row.v for row in found] == [None if n == 3 else json.dumps({"a": n, "b": "x"}, separators=(",", ":"))
                                        for n in range(6)]  # fmt: skip
    assert {(row.i, row.s) for row in found} == {("[1,2]", "true")}
    pandas = alluvium.open(str(tmp_path / "t")).to_pandas()
    assert json.loads(pandas.sort_values("id")["v"].iloc[1]) == {"a": 1, "b": "x"}


def test_the_log_counts_nulls_and_no_more(spark, tmp_path: Path) -> None:
    """ "A Variant column supports the `nullCount` statistic." """
    alluvium.write(spark.sql(ROWS), str(tmp_path / "t"))
    (found,) = stats(tmp_path / "t")
    assert found["numRecords"] == 6
    assert found["nullCount"]["v"] == 1 and found["nullCount"]["s"]["v"] == 0
    assert "v" not in found["minValues"] and found["minValues"]["s"] == {"n": 0}
    protocol = alluvium.open(str(tmp_path / "t")).protocol
    assert "variantType" in protocol.reader_features


def test_checks_generated_columns_and_mapping_over_variants(spark, tmp_path: Path) -> None:
    """ "A Variant column is allowed to be used for a CHECK constraint expression", "as a source in a generated column
    expression".
    """
    url = str(tmp_path / "t")
    table = (
        DeltaTable.create(spark)
        .location(url)
        .addColumn("id", "bigint")
        .addColumn("v", "variant")
        .addColumn("a", "int", generatedAlwaysAs="variant_get(v, '$.a', 'int')")
        .property("delta.columnMapping.mode", "name")
        .execute()
    )
    table.addConstraint("positive", "variant_get(v, '$.a', 'int') > 0")
    rows = spark.sql("""select 1L id, parse_json('{"a": 5}') v""")
    alluvium.write(rows, url, mode="append")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("""select 1L id, parse_json('{"a": -5}') v"""), url, mode="append")
    assert caught.value.code == "constraint-violated"
    assert [(row.id, row.a) for row in table.toDF().collect()] == [(1, 5)]


def test_overwriting_with_variants_in_a_partitioned_table(spark, tmp_path: Path) -> None:
    """ "A Variant column is allowed to be a non-partitioned column of a partitioned table." """
    url = str(tmp_path / "t")
    alluvium.write(
        spark.sql("select id, parse_json(cast(id as string)) v, id % 2 p from range(4)"), url, partition_by="p"
    )
    new = spark.sql("select 9L id, parse_json('9') v, 1L p")
    alluvium.write(new, url, mode="overwrite", replaceWhere="p = 1")
    assert sorted((r.id, r.v) for r in alluvium.read(spark, url).selectExpr("id", "to_json(v) v").collect()) == [
        (0, "0"), (2, "2"), (9, "9")]  # fmt: skip
