"""Rows that go to a Paimon table and have been read from it: frames show the state that they were made on.

The reference plans such scans anew when they run; here what came since counts as a winner.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from pyspark.sql import DataFrame

from alluvium.commands.own_reads import own_reads
from alluvium.commands.repeating import OvertakenRead
from alluvium.commit.loop import refused
from alluvium.errors import Conflict, NotFound
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.commit.port import PaimonPort
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import ReadScope, Replace
from alluvium.spark.scan.connect_lane.marks import Mark
from alluvium.spark.scan.native_lane.describe import About
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.statements.table_reads import TableRead

_READ_AGAIN = (
    "read the table again (inside foreachBatch, not before it; a temporary view over the table keeps the snapshot that "
    "it was made with)"
)


def read_scope(df: DataFrame, snapshot: Snapshot, replaces: Replace | None) -> ReadScope:
    """What rows that are to be written have read of the table itself; a state that was asked for does not count.

    Rows that are added beside others, and merge with none, are right whatever else is added meanwhile.

    Args:
        df: The rows.
        snapshot: The state that they are written to.
        replaces: What they replace.

    Raises:
        OvertakenRead: They were read from an older state: what came since would be replaced, or merged away.
    """
    if replaces is None and not snapshot.schema.primary_keys:
        return ReadScope.nothing()
    own = OwnTable(snapshot.store.url)
    reads = _reads_by_server(df, own) if is_connect(df.sparkSession) else own_reads(df, own)
    ensure_current(reads, snapshot)
    return ReadScope.table() if reads else ReadScope.nothing()


def _reads_by_server(df: DataFrame, own: OwnTable) -> tuple[TableRead, ...]:
    """Over Connect: the scans tell by marks what they are; None: the table may be read, and it is not known how."""
    # Loaded by name: it needs packages that a classic session does without.
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect_reads")
    marks: tuple[Mark | None, ...] = connect.reads_of(df, own)
    return tuple(None if mark is None else mark.about for mark in marks if mark is None or not mark.about.is_pinned)


def ensure_current(reads: Iterable[TableRead], snapshot: Snapshot) -> None:
    """Raises where scans should have seen what was committed since the states that they show.

    Args:
        reads: The scans, without those of states that were asked for.
        snapshot: The state that is to be changed.

    Raises:
        OvertakenRead: They should have.
    """
    for base in _overtaken(reads, snapshot):
        port = PaimonPort(snapshot.store, snapshot.branch)
        # In the place of all that there is now, or above it: rows that a compaction has shown since are missed, too.
        draft = Draft(snapshot.schema, ENTRIES.empty_table(), Replaced(), reads=True)
        found = [c for winner in port.refresh(base)[1] for c in port.conflicts(draft, base, winner)]
        if found:
            error = refused(found, 1, snapshot.store.url)
            raise _again(error.message, found, snapshot)


def _overtaken(reads: Iterable[TableRead], snapshot: Snapshot) -> list[Snapshot]:
    """The older states that scans of the same branch show, each once."""
    now = PaimonSource(snapshot).identity
    found: dict[tuple[str, ...], Snapshot] = {}
    for read in reads:
        if not isinstance(read, (PaimonSource, About)):
            continue
        # Of a source: URL, version, branch, commit.
        version, branch, commit = read.identity[1:4]
        if branch == snapshot.branch and (version, commit) != (now[1], now[3]) and (version, commit) not in found:
            found[version, commit] = read.snapshot if isinstance(read, PaimonSource) else _loaded(version, snapshot)
    return list(found.values())


def _loaded(version: str, snapshot: Snapshot) -> Snapshot:
    """A state that Python workers read."""
    if not version:
        return snapshot.state(0)
    try:
        return load_snapshot(snapshot.store, At(int(version)), snapshot.branch, time_zone=snapshot.time_zone)
    except NotFound as error:
        message = f"snapshot {version}, which was read, can no longer be compared with this one: {error.message}"
        raise _again(message, [Conflict("base-expired", int(version), None, error.message)], snapshot) from None


def _again(message: str, conflicts: list[Conflict], snapshot: Snapshot) -> OvertakenRead:
    return OvertakenRead(
        message,
        conflicts=conflicts,
        code=conflicts[0].rule,
        url=snapshot.store.url,
        version=conflicts[0].version,
        hint=_READ_AGAIN,
    )
