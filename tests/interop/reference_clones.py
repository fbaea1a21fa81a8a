"""Runs in the reference engine's Python (reference_server.py): delta-spark reads clones, and goes on with them.

A job is {"tables"}; a result is of each the ids that were read first, after a DELETE, an INSERT and an OPTIMIZE, and how
its log names the operation of version 0.
"""


def run(spark, job):
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    found = []
    for path in job["tables"]:
        table = f"delta.`{path}`"

        def ids(table=table):
            return sorted(row[0] for row in spark.sql(f"SELECT id FROM {table}").collect())

        first = ids()
        spark.sql(f"DELETE FROM {table} WHERE id = 3")
        spark.sql(f"INSERT INTO {table} VALUES (100, 'z')")
        spark.sql(f"OPTIMIZE {table}")
        history = spark.sql(f"DESCRIBE HISTORY {table}").collect()[-1]
        found.append([first, ids(), history["operation"], history["operationParameters"]])
    return found
