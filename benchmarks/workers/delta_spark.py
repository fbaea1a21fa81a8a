"""delta-spark, in the environment of ../shared/reference."""

from __future__ import annotations

from importlib.metadata import version

from engines import delta_session
from spark_queries import verbs

from protocol import serve

if __name__ == "__main__":
    spark = delta_session()
    serve(
        verbs(
            spark,
            lambda path: spark.read.format("delta").load(path),
            lambda df, path, mode: df.write.format("delta").mode(mode).save(path),
        ),
        lambda: {name: version(name) for name in ("delta-spark", "pyspark")},
    )
