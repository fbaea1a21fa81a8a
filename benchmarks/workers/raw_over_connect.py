"""Spark's own Parquet over Spark Connect: the measure of what we do there."""

from __future__ import annotations

from connect_sessions import connect_session
from pyspark import __version__
from pyspark.sql import DataFrame
from spark_queries import verbs

from protocol import serve


def write(df: DataFrame, path: str, mode: str) -> None:
    df.write.mode(mode).parquet(path)


if __name__ == "__main__":
    spark = connect_session()
    serve(
        verbs(spark, lambda path: spark.read.parquet(path), write),
        lambda: {"pyspark": __version__},
    )
