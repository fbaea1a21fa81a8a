"""What the JVM's threads leave in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from alluvium.spark.scan.native_lane.native import read_native

pytestmark = pytest.mark.spark


def test_threads_that_have_ended_leave_nothing(spark: SparkSession, make_source: Callable[..., Any]) -> None:
    source = make_source([pa.table({"id": range(10)})])
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        counts = []
        for turn in range(12):
            # Each is planned in a thread of its own, which ends with it; its filter is one that nobody has asked about.
            assert read_native(spark, source).where(f"id >= {turn}").toArrow().num_rows == max(0, 10 - turn)
            counts.append(threading.active_count())
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    # The last one is known to have ended when the next calls.
    assert counts[-1] - counts[2] <= 2, counts


def test_threads_that_live_on_are_not_all_asked_after(
    spark: SparkSession, make_source: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's pools keep their threads for a minute: the tenth query must not ask after those of nine."""
    source = make_source([pa.table({"id": range(10)})])
    asked: list[str] = []
    send = ClientServerConnection.send_command
    monkeypatch.setattr(
        ClientServerConnection, "send_command", lambda self, command: asked.append(command) or send(self, command)
    )
    threads, most = set(), 0
    for turn in range(10):
        asked.clear()
        # Adaptive queries plan their stages in the threads of a pool.
        assert read_native(spark, source).where(f"id >= {turn}").count() == 10 - turn
        looks = [command for command in asked if "\nisAlive\n" in command]
        threads.update(looks)
        new, ended = (sum(f"\n{name}\n" in command for command in asked) for name in ("currentThread", "shutdown"))
        most = max(most, len(looks) - ended - 4 * new)
    assert len(threads) > 4, "no new thread has called: the query tells nothing"
    assert most <= 0
