"""A private copy of a session: settings of our own that the user's session never sees."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from alluvium.spark.gateway import JavaObject, java_of


class PrivateSession:
    """A clone of the JVM session (1 ms) with settings changed; it has the same views, functions and cached data."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self._spark = spark
        self._dataset = java_of(spark).dataset
        self._clone = spark._jsparkSession.cloneSession()
        conf = self._clone.conf()
        for key, value in settings.items():
            conf.set(key, value)

    @property
    def java(self) -> JavaObject:
        """The JVM's session."""
        return self._clone

    def take(self, df: DataFrame) -> DataFrame:
        """The same analysed plan, to be run with this session's settings."""
        return DataFrame(self._dataset.ofRows(self._clone, df._jdf.queryExecution().analyzed()), self._spark)

    def give_back(self, df: DataFrame) -> DataFrame:
        """The same analysed plan, in the user's session."""
        jdf = self._dataset.ofRows(self._spark._jsparkSession, df._jdf.queryExecution().analyzed())
        return DataFrame(jdf, self._spark)
