"""Of which session Spark reads settings, where it is asked for something outside of a query.

Its parser, and what prints expressions, go by the session that is active in the JVM's thread: the one that was made
first, and none in the threads that Python starts. Spark's own `sql` makes its session the active one while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from alluvium.spark.jvm.gateway import java_of


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Within it, settings that Spark reads in this thread are those of a session.

    Args:
        spark: A classic session.
    """
    sessions = java_of(spark).sessions
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
