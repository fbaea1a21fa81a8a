"""What Structured Streaming does above a Delta source: watermarks, state, joins."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQueryListener

import alluvium


def test_watermarks_and_duplicates(streams) -> None:
    def rows(ids: str, day: int):
        return streams.spark.sql(f"select id, timestamp'2024-01-{day:02} 00:00:00' at from values {ids} v(id)")

    alluvium.write(rows("(1L), (1L), (2L)", 1), streams.path("t"))

    def unique():
        return streams.read("t").withWatermark("at", "1 day").dropDuplicates(["id", "at"])

    streams.into(unique(), "out").awaitTermination()
    alluvium.write(rows("(1L), (3L)", 1), streams.path("t"), mode="append")
    alluvium.write(rows("(9L)", 5), streams.path("t"), mode="append")
    streams.into(unique(), "out").awaitTermination()
    assert streams.ids("out") == [1, 2, 3, 9]

    def daily():
        windows = streams.read("t").withWatermark("at", "1 day").groupBy(sf.window("at", "1 day"))
        return windows.agg(sf.count("*").alias("id"))

    streams.into(daily(), "daily").awaitTermination()
    # The day that the watermark has passed is told, the last is not yet.
    assert streams.ids("daily") == [5]


def test_joins_of_streams(streams) -> None:
    streams.append("a", 0, 6, files=2)
    streams.append("b", 3, 9, files=2)
    joined = streams.read("a", maxFilesPerTrigger=1).join(streams.read("b"), "id")
    streams.into(joined, "out").awaitTermination()
    assert streams.ids("out") == [3, 4, 5]
    one = streams.read("a")
    streams.into(one.union(one), "twice").awaitTermination()
    assert streams.ids("twice") == sorted([*range(6), *range(6)])
    itself = streams.read("a")
    streams.into(itself.alias("x").join(itself.alias("y"), "id").select("id"), "itself").awaitTermination()
    assert streams.ids("itself") == list(range(6))
    static = streams.spark.read.format("delta").load(streams.path("b"))
    streams.into(streams.read("a").join(static, "id"), "static").awaitTermination()
    assert streams.ids("static") == [3, 4, 5]


def test_listeners_and_plans(streams) -> None:
    streams.append("t", 0, 3)
    told: list[str] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event) -> None:
            told.append("started")

        def onQueryProgress(self, event) -> None:
            told.append(event.progress.sources[0].description)

        def onQueryTerminated(self, event) -> None:
            told.append("terminated")

    listener = Listener()
    streams.spark.streams.addListener(listener)
    query = streams.into(streams.read("t"), "out")
    query.awaitTermination()
    query.explain()
    streams.read("t").explain()
    streams.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    streams.spark.streams.removeListener(listener)
    assert told[0] == "started"
    assert any(each.startswith("DeltaSource[") for each in told)


def test_chains(streams) -> None:
    streams.append("a", 0, 3)
    for source, target in (("a", "b"), ("b", "c")):
        streams.copy(source, target)
    streams.append("a", 3, 5)
    for source, target in (("a", "b"), ("b", "c")):
        streams.copy(source, target)
    assert streams.ids("c") == list(range(5))


def test_a_static_side_is_read_anew_by_each_batch(streams) -> None:
    streams.append("facts", 0, 3)
    streams.append("names", 0, 2)
    names = streams.spark.read.format("delta").load(streams.path("names")).withColumnRenamed("id", "name")
    facts = streams.read("facts")
    joined = facts.join(names, facts["id"] == names["name"], "left")
    seen: list[list[tuple[int, int | None]]] = []
    query = (
        joined.writeStream.foreachBatch(lambda batch, _: seen.append(sorted(map(tuple, batch.collect()))))
        .option("checkpointLocation", streams.path("checkpoint"))
        .start()
    )
    query.processAllAvailable()
    streams.append("names", 2, 9)
    alluvium.DeltaTable.forPath(streams.spark, streams.path("names")).delete("id = 1")
    streams.append("facts", 1, 5)
    query.processAllAvailable()
    # As delta-spark: what a static table has when a batch begins.
    assert seen == [[(0, 0), (1, 1), (2, None)], [(1, None), (2, 2), (3, 3), (4, 4)]]
    table = alluvium.DeltaTable.forPath(streams.spark, streams.path("names"))
    table.addColumns({"more": "int"})
    streams.append("facts", 5, 6)
    query.processAllAvailable()
    assert seen[-1] == [(5, 5)]
    streams.spark.range(3).selectExpr("string(id) as id").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(streams.path("names"))
    streams.append("facts", 6, 7)
    with pytest.raises(StreamingQueryException, match="the table has changed so that this DataFrame cannot show it"):
        query.processAllAvailable()
    assert len(seen) == 3


def test_the_sinks_own_table_as_the_static_side(streams) -> None:
    streams.append("facts", 0, 3)
    streams.append("out", 2, 3)
    known = streams.spark.read.format("delta").load(streams.path("out"))
    fresh = streams.read("facts").dropDuplicates(["id"]).join(known, "id", "left_anti")
    query = (
        fresh.writeStream.format("delta")
        .option("checkpointLocation", streams.path("checkpoint"))
        .start(streams.path("out"))
    )
    query.processAllAvailable()
    assert streams.ids("out") == [0, 1, 2]
    streams.append("out", 7, 8)
    streams.append("facts", 2, 9)
    query.processAllAvailable()
    query.stop()
    # What came to the table while the query ran is seen, by whomever.
    assert streams.ids("out") == list(range(9))


def test_what_a_batch_asks_after_its_own_writes(streams) -> None:
    """A batch is carried out within a query of Spark's, but what its function asks are queries of their own."""
    streams.append("facts", 0, 1)
    streams.append("known", 0, 3)
    known = streams.spark.read.format("delta").load(streams.path("known"))
    seen: list[tuple[int, int, int]] = []

    def look() -> None:
        rows = known.where("id >= 0")
        seen.append((rows.rdd.count(), rows.count(), len(rows.inputFiles())))

    def write(batch, number: int) -> None:
        look()
        streams.append("known", 3, 5)
        look()
        batch.sparkSession.sql(f"delete from delta.`{streams.path('known')}` where id < 3")
        look()

    reader = streams.read("facts").writeStream.foreachBatch(write)
    reader.option("checkpointLocation", streams.path("checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert seen == [(3, 3, 1), (5, 5, 2), (2, 2, 1)]
