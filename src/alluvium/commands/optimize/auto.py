"""Auto compaction: OPTIMIZE of what a commit has just written to, where small files have become too many."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from alluvium.commands.optimize.optimize import OptimizeRequest, optimize_table
from alluvium.commands.optimize.rewriting import Chosen
from alluvium.delta.upkeep.small_files import AutoCompaction, crowded_partitions, remember
from alluvium.delta.view.snapshot import Snapshot


def compact_written(
    spark: SparkSession, snapshot: Snapshot, written: pa.ChunkedArray, wanted: AutoCompaction, request: OptimizeRequest
) -> None:
    """Puts files together in the partitions that a commit wrote to; a clustered table is clustered.

    Args:
        spark: A classic session.
        snapshot: The newest version.
        written: Files that the commit added, as plans name them.
        wanted: When there are too many.
        request: Whose name and engine stand for the table and the writer.

    Raises:
        CommitConflict: Another writer was quicker.
    """
    found = crowded_partitions(snapshot, written, wanted)
    if found is None:
        return
    chosen = Chosen(found.files, found.shown)
    optimize_table(spark, snapshot, replace(request, sizes=wanted.sizes, chosen=chosen))
    remember(snapshot, found)
