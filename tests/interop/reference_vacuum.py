"""Runs in the reference engine's Python (reference_server.py): statements whose answers have a column `path`.

A job is {"statements"}; a result is the paths of each.
"""


def run(spark, job):
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # It lists in as many tasks as this says: 10,000.
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    return [[row["path"] for row in spark.sql(text).collect()] for text in job["statements"]]
