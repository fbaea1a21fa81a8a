"""TRUNCATE: all files of a table go, whatever is in them; nothing is read, and no row counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from alluvium.commands.rows.repeat import until_committed
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Committed,
    EditFigures,
    EditRows,
    NewFiles,
    Operation,
    Preview,
    ReadScope,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating


def truncate_table(
    spark: SparkSession, snapshot: Snapshot, engine: str, retry: RetryPolicy = DEFAULT_RETRY
) -> Committed:
    """Removes all rows of a table, in one commit; its older versions stay. An empty table stays as it is.

    Raises:
        InvalidRequest: The table is append-only.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what goes, and the verb could not be repeated.
    """
    done = until_committed(spark, snapshot, retry, partial(_attempt, engine))
    assert isinstance(done, Committed)
    return done


def _attempt(engine: str, snapshot: Snapshot, retry: RetryPolicy) -> Committed | Preview:
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        ensure_removable(snapshot.config)
        candidates = candidates_of(snapshot, snapshot.files)
        count = candidates.files.num_rows
        if not count:
            return Committed.nothing(snapshot.version)
        touched = pa.table([candidates.paths, pa.nulls(count, pa.binary())], schema=TOUCHED_FILES)
        operation = Operation("TRUNCATE", {}, {}, engine)
        target = DeltaTarget(snapshot.store, snapshot.config, snapshot, retry)
        return target.commit(EditRows(NewFiles.none(), touched, operation, ReadScope.table(), describe=_metrics))


def _metrics(figures: EditFigures) -> Mapping[str, str]:
    return {"numRemovedFiles": str(figures.files_removed)}
