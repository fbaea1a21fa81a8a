"""Runs in the reference engine's Python: creates and changes tables with delta-spark's own DeltaTable, for comparison.

    reference_tables.py JOBS.json RESULTS.json      (with the reference folder on PYTHONPATH)

A job is {"path", "columns", "properties", "nullable", "generated", "then"?: {...}, "sql"?: [...], "builder"?: "create"}; a result
is the actions of the newest commit, or the error.
"""

import glob
import json
import sys

from delta.tables import DeltaTable
from engines import delta_session


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


if __name__ == "__main__":
    session = delta_session()
    results = []
    with open(sys.argv[1]) as source:
        jobs = json.load(source)
    for one in jobs:
        try:
            results.append({"actions": run(session, one), "error": None})
        except Exception as error:  # noqa: BLE001  # the judge's verdict is data here
            results.append({"actions": None, "error": str(error)[:1000]})
    with open(sys.argv[2], "w") as sink:
        json.dump(results, sink)
