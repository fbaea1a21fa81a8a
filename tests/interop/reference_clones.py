"""Runs in the reference engine's Python (reference_server.py): delta-spark reads clones, and goes on with one of them.

A job is {"tables", "changed"}; a result is of each table the ids that were read, and how its history names version 0, and
the ids of the changed one after a DELETE, an INSERT and an OPTIMIZE.
"""


def run(spark, job):
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")

    def ids(path):
        return sorted(row[0] for row in spark.sql(f"SELECT id FROM delta.`{path}`").collect())

    found = []
    for path in job["tables"]:
        history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()[-1]
        found.append([ids(path), history["operation"], history["operationParameters"]])
    path = job["changed"]
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (100, 'z')")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    return [found, ids(path)]
