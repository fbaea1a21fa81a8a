"""A checkpoint of a stream goes from delta-spark to us and back: no row is lost, none comes twice."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = NEEDS_REFERENCE


def test_one_checkpoint_goes_through_both(spark, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))

    def append(start: int, end: int) -> None:
        alluvium.write(spark.range(start, end).repartition(3), source, mode="append")

    def by_us() -> None:
        alluvium.enable(spark)
        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 2)
        writer = reader.load(source).writeStream.format("delta").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()

    def by_delta_spark() -> None:
        options = {"maxFilesPerTrigger": "2"}
        job = {"do": "stream", "table": target, "source": source, "checkpoint": checkpoint, "options": options}
        assert [answer["error"] for answer in judge(tmp_path, [job])] == [None]

    for number, run in enumerate((by_delta_spark, by_us, by_delta_spark, by_us)):
        append(number * 10, number * 10 + 10)
        if number:
            append(100 + number * 10, 110 + number * 10)
        run()
    view = alluvium.open(target)
    expected = sorted([*range(40), *range(110, 140)])
    assert sorted(view.to_arrow()["id"].to_pylist()) == expected
    (batch,) = view.txns.values()
    offsets = [f for f in (Path(checkpoint) / "offsets").iterdir() if f.name.isdigit()]
    assert batch == len(offsets) - 1 == view.version
    last = json.loads(max(offsets, key=lambda f: int(f.name)).read_text().splitlines()[-1])
    assert (last["reservoirVersion"], last["index"]) == (alluvium.open(source).version + 1, -1)
    epochs = [h["operationParameters"]["epochId"] for h in view.history()]
    assert epochs == [str(n) for n in range(batch, -1, -1)]


@pytest.fixture(autouse=True)
def disabled(spark):
    yield
    alluvium.disable(spark)


def test_one_log_of_columns_goes_through_both(spark, tmp_path: Path) -> None:
    source, target, checkpoint = (str(tmp_path / name) for name in ("source", "target", "checkpoint"))
    alluvium.enable(spark)
    alluvium.write(spark.sql("select 1L id, 'x' a"), source, **{"delta.columnMapping.mode": "name"})
    alluvium.write(spark.sql("select 0L id, 'x' a, 'x' b, 'x' c, 'x' d"), target)

    def by_us(**options: str) -> str | None:
        reader = spark.readStream.format("delta").options(schemaTrackingLocation=checkpoint, **options)
        writer = reader.load(source).writeStream.format("delta").option("checkpointLocation", checkpoint)
        try:
            writer.trigger(availableNow=True).start(target).awaitTermination()
        except InvalidRequest as error:
            return str(error)
        return None

    def by_delta_spark(**options: str) -> str | None:
        given = {"schemaTrackingLocation": checkpoint, **options}
        job = {"do": "stream", "table": target, "source": source, "checkpoint": checkpoint, "options": given}
        return judge(tmp_path, [job])[0]["error"]

    changed, blocked = "DELTA_STREAMING_METADATA_EVOLUTION", "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST"
    agreed: dict[str, str] = {}
    runs = (by_delta_spark, by_us, by_delta_spark, by_us)
    assert runs[0]() is None
    for n, (old, new) in enumerate((("a", "b"), ("b", "c"), ("c", "d"))):
        spark.sql(f"alter table delta.`{source}` rename column {old} to {new}")
        alluvium.write(spark.sql(f"select {n + 2}L id, 'y' {new}"), source, mode="append")
        # One is stopped by the change, the other goes on behind it.
        assert changed in str(runs[n](**agreed))
        assert blocked in str(runs[n + 1](**agreed))
        agreed = {"allowSourceColumnRename": str(alluvium.open(source).version - 1)}
        assert runs[n + 1](**agreed) is None
    rows = alluvium.open(target).to_arrow().sort_by("id").to_pylist()
    assert [next((k for k in "abcd" if row[k] and row["id"]), None) for row in rows] == [None, "a", "b", "c", "d"]


def test_a_log_that_comes_late_is_the_same(spark, tmp_path: Path) -> None:
    """What each writes for the same table, whose stream had no log before its columns changed."""
    alluvium.enable(spark)
    source = str(tmp_path / "source")
    alluvium.write(spark.sql("select 1L id, 'x' a"), source, **{"delta.columnMapping.mode": "name"})
    targets = {who: (str(tmp_path / who), str(tmp_path / f"{who}-checkpoint")) for who in ("us", "them")}

    def run(who: str, **options: str) -> None:
        target, checkpoint = targets[who]
        if who == "them":
            judge(
                tmp_path,
                [{"do": "stream", "table": target, "source": source, "checkpoint": checkpoint, "options": options}],
            )
            return
        writer = spark.readStream.format("delta").options(**options).load(source).writeStream.format("delta")
        with contextlib.suppress(InvalidRequest):
            writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(target).awaitTermination()

    for who in targets:
        run(who)
    spark.sql(f"alter table delta.`{source}` rename column a to b")
    alluvium.write(spark.sql("select 2L id, 'y' b"), source, mode="append")
    for who in targets:
        for _ in range(3):
            run(who, schemaTrackingLocation=targets[who][1])
    found = {}
    for who, (_, checkpoint) in targets.items():
        entries = sorted(p for p in Path(checkpoint).glob("_schema_log_*/*") if p.name.isdigit())
        logged = [json.loads(p.read_text().splitlines()[1]) for p in entries]
        for entry in logged:
            entry["sourceMetadataPath"] = entry["sourceMetadataPath"].replace(checkpoint, "")
            for name in ("dataSchemaJson", "partitionSchemaJson", "protocolJson"):
                entry[name] = json.loads(entry[name])
        offsets = sorted(
            (p for p in (Path(checkpoint) / "offsets").iterdir() if p.name.isdigit()), key=lambda p: p.name
        )
        found[who] = (logged, [p.read_text().splitlines()[-1] for p in offsets])
    assert found["us"] == found["them"]
    assert len(found["us"][0]) == 2
