"""A query that the client runs, without a session: what a batch is written by is the caller's."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from stream_log import Log, add

from alluvium.api.delta.streams.source import DeltaStream
from alluvium.errors import InvalidRequest
from alluvium.plan.ports import ScanSource
from alluvium.spark.streams.client.checkpoint import open_checkpoint
from alluvium.spark.streams.client.query import ClientQuery, Trigger
from alluvium.storage.open import open_store


def test_one_query_runs_with_a_checkpoint(tmp_path: Path) -> None:
    """A second would run the batch again that the first is at, and `foreachBatch` knows no repetition."""
    log = Log("client-query", add("a"))
    numbers: list[int] = []
    begun, goes_on = threading.Event(), threading.Event()

    def run(sources: Sequence[ScanSource], number: int) -> None:
        numbers.append(number)
        begun.set()
        assert goes_on.wait(30)

    def start() -> ClientQuery:
        checkpoint = open_checkpoint(open_store(str(tmp_path / "checkpoint")))
        return ClientQuery(None, DeltaStream(log.stream()), checkpoint, Trigger(ends=True), run, "")

    first = start()
    try:
        assert begun.wait(30)
        with pytest.raises(InvalidRequest) as caught:
            start()
        assert caught.value.code == "checkpoint-taken"
    finally:
        goes_on.set()
    assert first.awaitTermination(30)
    assert start().awaitTermination(30)
    assert numbers == [0]
