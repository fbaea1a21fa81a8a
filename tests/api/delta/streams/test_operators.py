"""What Structured Streaming does above a Delta source: watermarks, state, joins."""

from __future__ import annotations

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
