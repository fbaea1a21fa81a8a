"""A session as stores and commits know it: its access to storage, and the name of its engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import SparkSession

import alluvium
from alluvium.api.stores import storage_for
from alluvium.plan.changes import Author
from alluvium.spark.sessions.session import hadoop_access, is_connect
from alluvium.storage.store import Store

#: The reference's setting of the session: `userMetadata` of every commit.
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"


def session_opener(spark: SparkSession, storage_options: Mapping[str, str] | None) -> Callable[[str], Store]:
    """From a URL to its store, over the session's Hadoop file systems where the session has them at hand."""
    hadoop = None if is_connect(spark) else partial(hadoop_access, spark)
    return partial(storage_for, storage_options=storage_options, hadoop=hadoop)


def engine_of(spark: SparkSession) -> Author:
    """How commits of a session name their engine, and what it says of them all."""
    return Author(f"Apache-Spark/{spark.version} Alluvium/{alluvium.__version__}", spark.conf.get(_NOTE, None))
