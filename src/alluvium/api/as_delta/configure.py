"""configure_spark_with_delta_pip, without anything to download."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from alluvium.api.as_delta.hooks import hook_sessions
from alluvium.api.as_delta.settings import PACKAGES, without_jar
from alluvium.errors import WrongType


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
) -> SparkSession.Builder:
    """A builder whose session needs no JAR of Delta, and is enabled when it is made.

    Args:
        spark_session_builder: The builder. It forgets what it was told of Delta's JAR, and nothing else.
        extra_packages: Coordinates of other packages for Spark to download; those of Delta's JAR are left out.

    Returns:
        The same builder.

    Raises:
        InvalidRequest: The first argument is no builder (a TypeError, too).

    Example:
        >>> builder = configure_spark_with_delta_pip(SparkSession.builder.appName("nightly"))
        >>> spark = builder.getOrCreate()
    """
    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise WrongType(
            f"a builder of Spark sessions is configured, not {type(spark_session_builder)}",
            hint="configure_spark_with_delta_pip(SparkSession.builder.appName(...))",
        )
    hook_sessions()
    options = spark_session_builder._options
    packages = [str(options.get(PACKAGES, "")), *(extra_packages or ())]
    if any(packages):
        options[PACKAGES] = ",".join(filter(None, packages))
    kept = without_jar(options)
    options.clear()
    options.update(kept)
    return spark_session_builder
