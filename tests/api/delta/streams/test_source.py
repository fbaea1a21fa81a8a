"""Delta tables as sources of streams."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.open import open_store


def test_all_rows_then_what_is_appended(streams) -> None:
    streams.append("t", 0, 10, files=3)
    query = streams.copy("t", "out")
    assert streams.ids("out") == list(range(10))
    assert alluvium.open(streams.path("out")).txns == {query.id: 0}
    streams.append("t", 10, 16, files=3)
    last = streams.copy("t", "out", maxFilesPerTrigger=2).lastProgress
    assert streams.ids("out") == list(range(16))
    table_id = alluvium.open(streams.path("t")).metadata.id
    places = [
        (o["reservoirVersion"], o["index"], o["isStartingVersion"]) for o in map(json.loads, streams.offsets("out"))
    ]
    assert places == [(1, -1, False), (1, 1, False), (2, -1, False)]
    assert {json.loads(o)["reservoirId"] for o in streams.offsets("out")} == {table_id}
    (told,) = last["sources"]
    assert told["description"] == f"DeltaSource[file:{streams.path('t')}]"
    assert told["metrics"] == {"versionsBehind": "0", "numFilesOutstanding": "0", "numBytesOutstanding": "0"}
    assert last["sink"]["description"] == f"DeltaSink[{streams.path('out')}]"


def test_rows_are_counted(streams) -> None:
    streams.append("t", 0, 10)
    assert streams.copy("t", "out").lastProgress["numInputRows"] == 10


def test_filters_and_partitions_reach_the_files(streams) -> None:
    rows = streams.spark.range(20).selectExpr("id", "id % 4 as p")
    alluvium.write(rows, streams.path("t"), partition_by=["p"])
    query = streams.into(streams.read("t").where("p = 1 and id > 5"), "out")
    query.awaitTermination()
    assert streams.ids("out") == [9, 13, 17]
    # Files of other partitions are not opened.
    assert query.lastProgress["numInputRows"] == 5


def test_a_running_query(streams) -> None:
    streams.append("t", 0, 4)
    checkpoint = streams.path("out-checkpoint")
    writer = streams.read("t").writeStream.format("delta").option("checkpointLocation", checkpoint)
    query = writer.start(streams.path("out"))
    query.processAllAvailable()
    streams.append("t", 4, 8)
    query.processAllAvailable()
    assert streams.ids("out") == list(range(8))
    query.stop()
    assert query.exception() is None
    query = streams.read("t").writeStream.format("delta").option("checkpointLocation", checkpoint)
    query = query.trigger(once=True).start(streams.path("out"))
    query.awaitTermination()
    assert streams.ids("out") == list(range(8))


def test_a_change_stops_it_as_delta_spark_says(streams) -> None:
    streams.append("t", 0, 10)
    streams.copy("t", "out")
    DeltaTable.forPath(streams.spark, streams.path("t")).delete("id = 3")
    with pytest.raises(InvalidRequest) as caught:
        streams.copy("t", "out")
    error = caught.value
    assert isinstance(error, StreamingQueryException)
    assert (error.code, error.version) == ("stream-source-changed", 1)
    assert error.getCondition() == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    streams.copy("t", "out", skipVersions="1")
    streams.append("t", 10, 11)
    streams.copy("t", "out")
    assert streams.ids("out") == list(range(11))


def test_vectors_and_mapped_names(streams) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    alluvium.write(streams.spark.range(10).coalesce(1), streams.path("t"), **properties)
    table = DeltaTable.forPath(streams.spark, streams.path("t"))
    table.delete("id < 3")
    streams.copy("t", "out")
    assert streams.ids("out") == list(range(3, 10))
    table.delete("id = 4")
    # The file comes again, with another vector.
    streams.copy("t", "out", ignoreChanges=True)
    assert streams.ids("out") == sorted([*range(3, 10), 3, *range(5, 10)])


def test_changes(streams) -> None:
    alluvium.write(streams.spark.range(4), streams.path("t"), **{"delta.enableChangeDataFeed": "true"})
    table = DeltaTable.forPath(streams.spark, streams.path("t"))
    table.update("id = 1", {"id": "10L"})
    table.delete("id = 2")
    streams.copy("t", "out", readChangeFeed=True, startingVersion=0)
    seen = alluvium.open(streams.path("out")).to_arrow()
    batch = alluvium.open(streams.path("t")).changes(0)
    key = [("_commit_version", "ascending"), ("_change_type", "ascending"), ("id", "ascending")]
    assert seen.sort_by(key).to_pylist() == batch.sort_by(key).to_pylist()
    streams.copy("t", "first", readChangeFeed=True)
    rows = alluvium.open(streams.path("first")).to_arrow().to_pylist()
    assert sorted((r["id"], r["_change_type"], r["_commit_version"]) for r in rows) == [
        (0, "insert", 2), (3, "insert", 2), (10, "insert", 2)
    ]  # fmt: skip


def test_columns_that_were_added(streams) -> None:
    streams.append("t", 0, 2)
    made_before = streams.read("t")
    streams.copy("t", "out")
    wider = streams.spark.range(2, 3).withColumn("n", sf.lit("x"))
    alluvium.write(wider, streams.path("t"), mode="append", mergeSchema=True)
    query = streams.into(made_before, "out")
    with pytest.raises(InvalidRequest, match="columns") as caught:
        query.awaitTermination()
    assert caught.value.getCondition() == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    query = streams.into(streams.read("t"), "out", mergeSchema=True)
    query.awaitTermination()
    assert alluvium.open(streams.path("out")).to_arrow().sort_by("id")["n"].to_pylist() == [None, None, "x"]


def test_a_renamed_column_stops_it(streams) -> None:
    alluvium.write(
        streams.spark.range(2).withColumn("n", sf.lit(1)), streams.path("t"), **{"delta.columnMapping.mode": "name"}
    )
    streams.copy("t", "out")
    DeltaTable.forPath(streams.spark, streams.path("t")).renameColumn("n", "m")
    with pytest.raises(InvalidRequest) as caught:
        streams.copy("t", "out")
    assert caught.value.getCondition() == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


def test_another_table_at_the_same_place(streams) -> None:
    streams.append("t", 0, 2)
    streams.copy("t", "out")
    shutil.rmtree(streams.path("t"))
    streams.append("t", 0, 2)
    with pytest.raises(InvalidRequest) as caught:
        streams.copy("t", "out")
    assert caught.value.getCondition() == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_log_that_was_cleaned_up(streams) -> None:
    for n in range(12):
        commit_rows(open_target(open_store(streams.path("t"))), [n])
        if n == 2:
            streams.copy("t", "out")
    for log in (Path(streams.path("t")) / "_delta_log").glob("000000000000000000*.json"):
        if int(log.stem) < 6:
            log.unlink()
    with pytest.raises(NotFound) as caught:
        streams.copy("t", "out")
    assert caught.value.getCondition() == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    # On a restart Spark asks for the last batch again, whose commits are gone, too.
    streams.copy("t", "out", failOnDataLoss=False)
    assert streams.ids("out") == [0, 1, 2, *range(6, 12)]


def test_a_file_that_was_vacuumed(streams) -> None:
    streams.append("t", 0, 2)
    df = streams.read("t")
    for file in Path(streams.path("t")).rglob("*.parquet"):
        file.unlink()
    query = streams.into(df, "out")
    with pytest.raises(NotFound) as caught:
        query.awaitTermination()
    assert caught.value.code == "missing-file"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"startingVersion": "1", "startingTimestamp": "2020-01-01"}, "version-and-timestamp"),
        ({"maxFilesPerTrigger": "0"}, "invalid-option"),
        ({"maxBytesPerTrigger": "x"}, "invalid-option"),
        ({"versionAsOf": "0"}, "stream-as-of"),
        ({"startingTimestamp": "nonsense"}, "invalid-timestamp"),
        ({"readChangeFeed": "true"}, "change-feed-disabled"),
        ({"maxFilePerTrigger": "1"}, "unknown-option"),
        ({"schemaTrackingLocation": "/x", "failOnDataLoss": "false"}, "invalid-option"),
    ],
)
def test_what_means_nothing_is_refused_at_load(streams, options, code) -> None:
    streams.append("t", 0, 2)
    with pytest.raises((InvalidRequest, UnsupportedFeature)) as caught:
        streams.read("t", **options)
    assert caught.value.code == code


def test_a_schema_may_be_given_where_it_is_the_tables(streams) -> None:
    streams.append("t", 0, 2)
    reader = streams.spark.readStream.format("delta")
    streams.into(reader.schema("id bigint").load(streams.path("t")), "out").awaitTermination()
    assert streams.ids("out") == [0, 1]
    with pytest.raises(InvalidRequest) as caught:
        reader.schema("id int").load(streams.path("t"))
    assert (caught.value.code, caught.value.getCondition()) == ("schema-given", "DELTA_READ_SOURCE_SCHEMA_CONFLICT")


def test_beginnings_that_are_not_there(streams) -> None:
    streams.append("t", 0, 2)
    for options, condition in (
        ({"startingVersion": 7}, "DELTA_VERSION_NOT_FOUND"),
        ({"startingTimestamp": "2999-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ):
        query = streams.into(streams.read("t", **options), "out")
        with pytest.raises(NotFound) as caught:
            query.awaitTermination()
        assert (caught.value.code, caught.value.getCondition()) == ("missing-version", condition)
    with pytest.raises(NotFound) as none:
        streams.read("nothing")
    assert none.value.getCondition() == "DELTA_SCHEMA_NOT_SET"


def test_names(streams) -> None:
    spark = streams.spark
    spark.sql("create table streamed (id bigint) using delta")
    try:
        spark.sql("insert into streamed values (1), (2)")
        df = spark.readStream.option("maxFilesPerTrigger", 1).table("streamed")
        writer = df.writeStream.option("checkpointLocation", streams.path("cp")).trigger(availableNow=True)
        writer.toTable("streamed_out", format="delta").awaitTermination()
        assert spark.table("streamed_out").count() == 2
        writer.toTable("streamed_out").awaitTermination()
        assert spark.table("streamed_out").count() == 2
    finally:
        spark.sql("drop table if exists streamed")
        spark.sql("drop table if exists streamed_out")


def test_a_source_with_a_name_is_refused(streams) -> None:
    """Spark failed of an assertion where names are wanted, and a name was passed over where they are not."""
    streams.append("source", 0, 3)
    setting = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    reader = streams.spark.readStream.format("delta")
    if hasattr(reader, "name"):
        with pytest.raises(UnsupportedFeature) as named:
            reader.name("orders").load(streams.path("source"))
        assert (named.value.code, ".name(...)" in str(named.value.hint)) == ("named-stream", True)
    streams.spark.conf.set(setting, "true")
    try:
        with pytest.raises(UnsupportedFeature) as wanted:
            streams.read("source")
    finally:
        streams.spark.conf.unset(setting)
    assert (wanted.value.code, setting in str(wanted.value.hint)) == ("named-stream", True)
    streams.copy("source", "target")


def test_a_table_behind_stream_in_sql_is_refused(streams) -> None:
    """It was told that a table is made inside of a script."""
    if streams.spark.version.startswith("4.0."):
        pytest.skip("the parser of Spark 4.0 does not know STREAM")
    streams.append("source", 0, 3)
    for text in (
        f"select * from stream delta.`{streams.path('source')}`",
        f"select * from STREAM(delta.`{streams.path('source')}`)",
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            streams.spark.sql(text)
        assert (caught.value.code, "readStream" in str(caught.value.hint)) == ("unsupported-stream", True)
