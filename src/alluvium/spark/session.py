"""What a session can do, and its few facts that plans depend on."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from alluvium.errors import InvalidRequest
from alluvium.spark.gateway import JavaObject, java_of
from alluvium.storage.hadoop import HadoopAccess


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a session offers.

    Attributes:
        gateway: The driver's JVM is at hand (classic PySpark); false for Spark Connect.
        version: Spark's version as `(major, minor)`.
    """

    gateway: bool
    version: tuple[int, int]


def capabilities(spark: SparkSession) -> Capabilities:
    """What the session can do. A Connect session has no JVM gateway."""
    major, minor = spark.version.split(".")[:2]
    return Capabilities(isinstance(spark, SparkSession) and hasattr(spark, "_jsparkSession"), (int(major), int(minor)))


def ensure_native(spark: SparkSession) -> None:
    """Refuses sessions without a JVM gateway.

    Raises:
        InvalidRequest: `"no-jvm"`: the session is one of Spark Connect, or it has been stopped.
    """
    if not capabilities(spark).gateway:
        raise InvalidRequest(
            "this needs the JVM of a classic Spark session, and a Spark Connect session has none",
            code="no-jvm",
            hint="make the session with SparkSession.builder.master(...), or run the script with spark-submit",
        )
    if spark.sparkContext._jsc is None:
        raise InvalidRequest(
            "the Spark session has been stopped",
            code="no-jvm",
            hint="use the session that SparkSession.builder.getOrCreate() returns now",
        )


def time_zone(spark: SparkSession) -> str:
    """The session's time zone, in which Spark reads and prints timestamps."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def hadoop_access(spark: SparkSession) -> HadoopAccess:
    """The JVM view and a Hadoop configuration with the session's settings, for `storage.hadoop`.

    Raises:
        InvalidRequest: `"no-jvm"`.
    """
    ensure_native(spark)
    return HadoopAccess(java_of(spark).jvm, spark._jsparkSession.sessionState().newHadoopConf())


def java_schema(spark: SparkSession, schema: StructType) -> JavaObject:
    """The JVM's `StructType` of a schema, metadata included."""
    return spark._jsparkSession.parseDataType(schema.json())
