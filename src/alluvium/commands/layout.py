"""What a session says of how rows become files, whatever the verb, and the table of a verb that changes rows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.terms.file_properties import FileLayout
from alluvium.delta.terms.properties import parse_boolean, parse_size_bytes
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.sessions.settings import parse_positive, read_setting

_ENABLED = "spark.databricks.delta.optimizeWrite.enabled"
_BIN_SIZE = "spark.databricks.delta.optimizeWrite.binSize"
_MOST_TASKS = "spark.databricks.delta.optimizeWrite.maxShufflePartitions"


def session_layout(spark: SparkSession) -> FileLayout:
    """What the session says.

    Raises:
        InvalidRequest: A setting does not parse (`invalid-setting`).
    """
    return FileLayout(
        read_setting(spark, _ENABLED, parse_boolean, None),
        read_setting(spark, _BIN_SIZE, _parse_bin, None),
        read_setting(spark, _MOST_TASKS, parse_positive, None),
    )


def changed_target(spark: SparkSession, snapshot: Snapshot, retry: RetryPolicy) -> DeltaTarget:
    """A version of a table some of whose rows go, or become others.

    Raises:
        InvalidRequest: The table is append-only.
        UnsupportedFeature: It needs a writer that we are not.
    """
    ensure_writable(snapshot.config)
    ensure_removable(snapshot.config)
    return DeltaTarget(snapshot.store, snapshot.config, snapshot, retry, layout=session_layout(spark))


def _parse_bin(text: str) -> int:
    """Mebibytes, where no unit stands behind the number."""
    size = parse_size_bytes(f"{text}mb" if text.isdigit() else text)
    if size <= 0:
        raise ValueError("a size above 0 is expected")
    return size
