"""May a draft still be committed after a winner? One check a rule, each pure; conflicts are values.

Specification: "Creation of New Log Entries", "Domain Metadata"; where the text is silent, the reference
implementation's rules for the isolation level Serializable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.columns.identity_columns import differ_only_in_marks
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import PickFiles
from alluvium.delta.terms.properties import parse_properties
from alluvium.errors import Conflict
from alluvium.expr.literals import format_sql
from alluvium.expr.skipping.prune import prune

#: Paths shown in a conflict.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit that was published while a draft was in the making."""

    version: int
    actions: Actions
    timestamp_ms: int | None = None
    operation: str | None = None
    engine: str | None = None
    is_blind_append: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """A draft, the base that it was assembled on, and one winner.

    Attributes:
        draft: What is to be committed.
        config: The table as the draft saw it.
        pick_files: What a function picks out of its live files then (`Snapshot.pick_files`).
        winner: The commit that was first.
        time_zone: In which partition values without a zone are read.
        admits_blind: Whether a blind append may be ordered after the draft, where the table's isolation allows it.
    """

    draft: Draft
    config: TableConfig
    pick_files: PickFiles
    winner: Winner
    time_zone: str = "UTC"
    admits_blind: bool = True

    def conflict(self, rule: str, message: str, paths: pa.ChunkedArray | None = None) -> Conflict:
        shown = tuple(paths.slice(0, _SHOWN).to_pylist()) if paths is not None else ()
        winner = self.winner
        return Conflict(rule, winner.version, winner.operation, message, shown, winner.engine, winner.timestamp_ms)

    def touched(self, files: pa.Table) -> pa.Table:
        """Those of the files that may hold rows which the draft has read."""
        if self.draft.read.where is None:
            return files
        config = self.config
        statistics = AddStatistics(
            files, config.schema, config.partition_columns, config.physical_paths, self.time_zone
        )
        return files.filter(prune(self.draft.read.where, statistics, self.time_zone))

    def scope(self) -> str:
        where = self.draft.read.where
        return "the table" if where is None else f"rows where {format_sql(where)}"


def concurrent_commit(contest: Contest) -> Conflict | None:
    """Anything that others do may forbid what we do."""
    return contest.conflict("concurrent-commit", "nobody may come between") if contest.draft.is_alone else None


def protocol_changed(contest: Contest) -> Conflict | None:
    """What we assembled obeys the old protocol, perhaps not the new one."""
    if contest.winner.actions.protocol is None:
        return None
    return contest.conflict("protocol-changed", "it changed the table's protocol, or created the table")


def metadata_changed(contest: Contest) -> Conflict | None:
    """ "Any column that exists in a data file present in the table MUST also be present in the metadata": our files
    were written under the old metadata.

    A winner that made identity values, and did no more than move the mark, bothers only those who move it too: they
    have made the same values. For others the metadata stands as the winner left it.
    """
    theirs, ours = contest.winner.actions.metadata, contest.draft.actions.metadata
    if theirs is None or (ours is None and differ_only_in_marks(contest.config.metadata, theirs)):
        return None
    return contest.conflict("metadata-changed", "it changed the table's schema, partitioning or properties")


def concurrent_append(contest: Contest) -> Conflict | None:
    """The winner added rows that we would have read."""
    if contest.draft.read.is_nothing:
        return None
    isolation = parse_properties(contest.config.metadata.configuration).isolation_level
    admits_blind = contest.admits_blind and contest.draft.actions.metadata is None
    if isolation == "WriteSerializable" and contest.winner.is_blind_append and admits_blind:
        # The append may be ordered after us, for it read nothing. But not where we change what the table says of
        # itself: its rows were checked, and its files written, by the description that was there before.
        return None
    added = contest.winner.actions.added
    added = contest.touched(added.filter(added.column("dataChange")))
    if added.num_rows == 0:
        return None
    message = f"it added {added.num_rows} files to {contest.scope()}, which this operation has read"
    return contest.conflict("concurrent-append", message, added.column("path"))


def concurrent_delete_read(contest: Contest) -> Conflict | None:
    """The winner removed rows that we have read."""
    removed = contest.winner.actions.removed
    if contest.draft.read.is_nothing or removed.num_rows == 0:
        return None
    removed = removed.filter(removed.column("dataChange"))
    theirs = _files(removed)
    read = contest.touched(contest.pick_files(lambda files: files.filter(pc.is_in(_files(files), value_set=theirs))))
    if read.num_rows == 0:
        return None
    message = f"it removed {read.num_rows} files of {contest.scope()}, which this operation has read"
    return contest.conflict("concurrent-delete-read", message, read.column("path"))


def concurrent_delete_delete(contest: Contest) -> Conflict | None:
    """The winner removed a file that we remove, whose rows would be replaced twice; or one that we commit again (with
    row ids, say), whose rows would come back beside those that took their place. Whether it changed data is no matter.
    """
    actions, theirs = contest.draft.actions, contest.winner.actions.removed
    if theirs.num_rows == 0 or not (actions.removed.num_rows or actions.added.num_rows):
        return None
    ours = pa.concat_arrays([side.column("path").combine_chunks() for side in (actions.removed, actions.added)])
    paths = pc.unique(ours.filter(pc.is_in(canonical_paths(ours), value_set=_files(theirs))))
    if len(paths) == 0:
        return None
    message = f"it removed {len(paths)} files that we remove, or commit again"
    return contest.conflict("concurrent-delete-delete", message, pa.chunked_array([paths]))


def concurrent_transaction(contest: Contest) -> Conflict | None:
    """The winner moved a transaction identifier that we move: perhaps it is our own earlier attempt."""
    ours, theirs = ({t.app_id for t in side.actions.txns} for side in (contest.draft, contest.winner))
    both = sorted(ours & theirs)
    if not both:
        return None
    return contest.conflict("concurrent-transaction", f"it committed a transaction of the application {both[0]!r}")


def concurrent_domain(contest: Contest) -> Conflict | None:
    """ "Two overlapping transactions conflict if they both contain a domain metadata action for the same metadata
    domain."
    """
    theirs = {d.domain for d in contest.winner.actions.domains}
    both = sorted(theirs & {d.domain for d in contest.draft.actions.domains})
    if not both:
        return None
    return contest.conflict("concurrent-domain", f"it changed the metadata domain {both[0]!r}")


def _files(actions: pa.Table) -> pa.Array:
    """Which files some actions are about, however each writer spells their paths."""
    return canonical_paths(actions.column("path").combine_chunks())


CHECKS: tuple[Callable[[Contest], Conflict | None], ...] = (
    protocol_changed,
    metadata_changed,
    concurrent_append,
    concurrent_delete_read,
    concurrent_delete_delete,
    concurrent_transaction,
    concurrent_domain,
    concurrent_commit,
)


def conflicts(contest: Contest) -> tuple[Conflict, ...]:
    """Every rule that the winner broke for the draft, in the order of CHECKS."""
    return tuple(found for check in CHECKS if (found := check(contest)) is not None)


def conflicts_of_rows(contest: Contest) -> tuple[Conflict, ...]:
    """Of these, the rules about rows that the draft has read."""
    return tuple(
        found for check in (concurrent_append, concurrent_delete_read) if (found := check(contest)) is not None
    )
