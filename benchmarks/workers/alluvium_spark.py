"""Alluvium on Spark, through its public names."""

from __future__ import annotations

from pyspark import __version__
from pyspark.sql import DataFrame
from spark_dml import dml_verbs
from spark_queries import project_session, verbs
from spark_streams import stream_verbs

import alluvium
from protocol import serve


def write(df: DataFrame, path: str, mode: str) -> None:
    alluvium.write(df, path, mode=mode)


if __name__ == "__main__":
    spark = project_session()
    alluvium.enable(spark)
    serve(
        {
            **verbs(
                spark, lambda path: alluvium.read(spark, path), write, lambda path: alluvium.changes(spark, path, 0)
            ),
            **dml_verbs(spark, lambda path: alluvium.DeltaTable.forPath(spark, path)),
            **stream_verbs(spark, lambda path: alluvium.DeltaTable.forPath(spark, path)),
        },
        lambda: {"alluvium": alluvium.__version__, "pyspark": __version__},
    )
