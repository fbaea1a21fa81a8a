"""A query that dies again and again, at every place where it touches a table, loses no row and writes none twice."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import alluvium
from alluvium.api.delta.streams.writer import DeltaSink
from alluvium.delta.streams.stream import Stream
from alluvium.delta.write.target import DeltaTarget

#: `ALLUVIUM_STREAM_DEATHS=200`: so many.
DEATHS = int(os.environ.get("ALLUVIUM_STREAM_DEATHS", "6"))
#: Where it dies: before or after a method of ours.
PLACES: tuple[tuple[type, str], ...] = (
    (Stream, "latest"),
    (Stream, "batch"),
    (DeltaSink, "write"),
    (DeltaTarget, "commit"),
)


class Dead(Exception):
    pass


def deadly(chosen: random.Random, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method; of the first few calls one dies, before or after it."""
    last, is_after = chosen.randint(1, 3), chosen.random() < 0.5
    calls = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == last and not is_after:
            raise Dead
        answer = method(*args, **kwargs)
        if calls == last:
            raise Dead
        return answer

    return call


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("mode", ["append", "complete"])
def test_deaths(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, seed: int) -> None:
    chosen = random.Random(f"{seed} {mode}")
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    alluvium.enable(spark)

    def run() -> None:
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
        if mode == "complete":
            rows = rows.groupBy("id").count()
        writer = rows.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(target).awaitTermination()

    count, died = 0, 0
    for _ in range(DEATHS):
        with monkeypatch.context() as patched:
            alluvium.write(spark.range(count, count + 4).repartition(2), source, mode="append")
            count += 4
            owner, name = chosen.choice(PLACES)
            patched.setattr(owner, name, deadly(chosen, getattr(owner, name)))
            try:
                run()
            except Dead:
                died += 1
    run()
    alluvium.disable(spark)
    view = alluvium.open(target)
    rows = view.to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(count))
    if mode == "complete":
        assert set(rows["count"].to_pylist()) == {1}
    assert died >= DEATHS // 3
    epochs = [int(h["operationParameters"]["epochId"]) for h in view.history()]
    assert epochs == sorted(set(epochs), reverse=True)
