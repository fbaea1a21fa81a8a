"""enable(spark): which sessions are enabled, and what becomes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

import alluvium
from alluvium import DeltaTable

pytestmark = pytest.mark.spark


@pytest.fixture
def enabled(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


def test_batches_of_a_stream_are_written_and_read(enabled, tmp_path: Path):
    """The sink of the books: a batch is written under its number, so that one that comes again changes nothing."""
    source, sink, merged = (str(tmp_path / name) for name in ("source", "sink", "merged"))
    enabled.range(6).selectExpr("id", "id * 10 v").coalesce(1).write.parquet(source)
    enabled.range(2).selectExpr("id", "-1L v").write.format("delta").save(merged)
    counts = []

    def write(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        for _ in range(2):
            writer = batch.write.format("delta").option("txnAppId", "app").option("txnVersion", number)
            writer.mode("append").save(sink)
        counts.append(session.read.format("delta").load(sink).count())
        # The table of the batch's own session, and that of the session that started the query.
        for spark in (session, enabled):
            table = DeltaTable.forPath(spark, merged)
            merge = table.alias("t").merge(batch.alias("s"), "t.id = s.id")
            merge.whenMatchedUpdate(set={"v": "t.v + s.v"}).whenNotMatchedInsertAll().execute()

    rows = enabled.readStream.schema("id long, v long").parquet(source)
    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert counts == [6]
    assert alluvium.open(sink).txns["app"] == 0
    found = {row.id: row.v for row in enabled.read.format("delta").load(merged).collect()}
    assert found == {0: -1, 1: 19, 2: 40, 3: 60, 4: 80, 5: 100}


def test_other_sessions_are_untouched(spark, tmp_path: Path):
    path = str(tmp_path / "t")
    before = DataFrameReader.load
    alluvium.enable(spark)
    try:
        alluvium.enable(spark)
        spark.range(3).write.format("delta").save(path)
        other = spark.newSession()
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            other.read.format("delta").load(path).count()
        alluvium.enable(other)
        assert other.read.format("delta").load(path).count() == 3
        alluvium.disable(other)
        assert spark.read.format("delta").load(path).count() == 3
        # Another object of Python for the same session.
        assert SparkSession(spark.sparkContext, spark._jsparkSession).read.format("delta").load(path).count() == 3
    finally:
        alluvium.disable(spark)
    alluvium.disable(spark)
    assert DataFrameReader.load is before


_AFTER_THE_JVM = """
import sys
from pyspark import SparkContext
from pyspark.sql import DataFrameReader, SparkSession
import alluvium

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
untouched = DataFrameReader.load
dead = builder.getOrCreate()
alluvium.enable(dead)
dead.range(3).write.format("delta").save(sys.argv[1])
dead.sparkContext._gateway.proc.kill()
dead.sparkContext._gateway.proc.wait()
# What notebooks do then: all that remembers the gateway is forgotten.
SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
SparkSession._instantiatedSession = None
spark = builder.getOrCreate()
assert spark.sql("select 1").collect()[0][0] == 1, "a session that nobody enabled"
alluvium.disable(spark)
assert DataFrameReader.load is untouched
alluvium.enable(spark)
assert spark.read.format("delta").load(sys.argv[1]).count() == 3
assert spark.sql("select 2").collect()[0][0] == 2
alluvium.disable(spark)
assert DataFrameReader.load is untouched
spark.stop()
print("went on")
"""


def test_a_new_session_after_the_jvm_died(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_THE_JVM, str(tmp_path / "t")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "went on" in done.stdout
