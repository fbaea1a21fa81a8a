"""Runs in the reference engine's Python (reference_server.py): tables made and changed by delta-spark's own DeltaTable.

A job is {"path", "columns", "properties", "nullable", "generated", "sql"?: [...], "builder"?: "create"}; a result is the actions
of the newest commit.
"""

import glob
import json

from delta.tables import DeltaTable


def last_commit(path):
    newest = sorted(glob.glob(path + "/_delta_log/*.json"))[-1]
    with open(newest) as lines:
        return [json.loads(line) for line in lines]


def run(spark, job):
    path = job["path"]
    if job.get("columns"):
        builder = getattr(DeltaTable, job.get("builder", "create"))(spark).location(path)
        for name, data_type in job["columns"]:
            builder = builder.addColumn(
                name,
                data_type,
                nullable=job.get("nullable", True),
                generatedAlwaysAs=job.get("generated", {}).get(name),
            )
        for key, value in job.get("properties", {}).items():
            builder = builder.property(key, value)
        builder.execute()
    for text in job.get("sql", ()):
        spark.sql(text.replace("{t}", f"delta.`{path}`"))
    return last_commit(path)
