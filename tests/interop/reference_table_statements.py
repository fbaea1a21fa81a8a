"""Runs in the reference engine's Python (reference_server.py): a case of statements that make tables, by delta-spark.

A job is {"name", "statements", "root"}; the answer is what `table_statements.look.play` tells of each step.
"""

from pathlib import Path

from table_statements.look import play


def run(spark, job):
    return play(spark, job["name"], job["statements"], Path(job["root"]))
