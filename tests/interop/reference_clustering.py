"""Runs in the reference engine's Python (reference_server.py): delta-spark makes, appends to and optimizes clustered tables.

A job is {"table", "statements"}; the answer has for each OPTIMIZE its figures (files in cubes, others, cubes there were,
files taken, cubes made), and what was read at the end.
"""


def run(spark, job):
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    table, figures = f"delta.`{job['table']}`", []
    for statement in job["statements"]:
        answer = spark.sql(statement.format(table))
        if statement.startswith("OPTIMIZE"):
            found = answer.collect()[0]["metrics"]["clusteringStats"]
            counts = [found[name]["numFiles"] for name in ("inputZCubeFiles", "inputOtherFiles", "mergedFiles")]
            figures.append([*counts[:2], found["inputNumZCubes"], counts[2], found["numOutputZCubes"]])
    rows = spark.sql(f"SELECT count(*), count(DISTINCT a), sum(b) FROM {table}").collect()[0]
    return {"figures": figures, "rows": list(rows)}
