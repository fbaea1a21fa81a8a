"""Settings of a session under delta-spark's names: which of them are read here, and by what."""

from __future__ import annotations

from collections.abc import Iterable

_PREFIX = "spark.databricks.delta."
#: Of the same engine, and none of them is read.
_OTHER_PREFIXES = ("spark.databricks.io.skipping.", "spark.databricks.io.cache.")
#: Without the prefix. One that ends with a dot stands for all that begin so.
READ = frozenset(
    {
        "alterLocation.bypassSchemaCheck",
        "autoCompact.enabled",
        "autoCompact.maxFileSize",
        "autoCompact.maxNumModifiedPartitions",
        "autoCompact.minFileSize",
        "autoCompact.minNumFiles",
        "changeDataFeed.defaultSchemaModeForColumnMappingTable",
        "changeDataFeed.timestampOutOfRange.enabled",
        "commitInfo.userMetadata",
        "dynamicPartitionOverwrite.enabled",
        "optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
        "optimize.clustering.mergeStrategy.minCubeSize.threshold",
        "optimize.maxDeletedRowsRatio",
        "optimize.maxFileSize",
        "optimize.minFileSize",
        "optimize.zorder.checkStatsCollection.enabled",
        "optimizeWrite.binSize",
        "optimizeWrite.enabled",
        "optimizeWrite.maxShufflePartitions",
        "properties.defaults.",
        "replaceWhere.constraintCheck.enabled",
        "replaceWhere.dataColumns.enabled",
        "retentionDurationCheck.enabled",
        "schema.autoMerge.enabled",
        "streaming.allowSchemaLocationOutsideCheckpointLocation",
        "streaming.allowSourceColumnDrop",
        "streaming.allowSourceColumnRename",
        "streaming.allowSourceColumnRenameAndDrop",
        "streaming.allowSourceColumnTypeChange",
        "streaming.unsafeReadOnPartitionColumnChanges.enabled",
        "timeTravel.resolveOnIdentifier.enabled",
        "vacuum.logging.enabled",
        "write.txnAppId",
        "write.txnVersion",
    }
)
_BEGINNINGS = tuple(name for name in READ if name.endswith("."))


def unread(names: Iterable[str]) -> list[str]:
    """Of some settings those of delta-spark's that nothing here reads, sorted."""
    return sorted(name for name in names if _is_of_delta(name) and not _is_read(name.removeprefix(_PREFIX)))


def _is_of_delta(name: str) -> bool:
    return name.startswith((_PREFIX, *_OTHER_PREFIXES))


def _is_read(name: str) -> bool:
    # Behind `ckpt_` stands of which stream alone.
    return name.partition(".ckpt_")[0] in READ or name.startswith(_BEGINNINGS)
