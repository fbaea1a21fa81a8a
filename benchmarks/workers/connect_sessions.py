"""Sessions of Spark Connect for the workers; the reference engines' environment has none."""

from __future__ import annotations

import socket

from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from spark_queries import session_builder


def connect_session() -> SparkSession:
    """A session whose server is a JVM of its own, which knows nothing but Spark."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    # The port of a local server is always the same, and a client asks nobody which: two workers would meet there.
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign,assignment]
    builder = session_builder().remote("local[2]").config("spark.connect.grpc.binding.port", str(port))
    return builder.config("spark.log.level", "OFF").getOrCreate()
