"""Settings of a session under delta-spark's names: which of them are read here, and by what."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

log = logging.getLogger("alluvium")

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
        "convert.useMetadataLog",
        "delete.deletionVectors.persistent",
        "dynamicPartitionOverwrite.enabled",
        "merge.deletionVectors.persistent",
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
        "update.deletionVectors.persistent",
        "updateAndMergeCastingFollowsAnsiEnabledFlag",
        "vacuum.logging.enabled",
        "write.txnAppId",
        "write.txnVersion",
        "write.txnVersion.autoReset.enabled",
    }
)
#: `SET name = value`, and the same with the name in backticks.
SET_STATEMENT = re.compile(r"\s*SET\s+(?:`(?P<quoted>[^`]+)`|(?P<plain>[\w.:-]+))\s*=\s*(?P<value>.*)", re.I | re.S)
#: Settings of which somebody was told that nobody reads them.
_told: set[str] = set()
_BEGINNINGS = tuple(name for name in READ if name.endswith("."))


def unread(names: Iterable[str]) -> list[str]:
    """Of some settings those of delta-spark's that nothing here reads, sorted."""
    return sorted(name for name in names if _is_of_delta(name) and not _is_read(name.removeprefix(_PREFIX)))


def tell_of_unread(names: Iterable[str]) -> None:
    """Says of settings that somebody has set which of them nothing here reads: of each once, by the log `alluvium`."""
    new = [name for name in unread(names) if name not in _told]
    if new:
        _told.update(new)
        log.warning("settings of delta-spark that Alluvium does not read: %s", ", ".join(new))


def tell_of_statement(text: object) -> None:
    """The same of `SET name = value`; other statements cost a look at them."""
    found = SET_STATEMENT.match(text) if isinstance(text, str) else None
    if found is not None:
        tell_of_unread([found["quoted"] or found["plain"]])


def _is_of_delta(name: str) -> bool:
    return name.startswith((_PREFIX, *_OTHER_PREFIXES))


def _is_read(name: str) -> bool:
    # Behind `ckpt_` stands of which stream alone.
    return name.partition(".ckpt_")[0] in READ or name.startswith(_BEGINNINGS)
