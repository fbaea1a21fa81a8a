"""Paimon tables as sources of streams: rows that merge, then changes; into a Delta table, and into memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten

import alluvium
from alluvium.errors import CommitConflict, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable

pytestmark = pytest.mark.spark
KEYED = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])


def test_rows_then_changes_into_a_delta_table(spark, tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    table.commit([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    table.commit([{"k": 1, "v": "c"}])
    alluvium.enable(spark)
    out = str(tmp_path / "out")

    def copy(target: str, **options: str) -> list[tuple[object, ...]]:
        rows = spark.readStream.format("paimon").options(**options).load(str(table.path))
        # Filters and state above rows that were merged.
        writer = rows.where("k < 9").dropDuplicates().writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{target}-checkpoint").start(target).awaitTermination()
        return sorted(tuple(row.values()) for row in alluvium.open(target).to_arrow().to_pylist())

    assert copy(out, **{"consumer-id": "c"}) == [(1, "c"), (2, "b")]
    table.commit([{"k": 2, "v": "d"}, {"k": 3, "v": "e"}, {"k": 9, "v": "f"}], ["-D", "+I", "+I"])
    assert copy(out, **{"consumer-id": "c"}) == [(1, "c"), (2, "b"), (3, "e")]
    # As far as it is known to be done: Spark tells that when the next batch has begun.
    consumers = alluvium.open(str(table.path)).system("consumers").to_pylist()
    assert consumers == [{"consumer_id": "c", "next_snapshot_id": 3}]
    kinds = copy(str(tmp_path / "kinds"), **{"read.changelog": "true", "scan.snapshot-id": "3"})
    assert kinds == [("+I", 3, "e"), ("-D", 2, "d")]
    table.expire(1)
    with pytest.raises(NotFound) as caught:
        copy(str(tmp_path / "gone"), **{"scan.snapshot-id": "1"})
    assert caught.value.code == "stream-lost-data"


def test_into_tables_without_a_key(spark, tmp_path: Path) -> None:
    alluvium.enable(spark)
    source, target = str(tmp_path / "source"), str(tmp_path / "target")

    def copy() -> None:
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
        writer = rows.writeStream.format("paimon").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{target}-checkpoint").start(target).awaitTermination()

    alluvium.write(spark.range(4).repartition(2), source)
    copy()
    # As if it had died between our commit and Spark's.
    Path(f"{target}-checkpoint", "commits", "1").unlink()
    Path(f"{target}-checkpoint", "commits", ".1.crc").unlink(missing_ok=True)
    alluvium.write(spark.range(4, 6).coalesce(1), source, mode="append")
    copy()
    view = alluvium.open(target)
    assert sorted(view.to_arrow()["id"].to_pylist()) == list(range(6))
    assert view.system("snapshots")["commit_identifier"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("bucket", ["-1", "2"], ids=["dynamic", "fixed"])
def test_into_tables_with_a_key(spark, tmp_path: Path, bucket: str) -> None:
    """Rows of a query that keeps state are computed once, though keys are assigned to buckets before."""
    alluvium.enable(spark)
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    PaimonTable.create(target, KEYED, primary_keys=["k"], options={"bucket": bucket})

    def copy() -> None:
        rows = spark.readStream.format("delta").load(source).dropDuplicates().selectExpr("id % 5 as k", "v")
        writer = rows.writeStream.trigger(availableNow=True)
        writer.option("checkpointLocation", f"{target}-checkpoint").toTable(f"paimon.`{target}`").awaitTermination()

    for number in range(2):
        alluvium.write(spark.range(number, 5).selectExpr("id", f"'{number}' as v"), source, mode="append")
        copy()
    rows = spark.readStream.table(f"paimon.`{target}`").writeStream.format("delta").trigger(availableNow=True)
    back = str(tmp_path / "back")
    rows.option("checkpointLocation", f"{back}-checkpoint").start(back).awaitTermination()
    found = sorted(tuple(row.values()) for row in alluvium.open(back).to_arrow().to_pylist())
    assert found == [(0, "0"), (1, "1"), (2, "1"), (3, "1"), (4, "1")]
    appended = [s for s in alluvium.open(target).system("snapshots").to_pylist() if s["commit_kind"] == "APPEND"]
    assert [s["commit_identifier"] for s in appended] == [0, 1]


#: Merges of each kind: the last row, the first, made of several by Spark, and by workers.
ENGINES = {
    "last": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "first": {"merge-engine": "first-row"},
    "partial": {"merge-engine": "partial-update"},
    "workers": {"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg", "fields.v.distinct": "true"},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_overwrites_take_back_what_they_removed(spark, tmp_path: Path, engine: str) -> None:
    options = {"streaming-read-overwrite": "true", **ENGINES[engine]}
    table = HandWritten(tmp_path / "t", KEYED, ["k"], **options)
    table.commit([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    table.commit([{"k": 1, "v": "c"}, {"k": 3, "v": "d"}])
    alluvium.enable(spark)
    one = {"last": "c", "vectors": "c", "first": "a", "partial": "c", "workers": "a,c"}[engine]
    begun = [(1, one), (2, "b"), (3, "d")]

    def copy(*further: str, **options: str) -> list[tuple[object, ...]]:
        out = str(tmp_path / "-".join(("out", *options, *further)))
        rows = spark.readStream.format("paimon").options(**options).load(str(table.path))
        writer = rows.writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{out}-checkpoint").start(out).awaitTermination()
        return sorted(tuple(row.values()) for row in alluvium.open(out).to_arrow().to_pylist())

    kinds = {"read.changelog": "true"}
    assert copy() == begun
    assert copy(**kinds) == [("+I", *row) for row in begun]
    table.commit([{"k": 9, "v": "o"}], overwrites=True)
    table.commit([{"k": 4, "v": "e"}])
    came = [(4, "e"), (9, "o")]
    assert copy() == sorted([*begun, *came])
    told = [("+I", *row) for row in (*begun, *came)] + [("-D", *row) for row in begun]
    assert copy(**kinds) == sorted(told)
    silent = {**kinds, "scan.snapshot-id": "3", "streaming-read-overwrite": "false"}
    assert copy(**silent) == [("+I", 4, "e")]
    asked = {**kinds, "scan.snapshot-id": "3"}
    assert copy(**asked) == sorted(told[3:])


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"scan.mode": "incremental"}, UnsupportedFeature, "unsupported-scan"),
        ({"read.stream.maxFilesPerTrigger": "1"}, InvalidRequest, "unknown-option"),
        ({"bogus": "1"}, InvalidRequest, "unknown-option"),
        ({"read.changelog": "maybe"}, InvalidRequest, "invalid-option"),
    ],
)
def test_what_means_nothing_is_refused_at_load(spark, tmp_path: Path, options, kind, code) -> None:
    alluvium.enable(spark)
    table = HandWritten(tmp_path / "t", KEYED, ["k"])
    with pytest.raises(kind) as caught:
        spark.readStream.format("paimon").options(**options).load(str(table.path))
    assert caught.value.code == code
    rows = spark.readStream.format("paimon").load(str(table.path))
    with pytest.raises(UnsupportedFeature) as refused:
        rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).toTable("nowhere", format="paimon")
    assert refused.value.code == "unsupported-stream"


@pytest.fixture(autouse=True)
def disabled(spark):
    yield
    alluvium.disable(spark)


def test_rows_that_are_looked_for_in_the_sink_itself(spark, tmp_path: Path) -> None:
    """Where rows take the place of others, a batch that has read an older state would take what came since away."""
    alluvium.enable(spark)
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    alluvium.write(spark.sql("select 1L k, 'a' v"), target, format="paimon", **{"primary-key": "k", "bucket": "1"})
    known = spark.read.format("paimon").load(target)

    def copy(known) -> None:
        rows = spark.readStream.format("delta").load(source).join(known.select("k"), "k", "left_anti")
        writer = rows.writeStream.format("paimon").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{target}-checkpoint").start(target).awaitTermination()

    def rows() -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in alluvium.open(target).to_arrow().to_pylist())

    alluvium.write(spark.sql("select * from values (1L, 'b'), (2L, 'b') t(k, v)"), source)
    copy(known)
    assert rows() == [(1, "a"), (2, "b")]
    alluvium.write(spark.sql("select 2L k, 'c' v"), source, mode="append")
    with pytest.raises(CommitConflict):
        copy(known)
    copy(spark.read.format("paimon").load(target))
    assert rows() == [(1, "a"), (2, "b")]
