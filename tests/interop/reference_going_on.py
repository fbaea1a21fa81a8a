"""Runs in the reference engine's Python (reference_server.py): delta-spark goes on with a table that another engine wrote.

A job is {"table", "columns": names of id, part and value}; a result is what was read after each step: `id` to value, as text.
"""

from pathlib import Path


def run(spark, job):
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # Tiny tables: the state of a log in 50 partitions is what it spends its time on.
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    path = job["table"]
    identity, part, value = job["columns"]
    table = f"delta.`{path}`"
    target = f"{table} ({identity}, {part}, {value})"
    version = max(int(file.stem) for file in Path(path, "_delta_log").glob("*.json") if file.stem.isdigit())

    def rows():
        found = spark.sql(f"SELECT {identity}, {value} FROM {table}").collect()
        assert len({row[0] for row in found}) == len(found), f"rows are doubled: {found}"
        return {str(row[0]): row[1] for row in found}

    seen = {"found": rows()}
    spark.sql(f"INSERT INTO {target} VALUES (100, 0, 'new'), (101, 1, 'new')")
    spark.sql(f"DELETE FROM {table} WHERE {identity} IN (1, 100)")
    spark.sql(f"UPDATE {table} SET {value} = 'updated' WHERE {identity} = 2")
    spark.sql(
        f"""MERGE INTO {table} t USING (SELECT * FROM VALUES (3, 1), (200, 0) AS s(id, p)) s ON t.{identity} = s.id
        WHEN MATCHED THEN UPDATE SET {value} = 'merged'
        WHEN NOT MATCHED THEN INSERT ({identity}, {part}, {value}) VALUES (s.id, s.p, 'inserted')"""
    )
    seen["changed"] = rows()
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}")
    seen["restored"] = rows()
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version + 4}")
    spark.sql(f"OPTIMIZE {table}")
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.checkpoint()
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    # As another process would see it.
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    seen["last"] = rows()
    return seen
