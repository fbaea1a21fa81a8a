"""A checkpoint of a stream goes from delta-spark to us and back: no row is lost, none comes twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium

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
