"""The session's settings that OPTIMIZE obeys, under delta-spark's names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from alluvium.delta.terms.file_properties import TARGET_FILE_SIZE, file_properties, wants_auto_compaction
from alluvium.delta.terms.properties import parse_boolean
from alluvium.delta.upkeep.clustering.zcubes import TARGET_CUBE_BYTES, CubeSizes
from alluvium.delta.upkeep.optimize import DEFAULT_DELETED_RATIO, DEFAULT_FILE_BYTES, FileSizes
from alluvium.delta.upkeep.small_files import (
    DEFAULT_AUTO_BYTES,
    DEFAULT_MIN_FILES,
    DEFAULT_MOST_PARTITIONS,
    AutoCompaction,
)
from alluvium.spark.sessions.settings import parse_count, parse_positive, read_setting

_MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
_MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_DELETED_RATIO = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
_LARGE_CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
_TARGET_CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize"
_AUTO = "spark.databricks.delta.autoCompact.enabled"
_AUTO_FILES = "spark.databricks.delta.autoCompact.minNumFiles"
_AUTO_MIN_SIZE = "spark.databricks.delta.autoCompact.minFileSize"
_AUTO_MAX_SIZE = "spark.databricks.delta.autoCompact.maxFileSize"
_AUTO_PARTITIONS = "spark.databricks.delta.autoCompact.maxNumModifiedPartitions"
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
        read_setting(spark, _MIN_FILE_SIZE, parse_count, size),
        read_setting(spark, _MAX_FILE_SIZE, parse_positive, size),
        read_setting(spark, _DELETED_RATIO, _share, DEFAULT_DELETED_RATIO),
    )


def cube_sizes(spark: SparkSession) -> CubeSizes:
    """When files of a clustered table are clustered enough.

    Raises:
        InvalidRequest: A value does not parse (`invalid-setting`).
    """
    large = read_setting(spark, _LARGE_CUBE, parse_count, -1)
    return CubeSizes(None if large < 0 else large, read_setting(spark, _TARGET_CUBE, parse_count, TARGET_CUBE_BYTES))


def auto_compaction(spark: SparkSession, configuration: Mapping[str, str]) -> AutoCompaction | None:
    """When files are put together after a commit; None: never.

    Raises:
        InvalidRequest: A value does not parse (`invalid-setting`).
    """
    said = read_setting(spark, _AUTO, parse_boolean, None)
    if not (wants_auto_compaction(configuration) if said is None else said):
        return None
    size = read_setting(spark, _AUTO_MAX_SIZE, parse_positive, DEFAULT_AUTO_BYTES)
    ratio = read_setting(spark, _DELETED_RATIO, _share, DEFAULT_DELETED_RATIO)
    sizes = FileSizes(read_setting(spark, _AUTO_MIN_SIZE, parse_count, size // 2), size, ratio)
    files = read_setting(spark, _AUTO_FILES, parse_count, DEFAULT_MIN_FILES)
    return AutoCompaction(files, sizes, read_setting(spark, _AUTO_PARTITIONS, parse_positive, DEFAULT_MOST_PARTITIONS))


def wants_statistics(spark: SparkSession) -> bool:
    """Whether rows may be ordered only by columns that have statistics."""
    return str(spark.conf.get(_CHECKS_STATISTICS, "true")).strip().lower() != "false"


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError("a share from 0 to 1 is expected")
    return share
