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
    unique, state = str(tmp_path / "unique"), str(tmp_path / "unique-checkpoint")

    def append(start: int, end: int) -> None:
        alluvium.write(spark.range(start, end).repartition(3), source, mode="append")

    def by_us() -> None:
        alluvium.enable(spark)
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(source)
        for copied, at, to in ((rows, checkpoint, target), (rows.dropDuplicates(["id"]), state, unique)):
            writer = copied.writeStream.format("delta").option("checkpointLocation", at)
            writer.trigger(availableNow=True).start(to).awaitTermination()

    def by_delta_spark() -> None:
        job: dict[str, object] = {"do": "stream", "table": target, "source": source, "checkpoint": checkpoint}
        job["options"] = {"maxFilesPerTrigger": "2"}
        with_state = {**job, "table": unique, "checkpoint": state, "unique": ["id"]}
        assert [answer["error"] for answer in judge(tmp_path, [job, with_state])] == [None, None]

    # State that one engine has kept is the other's: each run appends rows again that came before.
    for number, run in enumerate((by_delta_spark, by_us, by_delta_spark, by_us)):
        append(number * 10, number * 10 + 10)
        append(0, 5)
        if number:
            append(100 + number * 10, 110 + number * 10)
        run()
    view = alluvium.open(target)
    expected = sorted([*range(40), *range(110, 140)])
    assert sorted(view.to_arrow()["id"].to_pylist()) == sorted([*expected, *(list(range(5)) * 4)])
    assert sorted(alluvium.open(unique).to_arrow()["id"].to_pylist()) == expected
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
    alluvium.write(spark.sql("select 0L id, 'x' a, 'x' b, 'x' c"), target)

    def by_us(**options: str) -> str | None:
        reader = spark.readStream.format("delta").options(schemaTrackingLocation=checkpoint, **options)
        writer = reader.load(source).writeStream.format("delta").option("checkpointLocation", checkpoint)
        try:
            writer.trigger(availableNow=True).start(target).awaitTermination()
        except InvalidRequest as error:
            return str(error)
        return None

    def by_delta_spark(*runs: dict[str, str], blocked: str = "") -> str | None:
        """What the last of some runs says; those before it are stopped for a reason."""
        job = {"do": "stream", "table": target, "source": source, "checkpoint": checkpoint}
        answers = judge(tmp_path, [{**job, "options": {"schemaTrackingLocation": checkpoint, **run}} for run in runs])
        assert all(blocked in answer["error"] for answer in answers[:-1])
        return answers[-1]["error"]

    def rename(old: str, new: str, row: int) -> str:
        """The version that did it; a row follows."""
        spark.sql(f"alter table delta.`{source}` rename column {old} to {new}")
        alluvium.write(spark.sql(f"select {row}L id, 'y' {new}"), source, mode="append")
        return str(alluvium.open(source).version - 1)

    changed, blocked = "DELTA_STREAMING_METADATA_EVOLUTION", "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST"
    # One is stopped by the change, the other goes on behind it.
    assert by_us() is None
    first = rename("a", "b", 2)
    assert changed in str(by_us())
    assert blocked in str(by_us())
    agreed = {"allowSourceColumnRename": first}
    assert by_delta_spark({}, agreed, blocked=blocked) is None
    second = rename("b", "c", 3)
    assert changed in str(by_delta_spark(agreed))
    assert blocked in str(by_us(**agreed))
    assert by_us(allowSourceColumnRename=second) is None
    rows = alluvium.open(target).to_arrow().sort_by("id").to_pylist()
    assert [next((k for k in "abc" if row[k] and row["id"]), None) for row in rows] == [None, "a", "b", "c"]


def test_a_log_that_comes_late_is_the_same(spark, tmp_path: Path) -> None:
    """What each writes for the same table, whose stream had no log before its columns changed."""
    alluvium.enable(spark)
    source = str(tmp_path / "source")
    alluvium.write(spark.sql("select 1L id, 'x' a"), source, **{"delta.columnMapping.mode": "name"})
    targets = {who: (str(tmp_path / who), str(tmp_path / f"{who}-checkpoint")) for who in ("us", "them")}

    def run(who: str, times: int = 1, **options: str) -> None:
        target, checkpoint = targets[who]
        if who == "them":
            job = {"do": "stream", "table": target, "source": source, "checkpoint": checkpoint, "options": options}
            judge(tmp_path, [job] * times)
            return
        for _ in range(times):
            writer = spark.readStream.format("delta").options(**options).load(source).writeStream.format("delta")
            writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
            with contextlib.suppress(InvalidRequest):
                writer.start(target).awaitTermination()

    for who in targets:
        run(who)
    spark.sql(f"alter table delta.`{source}` rename column a to b")
    alluvium.write(spark.sql("select 2L id, 'y' b"), source, mode="append")
    for who in targets:
        run(who, 3, schemaTrackingLocation=targets[who][1])
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


def test_changes_of_overwrites_are_parted_alike(spark, tmp_path: Path) -> None:
    """A checkpoint may end between the files of a version, and the other engine must go on there."""
    alluvium.enable(spark)
    source = str(tmp_path / "source")
    feed = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    alluvium.write(spark.range(8).repartition(2), source, **feed)
    alluvium.write(spark.range(8, 14).repartition(2), source, mode="overwrite")
    alluvium.DeltaTable.forPath(spark, source).delete("id in (8, 9)")
    alluvium.DeltaTable.forPath(spark, source).restoreToVersion(0)
    options = {"readChangeFeed": "true", "startingVersion": "0", "maxFilesPerTrigger": "1"}
    ours, theirs = (str(tmp_path / f"{who}-checkpoint") for who in ("us", "them"))
    rows = spark.readStream.format("delta").options(**options).load(source)
    writer = rows.writeStream.format("delta").option("checkpointLocation", ours).trigger(availableNow=True)
    writer.start(str(tmp_path / "us")).awaitTermination()
    job = {"do": "stream", "table": str(tmp_path / "them"), "source": source, "checkpoint": theirs, "options": options}
    assert [answer["error"] for answer in judge(tmp_path, [job])] == [None]

    def offsets(checkpoint: str) -> list[tuple[int, int]]:
        files = sorted(
            (f for f in (Path(checkpoint) / "offsets").iterdir() if f.name.isdigit()), key=lambda f: int(f.name)
        )
        found = [json.loads(f.read_text().splitlines()[-1]) for f in files]
        return [(each["reservoirVersion"], each["index"]) for each in found]

    assert offsets(ours) == offsets(theirs)
    assert (1, 0) in offsets(ours)
