"""May a draft still be committed after a winner? One check a rule, each pure; conflicts are values.

Specification: spec/paimon-format.md (e), "Conflicts". Appends read nothing and take nothing out, so only their own
repetition stands against them. An overwrite has seen what it takes out: what others add to it meanwhile was not meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import Conflict
from alluvium.paimon.commit.draft import BATCH_IDENTIFIER, READS, Draft
from alluvium.paimon.terms.spec import SCANNED_ENTRIES, SnapshotDocument
from alluvium.paimon.view.selection import hidden

#: Paths shown in a conflict.
_SHOWN = 5
_LATER = "it has given the same numbers to rows of the same buckets, or higher ones"


@dataclass(frozen=True, slots=True)
class Winner:
    """A snapshot that was published while a draft was in the making.

    Attributes:
        document: The snapshot.
        entries: What it added and deleted (`SCANNED_ENTRIES`); for the checks only where the draft takes files out.
        index_before: The index manifest of the snapshot before it.
        masked: The data files of which it deleted rows by vectors, as of `changed_masks`; for the checks alone, and
            where it matters to the draft.
    """

    document: SnapshotDocument
    entries: pa.Table
    index_before: str | None = None
    masked: pa.Table = field(default_factory=SCANNED_ENTRIES.empty_table)

    def conflict(self, rule: str, message: str, entries: pa.Table | None = None) -> Conflict:
        """A conflict that names the winner."""
        document = self.document
        shown = () if entries is None else _shown(entries)
        return Conflict(
            rule, document.id, document.commit_kind, message, shown, document.commit_user, document.time_millis
        )


def _shown(entries: pa.Table) -> tuple[str, ...]:
    return tuple(entries["file_name"].slice(0, _SHOWN).to_pylist())


@dataclass(frozen=True, slots=True)
class Unseen:
    """Commits since the base that nobody can look at any more.

    Attributes:
        version: The snapshot of the last of them.
        reason: Why.
        entries: The live files (`SCANNED_ENTRIES`) of the newest state, which they led to; for the checks alone, and
            where it matters to the draft.
    """

    version: int
    reason: str
    entries: pa.Table = field(default_factory=SCANNED_ENTRIES.empty_table)


def unseen_commit(draft: Draft, unseen: Unseen) -> tuple[Conflict, ...]:
    """Appends read nothing; whatever depends on what others did since the base cannot be committed."""
    if draft.replaced is None and not draft.is_named and not draft.reads:
        if not (later := _numbered_later(draft, unseen.entries)).num_rows:
            return ()
        message = f"{_LATER}, and {unseen.reason}"
        return (Conflict("concurrent-numbers", unseen.version, None, message, _shown(later)),)
    return (
        Conflict("history-lost", unseen.version, None, f"what was committed since cannot be seen: {unseen.reason}"),
    )


def concurrent_transaction(draft: Draft, winner: Winner) -> Conflict | None:
    """The same commit of the same user is there: perhaps it is our own earlier attempt."""
    document = winner.document
    if not draft.is_named or document.commit_user != draft.user or document.commit_identifier < draft.identifier:
        return None
    message = f"it is commit {document.commit_identifier} of the user {draft.user!r}"
    return winner.conflict("concurrent-transaction", message)


def concurrent_append(draft: Draft, winner: Winner) -> Conflict | None:
    """The winner added rows to what we take out, or read. A compaction only rearranges rows."""
    if (draft.replaced is None and not draft.reads) or winner.document.commit_kind == "COMPACT":
        return None
    added = winner.entries.filter(pc.equal(winner.entries["kind"], 0))
    if not added.num_rows:
        return None
    message = f"it added {added.num_rows} files to what this operation {'reads' if draft.reads else 'overwrites'}"
    return winner.conflict("concurrent-append", message, added)


def concurrent_show(draft: Draft, winner: Winner) -> Conflict | None:
    """The winner, a compaction, has shown rows to readers, and ours replace all that there are: they were made without
    them.
    """
    if draft.replaced is None or not draft.reads or draft.compacts or winner.document.commit_kind != "COMPACT":
        return None
    if not draft.schema.primary_keys:
        return None
    shown = hidden(draft.schema, winner.entries.filter(pc.equal(winner.entries["kind"], 1)))
    if not shown.num_rows:
        return None
    message = f"it shows rows of {shown.num_rows} files that were hidden from what we read"
    return winner.conflict("concurrent-append", message, shown)


def concurrent_delete_delete(draft: Draft, winner: Winner) -> Conflict | None:
    """Both take out the same file: its rows would be replaced twice; or rows that were read are gone."""
    if draft.replaced is None and not draft.reads:
        return None
    if winner.document.commit_kind == "COMPACT" and not draft.compacts:
        return None
    removed = winner.entries.filter(pc.equal(winner.entries["kind"], 1))
    if not removed.num_rows:
        return None
    message = f"it removed {removed.num_rows} files that we {'read' if draft.reads else 'remove'}"
    return winner.conflict("concurrent-delete-delete", message, removed)


def concurrent_masks(draft: Draft, winner: Winner) -> Conflict | None:
    """The winner deleted rows by vectors alone, of what we take out, or read: no file of it says so, and the rows would
    come back in ours.

    Vectors of a compaction tell which rows of a key are old, and hide none that was there.
    """
    if not depends_on_masks(draft) or winner.document.commit_kind == "COMPACT" or not winner.masked.num_rows:
        return None
    message = f"it deleted rows of {winner.masked.num_rows} files that we {'read' if draft.reads else 'replace'}"
    return winner.conflict("concurrent-delete-delete", message, winner.masked)


def depends_on_masks(draft: Draft) -> bool:
    """Whether rows that others delete make a difference.

    Not to one that deletes rows itself, and adds none: whoever came first, all of them are gone. That nobody else has
    touched the same files is looked at when it is assembled.
    """
    if draft.edits is not None and not draft.compacts and not draft.added.num_rows:
        return False
    return draft.reads or draft.replaced is not None


def concurrent_numbers(draft: Draft, winner: Winner) -> Conflict | None:
    """The winner has read the rows of keys without ours, or put its own in their place, and its numbers are as high:
    ours would be the older ones of their keys, though they come later.

    Two that have read nothing may come in either order: neither knows of the other.
    """
    if not numbers_blindly(draft) or not _may_have_read(winner.document):
        return None
    later = _numbered_later(draft, winner.entries)
    return winner.conflict("concurrent-numbers", _LATER, later) if later.num_rows else None


def numbers_blindly(draft: Draft) -> bool:
    """Whether it adds rows of keys that have read nothing; others are told of whatever was added."""
    return bool(draft.schema.primary_keys) and draft.replaced is None and not draft.reads and draft.added.num_rows > 0


def _may_have_read(document: SnapshotDocument) -> bool:
    """Whether the rows of a commit may depend on what the table held: our own say so. Of others' those of a batch may;
    streams read nothing of what they write to.
    """
    if document.commit_kind != "APPEND":
        return document.commit_kind == "OVERWRITE"
    said = (document.properties or {}).get(READS)
    return document.commit_identifier == BATCH_IDENTIFIER if said is None else said != "false"


def _numbered_later(draft: Draft, entries: pa.Table) -> pa.Table:
    """Of some files those added to the same buckets whose numbers are not below all of the draft's."""
    keys = ["partition", "bucket"]
    if not numbers_blindly(draft):
        return entries.slice(0, 0)
    first = draft.added.group_by(keys).aggregate([("min_sequence_number", "min")])
    added = entries.filter(pc.equal(entries["kind"], 0)).select([*keys, "file_name", "max_sequence_number"])
    met = added.join(first, keys, join_type="inner")
    return met.filter(pc.greater_equal(met["max_sequence_number"], met["min_sequence_number_min"]))


CHECKS: tuple[Callable[[Draft, Winner], Conflict | None], ...] = (
    concurrent_append,
    concurrent_show,
    concurrent_delete_delete,
    concurrent_masks,
    concurrent_transaction,
    concurrent_numbers,
)


def conflicts(draft: Draft, winner: Winner) -> tuple[Conflict, ...]:
    """Every rule that the winner broke for the draft, in the order of CHECKS."""
    return tuple(found for check in CHECKS if (found := check(draft, winner)) is not None)
