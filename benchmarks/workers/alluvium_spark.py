"""Alluvium on Spark, through its public names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import __version__
from pyspark.sql import DataFrame
from spark_dml import dml_verbs
from spark_queries import project_session, verbs
from spark_streams import stream_verbs

import alluvium
from alluvium.paimon import PaimonTable
from protocol import serve


def write(df: DataFrame, path: str, mode: str) -> None:
    alluvium.write(df, path, mode=mode)


def upsert(request: Mapping[str, Any]) -> object:
    """The rows of a file into a Paimon table of keys."""
    rows = spark.read.parquet(request["source"])
    alluvium.write(rows, request["path"], mode="append", format="paimon")
    return None


def compact(request: Mapping[str, Any]) -> object:
    """A Paimon table of keys, fully."""
    PaimonTable.forPath(request["path"]).compact(spark=spark)
    return None


if __name__ == "__main__":
    spark = project_session()
    alluvium.enable(spark)
    serve(
        {
            **verbs(
                spark, lambda path: alluvium.read(spark, path), write, lambda path: alluvium.changes(spark, path, 0)
            ),
            **dml_verbs(spark, lambda path: alluvium.DeltaTable.forPath(spark, path)),
            "upsert": upsert,
            "compact": compact,
            **stream_verbs(spark, lambda path: alluvium.DeltaTable.forPath(spark, path)),
        },
        lambda: {"alluvium": alluvium.__version__, "pyspark": __version__},
    )
