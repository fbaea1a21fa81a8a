"""Runs in the reference engine's Python (reference_server.py): what delta-spark's parser says of statements.

A job is a list of texts; the answer has for each the class of its plan, or None where it is refused.
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException


def plan_of(parser, text):
    try:
        return parser.parsePlan(text).getClass().getSimpleName()
    except (
        Py4JJavaError,
        PySparkException,
    ):  # a number that Scala cannot read is refused, too, if by another exception
        return None


def run(spark, job):
    parser = spark._jsparkSession.sessionState().sqlParser()
    return [plan_of(parser, text) for text in job]
