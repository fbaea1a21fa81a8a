"""Alluvium over Spark Connect, in a process of its own: a process has a classic session or one of Connect."""

from __future__ import annotations

import socket
from typing import Any

import jvm
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder

import alluvium
from model.engines.spark_engine import SparkEngine, told


def connect_session() -> SparkSession:
    """A session whose server is a JVM of this process, nothing of ours in it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    # The port of a local server is always the same, and a client of one asks nobody which.
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)
    builder = SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", str(port))
    builder = builder.config("spark.driver.extraJavaOptions", jvm.OPTIONS).config(
        "spark.buffer.pageSize", jvm.PAGE_BYTES
    )
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
    return builder.config("spark.log.level", "OFF").config("spark.driver.memory", "1g").getOrCreate()


class ConnectEngine(SparkEngine):
    """What the library does over Connect: rows written and changed, and read; by DataFrames, or by statements."""

    def __init__(self, session: SparkSession, by_sql: bool) -> None:
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        alluvium.enable(session)
        super().__init__("connect", session, alluvium, by_sql)

    def rows(self, url: str, version: int) -> list[dict[str, Any]]:
        return [told(row) for row in alluvium.read(self._spark, url, version=version).collect()]

    def changes(self, url: str, start: int) -> list[dict[str, Any]]:
        df = alluvium.changes(self._spark, url, start).drop("_commit_timestamp")
        return [told(row) for row in df.collect()]

    def streamed(self, url: str, start: int | None = None) -> None:
        """Rows of a stream come to `foreachBatch` alone, which is the server's Python."""

    def _save(self, url: str, call: dict[str, Any], mode: str, **options: Any) -> None:
        alluvium.write(self._frame(call), url, mode=mode, **options)

    def _append(self, url: str, call: dict[str, Any]) -> None:
        self._save(url, call, "append")

    def _sql_append(self, url: str, call: dict[str, Any]) -> None:
        # No stream goes into a table from the server.
        super()._sql_append(url, {**call, "streams": False})
