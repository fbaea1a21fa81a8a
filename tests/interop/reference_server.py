"""Runs in the reference engine's Python as long as tests ask: the answers of delta-spark and of Paimon, a JVM for each.

    reference_server.py      (with the reference folder on PYTHONPATH)

A line of the standard input is JSON: {"script": a module of this folder with `run(spark, job)`, "jobs", "results": paths}.
When the results are there, `@@ done` is printed. Each request has a session of its own, and no table is known from before.
"""

import functools
import importlib
import json
import os
import sys

from engines import delta_session

# Modules of tests/support that import nothing of the project.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import jvm


@functools.cache
def delta():
    # Its VACUUM lists a handful of files by as many tasks as this says: 10,000, if nobody says otherwise.
    listing = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "2"}
    quick = {**jvm.INTERPRETED, **jvm.ALONE, **jvm.NO_CALL_SITES}
    spark = delta_session(**{"spark.buffer.pageSize": jvm.PAGE_BYTES, **quick, **listing})
    jvm.lighten(spark.sparkContext)
    return spark


def new_session():
    spark = delta()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return spark.newSession()


def answer(run, session, job):
    try:
        return {"result": run(session, job), "error": None}
    except Exception as error:  # noqa: BLE001  # the judge's verdict is data here
        return {"result": None, "error": str(error)[:4000]}


if __name__ == "__main__":
    # Paimon's JVM takes its options from nowhere else.
    os.environ["JAVA_TOOL_OPTIONS"] = jvm.OPTIONS
    for line in sys.stdin:
        request = json.loads(line)
        script = importlib.import_module(request["script"])
        session = new_session() if getattr(script, "NEEDS_SPARK", True) else None
        with open(request["jobs"]) as source:
            jobs = json.load(source)
        answers = [answer(script.run, session, job) for job in jobs]
        with open(request["results"], "w") as sink:
            json.dump(answers, sink)
        print("@@ done", flush=True)
