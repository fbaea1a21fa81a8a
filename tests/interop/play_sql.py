"""Plays statements of SQL, by us and by delta-spark (reference_server.py), and tells what came of each.

A job has `make`, statements whose answers do not count, and `play`, those that do. In all of them `{name}` is the table
at that place below `root`. What a statement did is told by its answer, and by the rows and the history of the table
that it says to look at.
"""

import re

_SKIPPED = ("numOutputBytes", "numRemovedBytes", "executionTimeMs", "scanTimeMs", "rewriteTimeMs", "numDeletionVectors")


def run(spark, job):
    for text in job["make"]:
        spark.sql(placed(text, job["root"]))
    return [played(spark, step, job["root"]) for step in job["play"]]


def placed(text, root):
    return re.sub(r"\{(\w+)\}", lambda found: f"delta.`{root}/{found[1]}`", text)


def played(spark, step, root):
    """What a step `[table, statement, settings]` did."""
    table, text, settings = step
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    told = {"step": text, "error": None}
    try:
        answer = spark.sql(placed(text, root))
        told["columns"] = [[f.name, f.dataType.simpleString()] for f in answer.schema.fields]
        told["answer"] = [str(tuple(row)) for row in answer.collect()]
    except Exception as error:  # noqa: BLE001  # whether a statement is refused is what is asked
        told |= {"error": type(error).__name__, "text": str(error)[:300]}
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
    told["rows"] = rows_of(spark, table, root)
    told["history"] = history_of(spark, table, root)
    return told


def rows_of(spark, table, root):
    frame = spark.read.format("delta").load(f"{root}/{table}")
    shown = [f"`{name}`" for name in frame.columns]
    return [frame.columns, sorted(str(tuple(row)) for row in frame.selectExpr(*shown).collect())]


def history_of(spark, table, root):
    newest = spark.sql(placed(f"describe history {{{table}}} limit 1", root)).first()
    metrics = {name: v for name, v in (newest["operationMetrics"] or {}).items() if name not in _SKIPPED}
    return [newest["version"], newest["operation"], dict(newest["operationParameters"] or {}), metrics]
