"""Spark's own Parquet on the same files: the measure of the Spark workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import __version__
from spark_queries import project_session, verbs

from protocol import serve

if __name__ == "__main__":
    spark = project_session()

    def optimize(request: Mapping[str, Any]) -> object:
        """What OPTIMIZE cannot do without: the rows read, and written into one file."""
        spark.read.parquet(request["path"]).coalesce(1).write.parquet(request["to"])
        return None

    asked = verbs(
        spark,
        lambda path: spark.read.parquet(path),
        lambda df, path, mode: df.write.mode(mode).parquet(path),
        source="parquet",
    )
    serve(
        {**asked, "optimize": optimize},
        lambda: {"pyspark": __version__},
    )
