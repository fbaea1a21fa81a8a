"""A CHECK constraint on a table that has rows: they are checked first."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.delta.alter import apply_change
from alluvium.delta.config import TableConfig
from alluvium.delta.evolve import Change, add_constraint
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.referenced import columns_named
from alluvium.delta.snapshot import Snapshot
from alluvium.delta.source import DeltaSource
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.conditions import ensure_condition, ensure_holds
from alluvium.spark.scan.native import read_native
from alluvium.storage.locating import locating


def add_checked_constraint(
    spark: SparkSession,
    snapshot: Snapshot,
    name: str,
    condition: str,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Checks the rows of a version by Spark and adds the constraint; rows that others add meanwhile are a conflict.

    Raises:
        InvalidRequest: `"constraint-violated"`, `"invalid-constraint"`, `"constraint-exists"`.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer changed the table meanwhile.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        rows = read_native(spark, DeltaSource(snapshot))
        ensure_condition(rows, name, condition)
        # Whether it may be added at all is known before a pass over the data.
        add_constraint(snapshot.config, name, condition)
        ensure_holds(rows, name, condition, columns_named(condition, snapshot.config.schema))

    def change(config: TableConfig) -> Change:
        return add_constraint(config, name, condition)

    return apply_change(snapshot, change, engine, dry_run, retry)
