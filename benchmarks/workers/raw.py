"""Spark's own Parquet on the same files: the measure of the Spark workloads."""

from __future__ import annotations

from pyspark import __version__
from spark_queries import project_session, verbs

from protocol import serve

if __name__ == "__main__":
    spark = project_session()
    serve(
        verbs(
            spark,
            lambda path: spark.read.parquet(path),
            lambda df, path, mode: df.write.mode(mode).parquet(path),
            source="parquet",
        ),
        lambda: {"pyspark": __version__},
    )
