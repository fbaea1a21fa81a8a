"""Streams of tables over Spark Connect: the client runs those without state; the rest is refused with what works."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_tables import HandWritten
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature


@pytest.fixture(autouse=True)
def enabled(connect) -> Iterator[None]:
    alluvium.enable(connect)
    yield
    alluvium.disable(connect)


@pytest.fixture
def source(connect, tmp_path: Path) -> str:
    url = str(tmp_path / "source")
    append(connect, url, 0, 4)
    return url


def append(connect, url: str, start: int, end: int) -> None:
    rows = connect.range(start, end).selectExpr("id", "id % 2 as odd").coalesce(1)
    alluvium.write(rows, url, mode="append", partition_by=["odd"])


def ids(url: str) -> list[int]:
    return sorted(alluvium.open(url).to_arrow()["id"].to_pylist())


def copy(connect, source: str, target: str, shape: Callable[[Any], Any] = lambda rows: rows, **options: Any) -> Any:
    rows = shape(connect.readStream.format("delta").options(**options).load(source))
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{target}-checkpoint").start(target)
    assert query.awaitTermination(60)
    return query


def test_a_table_is_copied_and_gone_on_with(connect, source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    still = connect.range(3).withColumnRenamed("id", "n")

    def shape(rows: Any) -> Any:
        lines = rows.where("id > 0").where(sf.lit("x\nAggregate [a]") != sf.col("id").cast("string"))
        rows = lines.withColumnRenamed("odd", "odd\nSort [a]")
        return rows.join(still, rows.id % 3 == still.n, "left").select(rows.id, "n")

    query = copy(connect, source, target, shape, maxFilesPerTrigger=1)
    assert ids(target) == [1, 2, 3]
    assert query.lastProgress["batchId"] == 1
    assert alluvium.open(target).txns == {query.id: 1}
    append(connect, source, 4, 6)
    # As if it had died between our commit and the checkpoint's.
    Path(f"{target}-checkpoint", "commits", "1").unlink()
    again = copy(connect, source, target, shape)
    assert (again.id, ids(target), alluvium.open(target).txns) == (query.id, [1, 2, 3, 4, 5], {query.id: 2})
    operation = alluvium.open(target).history(1)[0]
    assert (operation["operation"], operation["operationParameters"]["epochId"]) == ("STREAMING UPDATE", "2")
    lines = Path(f"{target}-checkpoint", "offsets", "2").read_text().splitlines()
    offset = json.loads(lines[2])
    assert (lines[0], offset["reservoirVersion"], offset["index"]) == ("v1", alluvium.open(source).version + 1, -1)


def test_functions_of_batches_run_here(connect, source: str, tmp_path: Path) -> None:
    """They may name what lies in this process."""
    found: dict[int, list[int]] = {}

    def keep(batch: Any, number: int) -> None:
        found[number] = sorted(row.id for row in batch.groupBy("id").count().collect())

    rows = connect.readStream.format("delta").load(source)
    writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    query.processAllAvailable()
    append(connect, source, 4, 6)
    query.processAllAvailable()
    query.stop()
    assert not query.isActive
    assert found == {0: [0, 1, 2, 3], 1: [4, 5]}


def test_changes_and_paimon(connect, source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target")
    rows = connect.readStream.format("delta").option("startingVersion", 0).load(source)
    writer = rows.writeStream.format("paimon").trigger(once=True).option("checkpointLocation", str(tmp_path / "c"))
    assert writer.start(target).awaitTermination(60)
    assert ids(target) == [0, 1, 2, 3]
    back = str(tmp_path / "back")
    rows = connect.readStream.format("paimon").load(target)
    writer = rows.writeStream.format("delta").trigger(availableNow=True).option("checkpointLocation", f"{back}-c")
    assert writer.start(back).awaitTermination(60)
    assert ids(back) == [0, 1, 2, 3]


def test_overwrites_of_keys_take_back_what_they_removed(connect, tmp_path: Path) -> None:
    keyed = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])
    table = HandWritten(
        tmp_path / "t", keyed, ["k"], **{"streaming-read-overwrite": "true", "merge-engine": "first-row"}
    )
    table.commit([{"k": 1, "v": "a"}])
    table.commit([{"k": 1, "v": "b"}, {"k": 2, "v": "c"}])
    table.commit([{"k": 9, "v": "o"}], overwrites=True)
    out = str(tmp_path / "out")
    options = {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2", "read.changelog": "true"}
    rows = connect.readStream.format("paimon").options(**options).load(str(table.path))
    writer = rows.writeStream.format("delta").trigger(availableNow=True).option("checkpointLocation", f"{out}-c")
    assert writer.start(out).awaitTermination(60)
    found = sorted(tuple(row.values()) for row in alluvium.open(out).to_arrow().to_pylist())
    assert found == [("+I", 1, "a"), ("+I", 2, "c"), ("+I", 9, "o"), ("-D", 1, "a"), ("-D", 2, "c")]


def test_what_stops_a_query_reaches_whoever_waits(connect, source: str, tmp_path: Path) -> None:
    copy(connect, source, str(tmp_path / "target"))
    alluvium.write(connect.range(9, 10).selectExpr("id", "id % 2 as odd"), source, mode="overwrite")
    with pytest.raises(InvalidRequest) as caught:
        copy(connect, source, str(tmp_path / "target"))
    assert (caught.value.code, caught.value.version) == ("stream-source-changed", 1)
    assert ids(str(tmp_path / "target")) == [0, 1, 2, 3]


STATEFUL: dict[str, Callable[[Any], Any]] = {
    "Aggregate": lambda rows: rows.groupBy("odd").count(),
    "Aggregate of all": lambda rows: rows.select(sf.sum("id").alias("id")),
    "Aggregate of what a text of several lines does not hide": lambda rows: (
        rows.where(sf.lit("x\nProject [b]\n") != sf.col("id").cast("string")).groupBy("odd").count()
    ),
    "Deduplicate": lambda rows: rows.dropDuplicates(["id"]),
    "Sort": lambda rows: rows.orderBy("id"),
    "Limit": lambda rows: rows.limit(1),
    "Window": lambda rows: rows.selectExpr("id", "row_number() over (order by id) as n"),
    "more than once": lambda rows: rows.alias("a").join(rows.alias("b"), "odd").select("a.id", "odd"),
    "a subquery of Filter": lambda rows: rows.sparkSession.range(2).where(rows.select("id").exists()),
    "Join RightOuter": lambda rows: rows.join(rows.sparkSession.range(3), "id", "right"),
}


@pytest.mark.parametrize("node", STATEFUL)
def test_state_is_refused_before_the_first_batch(connect, source: str, tmp_path: Path, node: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        copy(connect, source, str(tmp_path / "target"), STATEFUL[node])
    assert caught.value.code == "stateful-stream"
    assert node.partition(" of ")[0] in caught.value.message
    assert not (tmp_path / "target-checkpoint").exists()


def test_the_rest_is_refused_with_what_works(connect, source: str, tmp_path: Path) -> None:
    rows = connect.readStream.format("delta").load(source)
    target, checkpoint = str(tmp_path / "t"), str(tmp_path / "c")

    def started(rows: Any, format: str = "delta", **options: str) -> Callable[[], object]:
        writer = rows.writeStream.format(format).options(**options)
        return lambda: writer.start(target)

    told = {"checkpointLocation": checkpoint}
    server = connect.readStream.format("rate").load()
    refused: list[tuple[Callable[[], object], str]] = [
        (started(server, **told), "no-jvm-for-streams"),
        (lambda: server.writeStream.format("delta").toTable("t"), "no-jvm-for-streams"),
        (lambda: rows.writeStream.toTable("t", checkpointLocation=checkpoint), "no-jvm-for-streams"),
        (started(rows, "parquet", **told), "no-jvm-for-streams"),
        (started(rows.union(connect.readStream.format("delta").load(source)), **told), "no-jvm-for-streams"),
        (lambda: rows.writeStream.outputMode("complete").format("delta").start(target, **told), "no-jvm-for-streams"),
        (lambda: connect.readStream.table(f"delta.`{source}`"), "no-jvm-for-streams"),
        (started(rows), "no-checkpoint"),
        (lambda: rows.writeStream.trigger(continuous="1 second").format("delta").start(target), "unsupported-trigger"),
        (started(rows, bogus="1", **told), "unknown-option"),
        (lambda: connect.readStream.format("delta").option("versionAsOf", 0).load(source), "stream-as-of"),
    ]
    if hasattr(connect.readStream, "name"):
        refused.append((lambda: connect.readStream.name("n").format("delta").load(source), "named-stream"))
    for call, code in refused:
        with pytest.raises(AlluviumError) as caught:
            call()
        assert caught.value.code == code, caught.value.message
    for unseen in (connect.sql("select * from {x}", x=rows), connect.range(3)):
        with pytest.raises(UnsupportedFeature, match="within a text of SQL or a view"):
            started(unseen, **told)()
    with pytest.raises(PySparkException, match="executed with writeStream"):
        rows.collect()
    assert not Path(target).exists()
    assert not Path(checkpoint).exists()
    assert server.isStreaming
