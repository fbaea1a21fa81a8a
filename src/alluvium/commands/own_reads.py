"""Rows that are written to a table and have been read from it: then the write depends on what they saw."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import DataFrame

from alluvium.commit.loop import refused
from alluvium.delta.actions import Actions
from alluvium.delta.conflicts import Contest, conflicts_of_rows
from alluvium.delta.draft import Draft
from alluvium.delta.snapshot import Snapshot
from alluvium.delta.source import DeltaSource
from alluvium.delta.winners import has_successors, read_winners
from alluvium.expr.tree import Expression, Or
from alluvium.plan.changes import Operation, ReadScope, Replace
from alluvium.plan.ports import ScanSource
from alluvium.spark.scan.describe import filters_of_scans
from alluvium.spark.session import is_connect
from alluvium.spark.statement import reads_of


def read_scope(df: DataFrame, snapshot: Snapshot | None, replaces: Replace | None) -> ReadScope:
    """What rows that are to be written have read of the table itself; a version that was asked for does not count.

    As in the reference, where such a scan belongs to the transaction. There it is planned anew, on the newest version;
    here a frame shows the version that it was made on, so that what came since counts as a winner.

    Args:
        df: The rows.
        snapshot: The version that they are written to; None: there is no table yet.
        replaces: What they replace.

    Raises:
        CommitConflict: They were read from an older version, and what came since they should have seen, or would
            replace.
    """
    spark = df.sparkSession
    if snapshot is None or is_connect(spark):
        # The plan of a Connect session is known to its server alone.
        return ReadScope.nothing()
    found = reads_of(spark, df._jdf.queryExecution().analyzed(), snapshot.store.url)
    sources = [source for source in found if not (isinstance(source, DeltaSource) and source.is_pinned)]
    if not sources:
        return ReadScope.nothing()
    scope = _scope(df, sources)
    for read in _versions(sources):
        _ensure_current(read, snapshot, scope, replaces)
    return scope


def _scope(df: DataFrame, sources: list[ScanSource | None]) -> ReadScope:
    """The rows that scans ask for, where all of them tell."""
    filters = filters_of_scans(df)
    wanted: list[Expression] = []
    for source in sources:
        told = [] if source is None else [where for index, where in filters if index is source]
        if not told or any(where is None for where in told):
            return ReadScope.table()
        wanted += [where for where in told if where is not None]
    return ReadScope.rows(reduce(Or, wanted))


def _versions(sources: list[ScanSource | None]) -> Iterator[Snapshot]:
    yield from {s.snapshot.version: s.snapshot for s in sources if isinstance(s, DeltaSource)}.values()


def _ensure_current(read: Snapshot, snapshot: Snapshot, scope: ReadScope, replaces: Replace | None) -> None:
    """Raises where the rows should have seen what was committed since they were read, or would replace it unseen."""
    is_other = read.config.metadata.id != snapshot.config.metadata.id
    if is_other or read.version >= snapshot.version or not has_successors(read.store, read):
        return
    if replaces is not None:
        # Which partitions a dynamic overwrite replaces is not known yet; what it read of them counts.
        scope = scope if replaces.dynamic else ReadScope.rows(replaces.where)
    draft = Draft(Actions(), scope, Operation("WRITE"), read.version)
    for winner in read_winners(read.store, read.version + 1, snapshot.version):
        met = Contest(draft, read.config, read.files, winner, read.time_zone, admits_blind=replaces is None)
        if found := conflicts_of_rows(met):
            raise refused(found, 1, snapshot.store.url)
