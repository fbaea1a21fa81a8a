"""Streams of the Spark workers, the same for both engines: only how a table is found for MERGE differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from protocol import Verb


def stream_verbs(spark: SparkSession, table: Callable[[str], Any]) -> dict[str, Verb]:
    """The verbs of streams; `table` gives the `DeltaTable` at a path."""

    def rows(request: Mapping[str, Any]) -> DataFrame:
        return spark.readStream.format("delta").options(**request.get("options", {})).load(request["source"])

    def stream(request: Mapping[str, Any]) -> object:
        writer = rows(request).writeStream.format("delta").option("checkpointLocation", request["checkpoint"])
        writer.trigger(availableNow=True).start(request["path"]).awaitTermination()
        return None

    def stream_merge(request: Mapping[str, Any]) -> object:
        def upsert(batch: DataFrame, number: int) -> None:
            merge = table(request["path"]).alias("t").merge(batch.alias("s"), "t.id = s.id")
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

        writer = rows(request).writeStream.foreachBatch(upsert).option("checkpointLocation", request["checkpoint"])
        writer.trigger(availableNow=True).start().awaitTermination()
        return None

    def stream_batch(request: Mapping[str, Any]) -> object:
        spark.read.format("delta").load(request["source"]).write.format("delta").save(request["path"])
        return None

    def small_files(request: Mapping[str, Any]) -> object:
        df = spark.range(request["rows"]).withColumn("text", F.col("id").cast("string"))
        df.repartition(request.get("files", 1)).write.format("delta").mode("append").save(request["path"])
        return None

    return {"stream": stream, "stream_merge": stream_merge, "stream_batch": stream_batch, "small_files": small_files}
