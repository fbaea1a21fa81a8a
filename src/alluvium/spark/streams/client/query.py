"""A query whose batches the client runs, one after the other, in a thread of its own."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from alluvium.plan.ports import ScanSource, StreamSource
from alluvium.spark.streams.client.checkpoint import Checkpoint

#: How long a query without a trigger waits before it asks again for news, seconds.
_PAUSE_S = 0.5
_KEPT_PROGRESS = 100

#: Checkpoints of the queries that run in this process.
_running: set[str] = set()
_lock = threading.Lock()

#: Writes a batch: its sources, and its number.
RunBatch = Callable[[Sequence[ScanSource], int], None]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches run.

    Attributes:
        ends: Whether the query ends when what there is at its start has been read.
        at_once: Whether that is one batch.
        every_s: How long a batch and the pause after it take at least, seconds; None: a batch follows the other.
    """

    ends: bool = False
    at_once: bool = False
    every_s: float | None = None


def _take(checkpoint: Checkpoint) -> None:
    """Notes that a query runs, of which there must not be two: the second would run the first one's batch again.

    Raises:
        InvalidRequest: One runs with the checkpoint (`"checkpoint-taken"`).
    """
    with _lock:
        if checkpoint.store.url in _running:
            raise checkpoint.taken()
        _running.add(checkpoint.store.url)


class ClientQuery:
    """A query that runs, or has ended; with the members of PySpark's `StreamingQuery` that have a meaning here."""

    def __init__(
        self, name: str | None, stream: StreamSource, checkpoint: Checkpoint, trigger: Trigger, run: RunBatch, sink: str
    ) -> None:
        self._name = name
        self._stream = stream
        self._checkpoint = checkpoint
        self._trigger = trigger
        self._run = run
        self._sink = sink
        self._run_id = str(uuid.uuid4())
        self._progress: list[dict[str, Any]] = []
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        #: Ends a pause.
        self._woken = threading.Event()
        #: How many times it has begun to look for news, and the last time that it found none.
        self._looks = 0
        self._look_in_vain = 0
        self._thread = threading.Thread(target=self._work, name=f"stream {name or checkpoint.query}", daemon=True)
        _take(checkpoint)
        self._thread.start()

    @property
    def id(self) -> str:
        """The query's id, which its checkpoint keeps."""
        return self._checkpoint.query

    @property
    def runId(self) -> str:
        """Another one for each start."""
        return self._run_id

    @property
    def name(self) -> str | None:
        """As `queryName` has it."""
        return self._name

    @property
    def isActive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        """What the last batch was; None: there was none."""
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        """What the last batches were."""
        return list(self._progress)

    @property
    def status(self) -> dict[str, Any]:
        """Whether it runs."""
        return {
            "message": "Running" if self.isActive else "Stopped",
            "isDataAvailable": False,
            "isTriggerActive": False,
        }

    def exception(self) -> BaseException | None:
        """Why it has ended; None: it has not, or was stopped."""
        return self._error

    def stop(self) -> None:
        """Ends it after the batch that is running."""
        self._stopping.set()
        self._woken.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Waits until it ends, at most so many seconds; whether it has.

        Raises:
            Exception: What it has ended of.
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return None if timeout is None else not self.isActive

    def processAllAvailable(self) -> None:
        """Waits until it has read what is there now, which it looks for at once, whatever its trigger says.

        As in Spark, that is when it finds nothing more: where rows never cease to come, it waits for ever.

        Raises:
            Exception: What it has ended of.
        """
        # The stream is its own thread's alone. A look that has begun may have seen less than there is now.
        wanted = self._looks + 1
        while self.isActive:
            self._woken.set()
            time.sleep(0.05)
            if self._look_in_vain >= wanted:
                return
        self.awaitTermination()

    def _work(self) -> None:
        try:
            self._stream.started(lambda: self._checkpoint.place)
            self._batches()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the query gets it
            self._error = error
        finally:
            _running.discard(self._checkpoint.store.url)

    def _batches(self) -> None:
        number, is_done = self._checkpoint.last()
        if number >= 0 and not is_done:
            self._batch(number, self._checkpoint.offset(number - 1), self._checkpoint.offset(number))
        reached, until = self._checkpoint.offset(number), None
        while not self._stopping.is_set():
            began = time.monotonic()
            self._looks += 1
            if self._trigger.ends and until is None:
                until = self._stream.end_of_run(reached)
            end = self._stream.latest(reached, limited=not self._trigger.at_once, until=until)
            if end is not None and end != reached:
                number += 1
                self._checkpoint.begin(number, end)
                self._batch(number, reached, end)
                reached = end
                if self._trigger.every_s is None:
                    continue
            elif self._trigger.ends:
                return
            else:
                self._look_in_vain = self._looks
            self._woken.wait(max(0.0, (self._trigger.every_s or _PAUSE_S) - (time.monotonic() - began)))
            self._woken.clear()

    def _batch(self, number: int, start: str | None, end: str | None) -> None:
        began = time.time()
        if end is not None:
            self._run(self._stream.batch(start, end), number)
        self._checkpoint.done(number)
        if end is not None:
            self._stream.committed(end)
            self._tell(number, began, start, end)

    def _tell(self, number: int, began: float, start: str | None, end: str) -> None:
        duration = int((time.time() - began) * 1000)
        source = {
            "description": self._stream.name,
            "startOffset": start,
            "endOffset": end,
            "metrics": dict(self._stream.metrics(end)),
        }
        self._progress.append({
            "id": self.id,
            "runId": self.runId,
            "name": self.name,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "batchId": number,
            "batchDuration": duration,
            "durationMs": {"addBatch": duration},
            "stateOperators": [],
            "sources": [source],
            "sink": {"description": self._sink},
        })  # fmt: skip
        del self._progress[:-_KEPT_PROGRESS]
