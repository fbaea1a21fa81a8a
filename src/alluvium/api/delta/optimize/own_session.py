"""OPTIMIZE for callers without a session: Spark is started for it, as its own configuration says, and stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from alluvium.api.delta.delta_table import DeltaTable
from alluvium.plan.changes import Preview


def optimize_at(
    url: str,
    where: str | None = None,
    zorder_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    full: bool = False,
    purge: bool = False,
    options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Mapping[str, object] | Preview:
    """Puts small files of each partition of a table together, or writes all of them in another order.

    Args:
        url: The table.
        where: A condition over partition columns: which partitions.
        zorder_by: Columns to order rows by; none: files are only put together.
        sort_by: Columns in whose order rows are to stand, in the place of the former.
        full: Of a clustered table, also what is clustered by other columns.
        purge: Only write files anew that hold what the table does not show.
        options: Hadoop's settings for the table's file system (`fs.`).
        dry_run: Only tell which files would be written anew.

    Returns:
        The metrics that `DeltaTable.optimize` answers.

    Raises:
        InvalidRequest: The condition or the columns do not fit.
        UnsupportedFeature: The table cannot be optimised here.
        CommitConflict: Another writer changed the table's description meanwhile.
    """
    active = SparkSession.getActiveSession()
    spark = active or _start()
    try:
        builder = DeltaTable.forPath(spark, url, dict(options or {})).optimize()
        if where is not None:
            builder = builder.where(where)
        if purge:
            done = builder.executePurge(dry_run=dry_run)
        elif sort_by:
            done = builder.executeSortBy(*sort_by, dry_run=dry_run)
        elif zorder_by:
            done = builder.executeZOrderBy(*zorder_by, dry_run=dry_run)
        else:
            done = builder.executeCompaction(dry_run=dry_run, full=full)
        if isinstance(done, Preview):
            return done
        (row,) = done.collect()
        found: dict[str, object] = row["metrics"].asDict(recursive=True)
        return found
    finally:
        if active is None:
            spark.stop()


def _start() -> SparkSession:
    """A quiet session; where it runs, and all else, is as Spark's own files say."""
    quiet = SparkSession.Builder().appName("alluvium optimize").config("spark.ui.enabled", "false")
    spark = quiet.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
