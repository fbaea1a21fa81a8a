"""Alluvium over Spark Connect, on Spark's own Parquet reader; nothing of ours is on the server."""

from __future__ import annotations

from connect_sessions import connect_session
from pyspark import __version__
from pyspark.sql import DataFrame
from spark_queries import verbs

import alluvium
from protocol import serve


def write(df: DataFrame, path: str, mode: str) -> None:
    df.write.mode(mode).parquet(path)


if __name__ == "__main__":
    spark = connect_session()
    serve(
        verbs(spark, lambda path: alluvium.read(spark, path), write),
        lambda: {"pyspark": __version__},
    )
