"""Rows that go to a table and have been read from it: then what becomes of it depends on what they saw."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import reduce

from pyspark.sql import DataFrame

from alluvium.commands.large_log import LargeSource
from alluvium.commands.repeating import OvertakenRead
from alluvium.commit.loop import refused
from alluvium.delta.commit.conflicts import Contest, conflicts_of_rows
from alluvium.delta.commit.draft import Draft
from alluvium.delta.commit.winners import has_successors, read_winners
from alluvium.delta.terms.actions import Actions
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import CommitConflict, Conflict, NotFound
from alluvium.expr.tree import Expression, Or
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import Operation, ReadScope, Replace
from alluvium.spark.scan.connect_lane.marks import Mark
from alluvium.spark.scan.native_lane.describe import About, filters_of_scans
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.statements.table_reads import TableRead, reads_of

#: Where frames of older versions come from, beside those that somebody has kept.
_READ_AGAIN = (
    "read the table again (inside foreachBatch, not before it; a temporary view over the table keeps the version that "
    "its frame was made with), or, in a classic session, by a frame that follows it: "
    "alluvium.read(spark, url, follow=True)"
)


def read_scope(df: DataFrame, snapshot: Snapshot | None, replaces: Replace | None) -> ReadScope:
    """What rows that are to be written have read of the table itself; a version that was asked for does not count.

    As in the reference, where such a scan belongs to the transaction, and is planned anew, on the newest version. So
    are frames here that follow their table. Others show the version that they were made on: what came since counts as
    a winner.

    Args:
        df: The rows.
        snapshot: The version that they are written to; None: there is no table yet.
        replaces: What they replace.

    Raises:
        OvertakenRead: They were read from an older version, and what came since they should have seen, or would
            replace.
    """
    if snapshot is None:
        return ReadScope.nothing()
    reads, read = reads_by_server(df, snapshot) if is_connect(df.sparkSession) else _reads_by_plan(df, snapshot)
    # Which partitions a dynamic overwrite replaces is not known yet; what it read of them counts.
    seen = read if replaces is None or replaces.dynamic else ReadScope.rows(replaces.where).beside(read)
    ensure_current(reads, snapshot, seen, admits_blind=replaces is None)
    return read


def _reads_by_plan(df: DataFrame, snapshot: Snapshot) -> tuple[tuple[TableRead, ...], ReadScope]:
    reads = own_reads(df, own_table(snapshot))
    return reads, scope_of(df, reads)


def reads_by_server(df: DataFrame, snapshot: Snapshot) -> tuple[tuple[TableRead, ...], ReadScope]:
    """Over Connect, what rows have read of a table, and which of its rows: scans tell by marks what they are (see
    `connect_lane.marks`).
    """
    # Loaded by name: it needs packages that a classic session does without.
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect_reads")
    found: tuple[Mark | None, ...] = connect.reads_of(df, own_table(snapshot))
    marks = tuple(mark for mark in found if mark is None or not mark.about.is_pinned)
    if not marks:
        return (), ReadScope.nothing()
    reads = [None if mark is None else _source(mark.about, snapshot) for mark in marks]
    wanted = [_wanted(mark, read) for mark, read in zip(marks, reads, strict=True)]
    known = [where for where in wanted if where is not None]
    return tuple(reads), ReadScope.rows(reduce(Or, known)) if len(known) == len(wanted) else ReadScope.table()


def _source(about: About, snapshot: Snapshot) -> DeltaSource | About:
    """The version that was read; one of another table that was at this place is none of these."""
    version, table_id = about.identity[1:3]
    if table_id != snapshot.config.metadata.id or int(version) > snapshot.version:
        return about
    return DeltaSource(snapshot if int(version) == snapshot.version else _loaded(snapshot, int(version)))


def _wanted(mark: Mark | None, read: TableRead) -> Expression | None:
    """The rows that a scan asks for; None: all, as far as is known."""
    if mark is None or not isinstance(read, DeltaSource):
        return None
    return mark.wanted(read.snapshot.config.schema)


def own_table(snapshot: Snapshot) -> OwnTable:
    """A table as scans of it are known by."""
    return OwnTable(snapshot.store.url, snapshot.config.metadata.id)


def own_reads(df: DataFrame, own: OwnTable) -> tuple[TableRead, ...]:
    """The scans below some rows that read a table, and show what it was like when they were made."""
    return unpinned(reads_of(df, own))


def unpinned(reads: Iterable[TableRead]) -> tuple[TableRead, ...]:
    """Without those of versions that were asked for."""
    kinds = (DeltaSource, LargeSource, PaimonSource, About)
    return tuple(r for r in reads if not (isinstance(r, kinds) and r.is_pinned))


def scope_of(df: DataFrame, reads: tuple[TableRead, ...]) -> ReadScope:
    """The rows that scans of the table ask for, where all of them tell.

    Args:
        df: The rows.
        reads: The scans below them, as of `own_reads`.
    """
    if not reads:
        return ReadScope.nothing()
    filters = filters_of_scans(df)
    wanted: list[Expression] = []
    for read in reads:
        told = [where for source, where in filters if source is read]
        # Fewer than there are: of some it is not known, since they are in Spark's cache.
        if len(told) < sum(other is read for other in reads) or any(where is None for where in told):
            return ReadScope.table()
        wanted += [where for where in told if where is not None]
    return ReadScope.rows(reduce(Or, wanted))


def ensure_current(reads: Iterable[TableRead], snapshot: Snapshot, scope: ReadScope, *, admits_blind: bool) -> None:
    """Raises where scans should have seen what was committed since the versions that they show.

    Args:
        reads: The scans.
        snapshot: The version that is to be changed.
        scope: The rows that they ask for, and others that may not have changed.
        admits_blind: Whether a blind append may be ordered after what is to be done, where the table's isolation allows
            it. It may not where its rows are met in the table.

    Raises:
        OvertakenRead: They should have.
    """
    for read in _overtaken(reads, snapshot):
        try:
            _ensure_unchanged(read, snapshot, scope, admits_blind)
        except CommitConflict as error:
            raise OvertakenRead(
                error.message,
                conflicts=error.conflicts,
                code=error.code,
                url=snapshot.store.url,
                version=error.version,
                hint=_READ_AGAIN,
            ) from None


def _overtaken(reads: Iterable[TableRead], snapshot: Snapshot) -> Iterator[Snapshot]:
    """The older versions that scans show, each once."""
    found: dict[int, TableRead] = {}
    for read in reads:
        if isinstance(read, (DeltaSource, LargeSource, About)):
            version, table_id = read.identity[1:3]
            if table_id == snapshot.config.metadata.id and int(version) < snapshot.version:
                found[int(version)] = read
    for number, read in found.items():
        yield read.snapshot if isinstance(read, DeltaSource) else _loaded(snapshot, number)


def _loaded(snapshot: Snapshot, version: int) -> Snapshot:
    """A version that Spark or its workers read, of which not all files are known here."""
    try:
        return load_snapshot(snapshot.store, version, time_zone=snapshot.time_zone)
    except NotFound as error:
        message = f"version {version}, which was read, can no longer be compared with this one: {error.message}"
        raise OvertakenRead(
            message,
            conflicts=[Conflict("base-expired", version, None, error.message)],
            code="base-expired",
            url=snapshot.store.url,
            version=version,
            hint=_READ_AGAIN,
        ) from None


def _ensure_unchanged(read: Snapshot, snapshot: Snapshot, scope: ReadScope, admits_blind: bool) -> None:
    if not has_successors(read.store, read):
        return
    draft = Draft(Actions(), scope, Operation("WRITE"), read.version)
    for winner in read_winners(read.store, read.version + 1, snapshot.version):
        met = Contest(draft, read.config, read.pick_files, winner, read.time_zone, admits_blind=admits_blind)
        if found := conflicts_of_rows(met):
            raise refused(found, 1, snapshot.store.url)
