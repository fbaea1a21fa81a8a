"""A query that the client runs, without a session: what a batch is written by is the caller's."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from stream_log import Log, add, paths

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


@dataclass
class Listened:
    """A stream that notes in which threads it is asked for something, and gives way to others there."""

    stream: DeltaStream
    threads: set[str] = field(default_factory=set)

    def __getattr__(self, name: str) -> object:
        self.threads.add(threading.current_thread().name)
        time.sleep(0.001)
        return getattr(self.stream, name)


def test_a_stream_is_its_querys_thread_alone(tmp_path: Path) -> None:
    """Asked from two threads, a stream that follows the table's columns would be two queries with one log of them."""
    log, files = Log("client-waits", add("a"), add("b")), list[str]()
    heard = Listened(DeltaStream(log.stream(max_files=1)))
    checkpoint = open_checkpoint(open_store(str(tmp_path / "checkpoint")))

    def run(sources: Sequence[ScanSource], number: int) -> None:
        files.extend(paths(sources))

    query = ClientQuery("waits", heard, checkpoint, Trigger(every_s=3600), run, "")
    try:
        query.processAllAvailable()
        assert files == ["a", "b"]
        log.commit(add("c"))
        query.processAllAvailable()
        assert files == ["a", "b", "c"]
        query.processAllAvailable()
    finally:
        query.stop()
    assert heard.threads == {"stream waits"}
    # One that was stopped does not wait.
    query.processAllAvailable()


def test_who_waits_for_a_query_hears_why_it_ended(tmp_path: Path) -> None:
    def run(sources: Sequence[ScanSource], number: int) -> None:
        raise InvalidRequest("no", code="no")

    checkpoint = open_checkpoint(open_store(str(tmp_path / "checkpoint")))
    query = ClientQuery(None, DeltaStream(Log("client-dies", add("a")).stream()), checkpoint, Trigger(), run, "")
    with pytest.raises(InvalidRequest, match="no"):
        query.processAllAvailable()
