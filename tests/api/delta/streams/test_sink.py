"""Delta tables as sinks of streams."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.streams.writer import DeltaSink
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.spark.jvm.gateway import java_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def counted(streams, **options):
    return streams.read("t", **options).groupBy((sf.col("id") % 2).alias("k")).count()


def test_complete_replaces_all_rows(streams) -> None:
    streams.append("t", 0, 4)
    streams.into(counted(streams), "out", "complete").awaitTermination()
    streams.append("t", 4, 10)
    query = streams.into(counted(streams), "out", "complete")
    query.awaitTermination()
    view = alluvium.open(streams.path("out"))
    assert sorted(view.to_arrow()["count"].to_pylist()) == [5, 5]
    newest, first = view.history()
    assert newest["operation"] == "STREAMING UPDATE"
    assert newest["operationParameters"] == {"outputMode": "Complete", "queryId": query.id, "epochId": "1"}
    assert set(newest["operationMetrics"]) == {"numRemovedFiles", "numAddedFiles", "numOutputRows", "numOutputBytes"}
    assert (newest["operationMetrics"]["numRemovedFiles"], newest["isBlindAppend"]) == ("1", False)
    assert first["operationMetrics"]["numRemovedFiles"] == "0"


def test_a_batch_that_comes_again_is_written_once(streams, monkeypatch: pytest.MonkeyPatch) -> None:
    streams.append("t", 0, 4)
    write = DeltaSink.write

    def failing(self, batch):
        write(self, batch)
        raise RuntimeError("the driver dies after the commit")

    monkeypatch.setattr(DeltaSink, "write", failing)
    query = streams.into(counted(streams), "out", "complete")
    with pytest.raises(Exception, match="the driver dies"):
        query.awaitTermination()
    monkeypatch.undo()
    streams.append("t", 4, 8)
    again = streams.into(counted(streams), "out", "complete")
    again.awaitTermination()
    view = alluvium.open(streams.path("out"))
    # The state that the first batch would have left is there, although its rows were not written again.
    assert sorted(view.to_arrow()["count"].to_pylist()) == [4, 4]
    assert (view.version, view.txns) == (1, {again.id: 1})


def sleeping(streams) -> StreamingQuery:
    """A query whose batch is being written, and will be for long."""
    streams.append("t", 0, 4)
    slow = streams.read("t").select(sf.expr("java_method('java.lang.Thread', 'sleep', 600000L + id)").alias("x"))
    slow = slow.withColumn("id", sf.lit(1))
    query = streams.into(slow, "out")
    deadline = time.monotonic() + 60
    while not streams.spark.sparkContext.statusTracker().getActiveStageIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return query


def test_stop_during_a_write_is_no_failure(streams) -> None:
    query = sleeping(streams)
    query.stop()
    assert query.exception() is None


def test_a_job_that_is_cancelled_ends_the_query_of_that(streams) -> None:
    query = sleeping(streams)
    streams.spark.sparkContext.cancelJobGroup(query.runId)
    with pytest.raises(StreamingQueryException, match="cancelled job group"):
        query.awaitTermination(60)


def test_constraints_and_columns(streams) -> None:
    streams.append("t", 0, 4)
    path = streams.path("out")
    spark = streams.spark
    table = DeltaTable.create(spark).location(path).addColumn("id", "bigint")
    table.addColumn("twice", "bigint", generatedAlwaysAs="id * 2").execute()
    DeltaTable.forPath(spark, path).addConstraint("small", "id < 4")
    streams.copy("t", "out")
    assert alluvium.open(path).to_arrow().sort_by("id")["twice"].to_pylist() == [0, 2, 4, 6]
    streams.append("t", 4, 6)
    with pytest.raises(InvalidRequest) as caught:
        streams.copy("t", "out")
    assert caught.value.code == "constraint-violated"
    assert alluvium.open(path).to_arrow().num_rows == 4


def test_other_columns(streams) -> None:
    streams.append("t", 0, 4)
    streams.copy("t", "out")
    wide = streams.read("t").withColumn("n", sf.lit(1))
    query = streams.into(wide, "out", checkpointLocation=streams.path("cp"))
    with pytest.raises(InvalidRequest) as caught:
        query.awaitTermination()
    assert caught.value.getCondition() == "DELTA_METADATA_MISMATCH"
    merged = streams.into(wide, "out", checkpointLocation=streams.path("cp"), mergeSchema=True, userMetadata="hello")
    merged.awaitTermination()
    view = alluvium.open(streams.path("out"))
    assert view.to_arrow()["n"].null_count == 4
    assert view.history(1)[0]["userMetadata"] == "hello"


def test_what_the_sink_cannot_do_is_refused_at_start(streams) -> None:
    streams.append("t", 0, 4)
    with pytest.raises(InvalidRequest) as update:
        streams.into(counted(streams), "out", "update")
    assert update.value.getCondition() == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    writer = streams.read("t").writeStream.format("delta").option("checkpointLocation", streams.path("cp"))
    with pytest.raises(InvalidRequest) as continuous:
        writer.trigger(continuous="1 second").start(streams.path("out"))
    assert continuous.value.code == "unsupported-trigger"
    for act, code in (
        (lambda: streams.into(streams.read("t").withColumn("n", sf.lit(None)), "out"), "void-column"),
        (lambda: streams.into(streams.read("t"), "out", nonsense=1), "unknown-option"),
        (lambda: streams.into(streams.read("t"), "out", maxRecordsPerFile="many"), "invalid-option"),
        (lambda: streams.into(streams.read("t"), "out", optimizeWrite="maybe"), "invalid-option"),
        (lambda: streams.read("t").writeStream.format("delta").start(), "no-path"),
        (lambda: streams.into(streams.read("t"), "out", path=streams.path("other")), "contradicting-options"),
        (lambda: streams.read("t", path=streams.path("other")), "contradicting-options"),
        (lambda: streams.read("t").writeStream.format("delta").partitionBy("x").start(streams.path("out")), None),
    ):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert code is None or caught.value.code == code
    with pytest.raises(AnalysisException, match="checkpointLocation"):
        streams.read("t").writeStream.format("delta").start(streams.path("out"))
    with pytest.raises(AnalysisException, match="watermark"):
        streams.into(counted(streams), "out")
    assert not streams.spark.streams.active


def test_an_argument_counts_before_an_option_where_the_session_says_so(streams) -> None:
    streams.append("t", 0, 4)
    setting = "spark.sql.legacy.pathOptionBehavior.enabled"
    streams.spark.conf.set(setting, "true")
    try:
        rows = streams.read("t", path=streams.path("nothing"))
        streams.into(rows, "out", path=streams.path("other")).awaitTermination()
    finally:
        streams.spark.conf.unset(setting)
    assert streams.ids("out") == [0, 1, 2, 3]


def test_a_complete_output_is_refused_by_a_table_that_only_grows_before_its_first_batch(streams) -> None:
    streams.append("t", 0, 4)
    empty = streams.spark.createDataFrame([], "k long, count long")
    alluvium.write(empty, streams.path("out"), **{"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest) as caught:
        streams.into(counted(streams), "out", "complete")
    assert (caught.value.code, caught.value.getCondition()) == ("append-only", "DELTA_CANNOT_MODIFY_APPEND_ONLY")
    assert alluvium.open(streams.path("out")).version == 0


@pytest.mark.parametrize("changes", [{}, {"readChangeFeed": "true"}])
def test_a_copy_has_neither_the_defaults_nor_the_generation_of_its_source(streams, changes) -> None:
    """They are promises of that table, for which the copy has no feature."""
    source = streams.path("t")
    streams.spark.sql(
        f"create table delta.`{source}` (id int, d int default 7, g int generated always as (id + 1), c char(3)) "
        "using delta tblproperties "
        "('delta.feature.allowColumnDefaults' = 'supported', 'delta.enableChangeDataFeed' = 'true')"
    )
    streams.spark.sql(f"insert into delta.`{source}` (id, c) values (1, 'a')")
    rows = streams.read("t", **changes).select("id", "d", "g", "c")
    streams.into(rows, "by_path").awaitTermination()
    name = f"delta.`{streams.path('by_name')}`"
    writer = rows.writeStream.option("checkpointLocation", streams.path("cp")).trigger(availableNow=True)
    writer.toTable(name, format="delta").awaitTermination()
    streams.spark.read.format("delta").load(source).write.format("delta").save(streams.path("batch"))
    alluvium.write(streams.spark.range(3), streams.path("over"))
    streams.spark.read.format("delta").load(source).write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(streams.path("over"))
    for copy in ("by_path", "by_name", "batch", "over"):
        view = alluvium.open(streams.path(copy))
        assert [dict(f.metadata) for f in view.schema.fields] == [{}, {}, {}, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}]
        assert [tuple(row.values()) for row in view.to_arrow().to_pylist()] == [(1, 7, 2, "a  ")]
    keeps = {"delta.feature.allowColumnDefaults": "supported"}
    streams.spark.read.format("delta").load(source).write.format("delta").options(**keeps).save(streams.path("kept"))
    assert alluvium.open(streams.path("kept")).schema.fields[1].metadata == {"CURRENT_DEFAULT": "7"}


def test_partitions(streams) -> None:
    streams.append("t", 0, 4)
    df = streams.read("t").withColumn("p", sf.col("id") % 2)
    writer = df.writeStream.format("delta").option("checkpointLocation", streams.path("cp")).partitionBy("p")
    writer.trigger(availableNow=True).start(streams.path("out")).awaitTermination()
    view = alluvium.open(streams.path("out"))
    assert (view.partition_columns, view.to_arrow().num_rows) == (("p",), 4)
    # As delta-spark's: rows that say nothing of their partition are not those of no partition.
    for options in ({}, {"mergeSchema": "true"}):
        with pytest.raises(StreamingQueryException, match="DELTA_PARTITION_COLUMN_NOT_FOUND"):
            streams.into(streams.read("t"), "out", checkpointLocation=streams.path("cp2"), **options).awaitTermination()
    assert alluvium.open(streams.path("out")).version == view.version


def test_clusters(streams) -> None:
    streams.append("t", 0, 4)

    def start(column: str, checkpoint: str):
        writer = streams.read("t").withColumn("p", sf.col("id") % 2).writeStream.format("delta").clusterBy(column)
        writer = writer.option("checkpointLocation", streams.path(checkpoint)).trigger(availableNow=True)
        return writer.start(streams.path("out"))

    with pytest.raises(InvalidRequest):
        start("q", "cp")
    start("p", "cp").awaitTermination()
    assert '"clusteringColumns":[["p"]]' in alluvium.open(streams.path("out")).domains["delta.clustering"]
    with pytest.raises(InvalidRequest) as caught:
        start("id", "other")
    assert caught.value.code == "clustering-mismatch"


def test_foreach_batch_with_merge(streams) -> None:
    streams.append("t", 0, 6)
    path = streams.path("out")
    alluvium.write(streams.spark.range(3).withColumn("n", sf.lit(0)), path)

    def merge(rows, number: int) -> None:
        table = DeltaTable.forPath(rows.sparkSession, path).alias("t")
        new = rows.withColumn("n", sf.lit(1)).alias("s")
        table.merge(new, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = streams.read("t", maxFilesPerTrigger=1).writeStream.foreachBatch(merge)
    writer.option("checkpointLocation", streams.path("cp")).trigger(availableNow=True).start().awaitTermination()
    assert alluvium.open(path).to_arrow().sort_by("id")["n"].to_pylist() == [1] * 6


def test_rows_that_are_looked_for_in_the_sink_itself(streams) -> None:
    """What a batch has read of the table that it goes to belongs to its commit; read before that, it would come twice."""
    streams.append("out", 0, 2)
    streams.append("t", 1, 4)
    known = alluvium.read(streams.spark, streams.path("out"))

    def new(known):
        return streams.read("t").join(known, "id", "left_anti")

    streams.into(new(known), "out").awaitTermination()
    assert alluvium.open(streams.path("out")).history(1)[0]["isBlindAppend"] is False
    streams.append("t", 3, 6)
    with pytest.raises(CommitConflict) as caught:
        streams.into(new(known), "out").awaitTermination()
    assert "foreachBatch" in str(caught.value.hint)
    assert streams.ids("out") == [0, 1, 2, 3]
    again = streams.spark.read.format("delta").load(streams.path("out"))
    streams.into(new(again), "out").awaitTermination()
    assert streams.ids("out") == [0, 1, 2, 3, 4, 5]
    # The same frame, which follows.
    streams.append("t", 4, 8)
    streams.into(new(again), "out").awaitTermination()
    assert streams.ids("out") == list(range(8))


def test_proxies_are_let_go(streams) -> None:
    streams.append("t", 0, 2)
    pool = java_of(streams.spark).gateway.gateway_property.pool

    def kept(at_most: int, for_s: float) -> int:
        """How many there are, as soon as they are so few: the JVM's collector is in no hurry, nor are its finalizers."""
        end_s = time.monotonic() + for_s
        while True:
            gc.collect()
            java_of(streams.spark).system.gc()
            time.sleep(0.2)
            if len(pool) <= at_most or time.monotonic() > end_s:
                return len(pool)

    streams.copy("t", "out")
    before, threads = kept(0, for_s=2), threading.active_count()
    for n in range(6):
        streams.append("t", n, n + 1)
        streams.copy("t", "out")
    # A run leaves two proxies and more, until they are collected.
    assert kept(before + 4, for_s=30) <= before + 4, list(pool.dict.values())
    # The JVM calls each query's proxies by a thread of its own; other tests of the process have left theirs.
    assert threading.active_count() < threads + 6
