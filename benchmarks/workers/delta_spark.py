"""delta-spark, in the environment of ../shared/reference."""

from __future__ import annotations

from importlib.metadata import version

from delta.tables import DeltaTable
from engines import delta_session
from spark_dml import dml_verbs
from spark_queries import verbs
from spark_streams import stream_verbs

from protocol import serve

if __name__ == "__main__":
    spark = delta_session()
    serve(
        {
            **verbs(
                spark,
                lambda path: spark.read.format("delta").load(path),
                lambda df, path, mode: df.write.format("delta").mode(mode).save(path),
                lambda path: spark.read.format("delta").options(readChangeFeed=True, startingVersion=0).load(path),
            ),
            **dml_verbs(spark, lambda path: DeltaTable.forPath(spark, path)),
            **stream_verbs(spark, lambda path: DeltaTable.forPath(spark, path)),
        },
        lambda: {name: version(name) for name in ("delta-spark", "pyspark")},
    )
