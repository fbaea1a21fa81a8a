"""Keys without their partition: a row is found in whatever partition it is."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.commands import write as writing
from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("p", pa.string())])
Row = tuple[Any, ...]
COLUMNS = "k long, n long, p string"


def make(path: Path, **options: str) -> PaimonTable:
    return PaimonTable.create(str(path / "t"), SCHEMA, ["p"], ["k"], options)


def write(spark: SparkSession, path: Path, *rows: Row, **options: str) -> None:
    df = spark.createDataFrame(list(rows), COLUMNS).coalesce(1)
    alluvium.write(df, str(path / "t"), mode=options.pop("mode", "append"), format="paimon", **options)


def rows(path: Path) -> list[Row]:
    return sorted(tuple(row.values()) for row in alluvium.open(str(path / "t")).to_arrow().to_pylist())


FIRST = [(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (1, 10, "b"), (4, 4, None)]
SECOND = [(1, 100, "a"), (2, 20, "c"), (3, 30, "b"), (4, 40, "b"), (6, 6, "a"), (4, 44, "a")]


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        ({}, [(1, 10, "b"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)],
         [(1, 100, "a"), (2, 20, "c"), (3, 30, "b"), (4, 44, "a"), (6, 6, "a")]),
        ({"file.format": "avro"}, [(1, 10, "b"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)],
         [(1, 100, "a"), (2, 20, "c"), (3, 30, "b"), (4, 44, "a"), (6, 6, "a")]),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
         [(1, 11, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)],
         [(1, 111, "a"), (2, 22, "a"), (3, 33, "b"), (4, 88, None), (6, 6, "a")]),
        ({"merge-engine": "first-row"}, [(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)],
         [(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, None), (6, 6, "a")]),
    ],
    ids=["last", "avro", "sums", "first"],
)  # fmt: skip
def test_a_key_is_in_one_partition(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], first: list[Row], second: list[Row]
) -> None:
    table = make(tmp_path, **options)
    write(spark, tmp_path, *FIRST)
    assert rows(tmp_path) == first
    write(spark, tmp_path, *SECOND)
    assert rows(tmp_path) == second
    if "merge-engine" not in options:
        table.compact()
        assert rows(tmp_path) == second


def test_rows_that_move(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path, **{"dynamic-bucket.target-row-num": "2", "changelog-producer": "input"})
    write(spark, tmp_path, (1, 1, "a"), (2, 2, "a"), (3, 3, "a"), (4, 4, "b"))
    found = alluvium.open(str(tmp_path / "t")).system("files").to_pylist()
    assert sorted((f["partition"], f["bucket"], f["record_count"]) for f in found) == [
        ("{a}", 0, 2), ("{a}", 1, 1), ("{b}", 0, 1),
    ]  # fmt: skip
    assert table.update("k = 1", {"p": "'b'"}).metrics["numUpdatedRows"] == "1"
    told = alluvium.open(str(tmp_path / "t")).changes(1, 2, mode="changelog").to_pylist()
    assert sorted((r["_row_kind"], r["p"]) for r in told) == [("+U", "b"), ("-D", "a")]
    source = spark.createDataFrame([(2, 7, "m"), (9, 9, "m")], COLUMNS)
    merge = table.alias("t").merge(source.alias("s"), "t.k = s.k")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.delete("k = 3")
    assert rows(tmp_path) == [(1, 1, "b"), (2, 7, "m"), (4, 4, "b"), (9, 9, "m")]
    # No key is left of those in its files: there is room again in the first bucket.
    write(spark, tmp_path, (5, 5, "a"))
    newest = alluvium.open(str(tmp_path / "t")).system("files").to_pylist()[-1]
    assert (newest["partition"], newest["bucket"], len(rows(tmp_path))) == ("{a}", 0, 5)
    with pytest.raises(UnsupportedFeature) as caught:
        write(spark, tmp_path, (5, 5, "z"), mode="overwrite", partitionOverwriteMode="dynamic")
    assert caught.value.code == "unsupported-overwrite"
    write(spark, tmp_path, (5, 6, "z"), mode="overwrite")
    assert rows(tmp_path) == [(5, 6, "z")]


def test_keys_are_counted_in_partitions_with_names_that_sql_would_take_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema([("k.1", pa.int64()), ("p.`q", pa.string())])
    options = {"dynamic-bucket.target-row-num": "2"}
    table = PaimonTable.create(str(tmp_path / "t"), schema, ["p.`q"], ["k.1"], options)

    def write_keys(*keys: int) -> None:
        df = spark.createDataFrame([(key, "a") for key in keys], "`k.1` long, `p.``q` string").coalesce(1)
        alluvium.write(df, str(tmp_path / "t"), mode="append", format="paimon")

    write_keys(1, 2)
    table.delete("`k.1` = 1")
    # The bucket's files have more rows than it has keys: these are counted.
    write_keys(3)
    assert rows(tmp_path) == [(2, "a"), (3, "a")]
    assert set(alluvium.open(str(tmp_path / "t")).system("files")["bucket"].to_pylist()) == {0}


def test_a_state_that_expires_while_keys_are_looked_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the keys are is asked anew: they are in other files now."""
    make(tmp_path)
    write(spark, tmp_path, *FIRST)
    look, soon = writing.across_partitions, dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)
    looks: list[int] = []

    def late(*asked: Any) -> Any:
        looks.append(1)
        if len(looks) == 1:
            monkeypatch.setattr(writing, "across_partitions", look)
            write(spark, tmp_path, (3, 33, "c"))
            monkeypatch.setattr(writing, "across_partitions", late)
            table = PaimonTable.forPath(str(tmp_path / "t"))
            table.compact(spark=spark)
            table.expire_snapshots(retain_max=1, retain_min=1, older_than=soon)
        return look(*asked)

    monkeypatch.setattr(writing, "across_partitions", late)
    write(spark, tmp_path, (3, 30, "a"), (5, 5, "a"))
    assert len(looks) == 2
    assert rows(tmp_path) == [(1, 10, "b"), (2, 2, "a"), (3, 30, "a"), (4, 4, None), (5, 5, "a")]
