"""Plays SQL statements in a session, delta-spark's or ours, and tells what each came to.

A job is {"tables": {name: {"select", "partitions", "properties"}}, "steps": [texts]}. Of a step that begins with
`HISTORY` the newest entry of a table's history is told: the operation, its clauses, its counts of rows.
"""

import json

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

_PARAMETERS = ("matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates")


def run(spark, job):
    for name, table in job["tables"].items():
        rows = spark.sql(table["select"])
        writer = (
            rows.write.format(table.get("format", "delta")).mode("overwrite").options(**table.get("properties", {}))
        )
        writer.partitionBy(*table.get("partitions", [])).saveAsTable(name)
    try:
        return [_told(spark, text) for text in job["steps"]]
    finally:
        for name in job["tables"]:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def _told(spark, text):
    try:
        if text.startswith("HISTORY "):
            return _history(spark, text.removeprefix("HISTORY "))
        answer = spark.sql(text)
        rows = sorted(str(tuple(row)) for row in answer.collect())
        return {"columns": [[f.name, f.dataType.simpleString()] for f in answer.schema.fields], "rows": rows}
    except (Py4JJavaError, PySparkException) as error:
        return {"error": type(error).__name__, "text": str(error)[:300]}
    except Exception as error:
        if not type(error).__module__.startswith("alluvium"):
            raise
        return {"error": type(error).__name__, "text": str(error)[:300]}


def _history(spark, name):
    newest = spark.sql(f"DESCRIBE HISTORY {name}").orderBy("version", ascending=False).first()
    parameters, metrics = newest["operationParameters"], newest["operationMetrics"]
    return {
        "operation": newest["operation"],
        # Predicates themselves hold the numbers of Catalyst's columns there, and names here.
        "clauses": {key: _clauses(parameters[key]) for key in _PARAMETERS if key in parameters},
        "metrics": {
            key: value
            for key, value in sorted(metrics.items())
            if key.endswith(("Rows", "Inserted", "Updated", "Deleted"))
        },
    }


def _clauses(text):
    return [[clause["actionType"], "predicate" in clause] for clause in json.loads(text)]
