"""SYNC IDENTITY: Spark looks for the furthest number of a column, behind which the table then goes on."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.sync_identity import identity_at, sync_identity
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.edit import Path
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.storage.locating import locating


def sync_identity_column(
    spark: SparkSession,
    snapshot: Snapshot,
    path: Path,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Moves the mark of an identity column to what a version holds; rows that others add meanwhile are a conflict.

    Raises:
        InvalidRequest: `"unknown-column"`, `"not-an-identity-column"`, `"numbers-exhausted"`.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer changed the table meanwhile.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        identity = identity_at(snapshot.config, path)
    furthest = sf.max if identity.step > 0 else sf.min
    rows = read_native(spark, DeltaSource(snapshot, is_exact=True)).agg(furthest(sf.col(quote(identity.column))))
    found = rows.collect()[0][0]
    return apply_change(snapshot, lambda config: sync_identity(config, path, found), engine, dry_run, retry)
