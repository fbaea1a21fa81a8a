"""Runs in the reference engine's Python (reference_server.py): jobs on Delta tables with delta-spark.

A job is {"do": "read", "table", "out", "version"?} or {"do": "write"/"statement"/..., ...}.
"""

import functools


def run(spark, job):
    do, table = job["do"], job["table"]
    if do == "read":
        reader = spark.read.format("delta")
        if job.get("version") is not None:
            reader = reader.option("versionAsOf", job["version"])
        for key, value in job.get("options", {}).items():
            reader = reader.option(key, value)
        rows = reader.load(table).selectExpr(*job.get("columns", ["*"])).where(job.get("where", "true"))
        if job.get("wheres"):
            rows = by_condition(rows, job["wheres"])
        rows.coalesce(1).write.mode("overwrite").parquet(job["out"])
    elif do == "write":
        writer = spark.sql(job["sql"]).write.format("delta").mode(job["mode"])
        if job.get("partition_by"):
            writer = writer.partitionBy(*job["partition_by"])
        for key, value in job.get("options", {}).items():
            writer = writer.option(key, value)
        writer.save(table)
    elif do == "stream":
        reader = spark.readStream.format("delta").options(**job.get("options", {}))
        rows = reader.load(job["source"])
        if job.get("unique"):
            spark.conf.set("spark.sql.shuffle.partitions", "2")
            rows = rows.dropDuplicates(job["unique"])
        writer = rows.writeStream.format("delta").option("checkpointLocation", job["checkpoint"])
        writer.trigger(availableNow=True).start(table).awaitTermination()
    elif do == "statement":
        spark.sql(job["sql"].replace("{table}", f"delta.`{table}`"))
    elif do == "write_parquet":
        spark.table("t").coalesce(1).write.mode("overwrite").parquet(job["out"])
    elif do == "log":
        return log_state(spark, table)
    elif do == "detail":
        row = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()[0]
        history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
        return {
            "files": row["numFiles"],
            "bytes": row["sizeInBytes"],
            "features": row["tableFeatures"],
            "operations": [h["operation"] for h in history],
            "metrics": history[0]["operationMetrics"],
            "schema": spark.read.format("delta").load(table).schema.simpleString(),
        }
    return None


def by_condition(rows, conditions):
    """The rows that meet each condition, with its place in `condition`: as many scans that skip files, in one query."""
    found = (rows.where(text).selectExpr("*", f"{place} condition") for place, text in enumerate(conditions))
    return functools.reduce(lambda one, other: one.union(other), found)


def log_state(spark, table):
    """What its log replay makes of a table: the checkpoint used, whether the checksum agrees."""
    none = spark._jvm.scala.Option.apply(None)
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    snapshot = log.update(False, none, none)
    return {
        "version": snapshot.version(),
        "checkpoint": snapshot.logSegment().checkpointProvider().version(),
        "files": snapshot.numOfFiles(),
        "checksum_agrees": snapshot.validateChecksum(spark._jvm.PythonUtils.toScalaMap({})),
    }
