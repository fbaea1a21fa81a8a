"""Spark's own Parquet on the same files: the measure of the Spark workloads."""

from __future__ import annotations

import glob
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

    def sort(request: Mapping[str, Any]) -> object:
        """What a compaction cannot do without: the rows exchanged by their key, sorted and written."""
        rows = spark.read.option("recursiveFileLookup", "true").parquet(*glob.glob(f"{request['path']}/bucket-*"))
        rows = rows.repartition(request["tasks"], request["by"]).sortWithinPartitions(request["by"])
        rows.write.parquet(request["to"])
        return None

    asked = verbs(
        spark,
        lambda path: spark.read.parquet(path),
        lambda df, path, mode: df.write.mode(mode).parquet(path),
        source="parquet",
    )
    serve(
        {**asked, "optimize": optimize, "sort": sort},
        lambda: {"pyspark": __version__},
    )
