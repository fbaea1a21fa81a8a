"""Writers, compactions, expiry and readers of one table at a time: nothing is lost, nothing doubled, and a reader gets its
snapshot or is told that it has expired.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import CommitConflict, NotFound
from alluvium.paimon import PaimonTable

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64())])
#: Each writer writes so often; a batch has a key that all have, and one of its own.
WRITERS, TIMES = 2, 4
SHARED = 0
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
TABLES = {
    # Every row that is lost, or counted twice, is seen in the sum of the key that all batches have.
    "sums": {**SUMS, "write-only": "true"},
    # Products of whole numbers: Python workers merge them.
    "products": {**SUMS, "write-only": "true", "fields.n.aggregate-function": "product"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "changelog": {"changelog-producer": "lookup"},
}
#: What the shared key is after so many batches.
VALUES: dict[str, Callable[[int], int]] = {"sums": lambda count: count, "products": lambda count: 2**count}


class Crowd:
    """Threads that go on until the writers are done; what went wrong in them."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, act: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - told below
                self.errors.append(error)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()
        return thread

    def add_again_and_again(self, act: Callable[[], None], *, pause: float) -> None:
        def run() -> None:
            while not self.is_over.wait(pause):
                act()

        self.add(run)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_lost_or_doubled(spark: SparkSession, tmp_path: Path, name: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(
        url, SCHEMA, [], ["k"], {"bucket": "1", "num-sorted-run.compaction-trigger": "3", **TABLES[name]}
    )
    crowd = Crowd()
    compacted, seen, late = [], [0], []

    def write(writer: int) -> None:
        for turn in range(TIMES):
            own = 1 + writer * TIMES + turn
            frame = spark.createDataFrame(
                [(SHARED, 2 if name == "products" else 1), (own, 1)], "k long, n long"
            ).coalesce(1)
            alluvium.write(frame, url, mode="append", format="paimon")

    def compact() -> None:
        try:
            compacted.append(PaimonTable.forPath(url).compact(spark=spark).attempts)
        except CommitConflict:
            # The other one, or a writer's own, was first each time.
            compacted.append(0)

    def expire() -> None:
        soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)
        PaimonTable.forPath(url).expire_snapshots(retain_max=1, retain_min=1, older_than=soon)

    def read() -> None:
        try:
            rows = {row["k"]: row["n"] for row in alluvium.open(url).to_arrow().to_pylist()}
        except NotFound as error:
            assert error.code == "snapshot-expired", error
            late.append(error)
            return
        # A batch is there as a whole, or not at all, and stays.
        assert len(rows) >= seen[-1], (len(rows), seen)
        if name in VALUES and rows:
            assert rows[SHARED] == VALUES[name](len(rows) - 1), rows
        seen.append(len(rows))

    writers = [crowd.add(lambda writer=writer: write(writer)) for writer in range(WRITERS)]
    for act, pause in ((compact, 0.2), (compact, 0.3), (expire, 0.1), (read, 0.01)):
        crowd.add_again_and_again(act, pause=pause)
    for thread in writers:
        thread.join()
    crowd.is_over.set()
    crowd.join()
    assert not crowd.errors
    PaimonTable.forPath(url).compact(spark=spark)
    left = {row["k"]: row["n"] for row in alluvium.open(url).to_arrow().to_pylist()}
    total = WRITERS * TIMES
    assert left == {SHARED: VALUES.get(name, lambda count: 1)(total), **dict.fromkeys(range(1, total + 1), 1)}
    assert any(compacted) and max(seen) > 1
    # One run, on which all agree.
    assert set(alluvium.open(url).system("files")["level"].to_pylist()) == {3}
