"""A checkpoint beyond the limit is read by Spark: the same rows and files, none of them named before a query."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target
from pyspark.sql import SparkSession

import alluvium
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store

LIMIT = "spark.alluvium.log.maxCheckpointBytes"
FILES = "spark.alluvium.log.maxFiles"


@pytest.fixture
def url(tmp_path: Path) -> str:
    store = open_store(str(tmp_path))
    for number, p in enumerate(["a", "b", "a", "c"]):
        commit_rows(open_target(store, partitioned=True), [number * 10 + i for i in range(10)], p)
    write_checkpoint(store, load_snapshot(store).state, CheckpointOptions(0, 0))
    commit_rows(open_target(store, partitioned=True), [100, 101], "b")
    return str(tmp_path)


def test_spark_reads_a_large_log(spark: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    expected = sorted(map(tuple, alluvium.read(spark, url).collect()))
    spark.conf.set(LIMIT, "1")
    try:
        df = alluvium.read(spark, url)
        assert sorted(map(tuple, df.collect())) == expected
        assert df.where("p = 'b'").count() == 12
        assert [row["id"] for row in df.where("id = 25").collect()] == [25]
        assert df.where("id > 1000").count() == 0
        assert df.join(df.where("id >= 100"), "p").count() == 24
        (scan,) = alluvium.explain(df.where("id >= 30 and id < 35"))
        assert scan.files == 1
        spark.conf.set(FILES, "2")
        with pytest.raises(InvalidRequest) as raised:
            df.where("id < 38").count()
        assert raised.value.code == "too-many-files"
    finally:
        spark.conf.unset(LIMIT)
        spark.conf.unset(FILES)
