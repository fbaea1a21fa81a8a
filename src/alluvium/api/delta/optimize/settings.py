"""The session's settings that OPTIMIZE obeys, under delta-spark's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql import SparkSession

from alluvium.delta.terms.file_properties import TARGET_FILE_SIZE, file_properties
from alluvium.delta.upkeep.optimize import DEFAULT_DELETED_RATIO, DEFAULT_FILE_BYTES, FileSizes
from alluvium.errors import InvalidRequest

T = TypeVar("T")

_MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
_MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_DELETED_RATIO = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
_CHECKS_STATISTICS = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"


def file_sizes(spark: SparkSession, configuration: Mapping[str, str]) -> FileSizes:
    """What files should be like: as the session says, else as the table does (`delta.targetFileSize`).

    Raises:
        InvalidRequest: A value does not parse (`invalid-setting`).
    """
    size = DEFAULT_FILE_BYTES
    if TARGET_FILE_SIZE in configuration:
        size = file_properties(configuration).target_file_bytes
    return FileSizes(
        _said(spark, _MIN_FILE_SIZE, _size, size),
        _said(spark, _MAX_FILE_SIZE, _positive, size),
        _said(spark, _DELETED_RATIO, _share, DEFAULT_DELETED_RATIO),
    )


def wants_statistics(spark: SparkSession) -> bool:
    """Whether rows may be ordered only by columns that have statistics."""
    return str(spark.conf.get(_CHECKS_STATISTICS, "true")).strip().casefold() != "false"


def _said(spark: SparkSession, name: str, parse: Callable[[str], T], default: T) -> T:
    text = spark.conf.get(name, None)
    if text is None:
        return default
    try:
        return parse(text.strip())
    except ValueError as error:
        raise InvalidRequest(
            f"the setting {name} is {text!r}: {error}", code="invalid-setting", hint="spark.conf.set or unset it"
        ) from None


def _size(text: str) -> int:
    size = int(text)
    if size < 0:
        raise ValueError("a number of bytes is not negative")
    return size


def _positive(text: str) -> int:
    size = int(text)
    if size <= 0:
        raise ValueError("a number of bytes above 0 is expected")
    return size


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError("a share from 0 to 1 is expected")
    return share
