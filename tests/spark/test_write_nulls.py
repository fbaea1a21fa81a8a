"""What the job makes of values that files cannot hold: columns of nulls alone, texts that share null's directory."""

from __future__ import annotations

from pathlib import Path

import pytest

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark


def test_texts_that_share_the_directory_of_null_are_null(spark, tmp_path: Path) -> None:
    """ "The empty string [...] translates to null": Spark's own writer fails over two partitions of one directory."""
    rows = [(None, 1), ("", 2), ("__HIVE_DEFAULT_PARTITION__", 3), ("x", 4)]
    alluvium.write(spark.createDataFrame(rows, "p string, i int").coalesce(1), str(tmp_path / "t"), partition_by="p")
    found = {row["i"]: row["p"] for row in alluvium.open(str(tmp_path / "t")).to_arrow().to_pylist()}
    assert found == {1: None, 2: None, 3: None, 4: "x"}


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("kind", ["not null", "p is not null", "p <> 'x'"])
def test_a_text_that_comes_back_as_null_is_null_to_constraints(spark, tmp_path: Path, kind: str, text: str) -> None:
    """As in delta-spark 4.4, which refuses such rows, too."""
    path, never_null = str(tmp_path / "t"), kind == "not null"
    table = DeltaTable.create(spark).location(path).addColumn("p", "string", nullable=not never_null)
    table = table.addColumn("i", "int").partitionedBy("p").execute()
    if not never_null:
        table.addConstraint("c", kind)
    with pytest.raises(alluvium.errors.InvalidRequest) as caught:
        alluvium.write(spark.createDataFrame([(text, 1)], "p string, i int"), path, mode="append")
    assert caught.value.code in ("constraint-violated", "not-null-violated")
    alluvium.write(spark.createDataFrame([("y", 1)], "p string, i int"), path, mode="append")
    with pytest.raises(alluvium.errors.InvalidRequest):
        table.update(set={"p": f"'{text}'"})
    assert [tuple(r) for r in table.toDF().collect()] == [("y", 1)]


def test_columns_of_nulls_alone_are_left_out_of_the_files(spark, tmp_path: Path) -> None:
    df = spark.sql("select 1 a, null v, named_struct('x', 2, 'n', null, 'in', named_struct('y', 3, 'm', null)) s")
    alluvium.write(df, str(tmp_path / "t"))
    assert str(alluvium.open(str(tmp_path / "t")).to_arrow().column("v").type) == "null"
    if spark.version.startswith("4.0."):
        pytest.skip("Spark 4.0 does not read a column of type void out of Parquet; it is read without Spark")
    (row,) = alluvium.read(spark, str(tmp_path / "t")).collect()
    assert row.asDict(recursive=True) == {
        "a": 1,
        "v": None,
        "s": {"x": 2, "n": None, "in": {"y": 3, "m": None}},
    }


def test_rows_lack_no_partition_column(spark, tmp_path: Path) -> None:
    alluvium.write(spark.sql("select 1 a, 'x' p"), str(tmp_path / "t"), partition_by="p")
    with pytest.raises(alluvium.errors.InvalidRequest) as caught:
        alluvium.write(spark.sql("select 1 a"), str(tmp_path / "t"), mode="append")
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", "p")
