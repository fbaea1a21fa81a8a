"""Snapshots that come too late: their number is free again, for whoever had it has expired or was taken back.

Between the look at the newest snapshot and the put of the next one a writer may stand still for long, be it that its
machine sleeps. Others commit meanwhile, let snapshots expire or go back to an earlier one: then nothing is in the way
of the put, and what it made is no part of the history, or goes on from what is none any more.
"""

from __future__ import annotations

from alluvium.commit.loop import Entry
from alluvium.commit.standing import unknown_order
from alluvium.errors import CommitUnknown, CorruptTable, NotFound
from alluvium.paimon.log.names import directory, is_there, renamed_mark
from alluvium.paimon.log.schema_log import MAIN_BRANCH, load_schema
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots
from alluvium.paimon.terms.spec import SnapshotDocument, parse_snapshot
from alluvium.storage.store import Store


def is_late(store: Store, branch: str, entry: Entry, base: Snapshot) -> bool:
    """Whether a snapshot that was put this moment stands before those that the table goes on from, or on another base.

    Snapshots expire from the oldest on: as long as the one before it is there, its own number was never given. It is
    the newest, or it was there before those that follow. They are taken back from the newest on: where there are older
    ones and not the one before it, or that is another, what it was made on is no part of the history. Schemas never
    expire: where that of the base is missing, or is another, the table was dropped, or made anew.

    Args:
        store: The table's objects.
        branch: Whose snapshots.
        entry: What was put.
        base: The state before it, as it was read.

    Raises:
        CommitUnknown: Nothing tells which of two snapshots was there first, or under which name a branch goes on.
    """
    before = _document(store, branch, entry.version - 1) if base.document is not None else None
    # The schemas of a branch go before its snapshots.
    if branch != MAIN_BRANCH and not _is_same_table(store, base):
        _ensure_not_renamed(store, branch, entry)
        return True
    if before is not None and before == base.document:
        return False
    if not _is_same_table(store, base):
        return True
    numbers = list_snapshots(store, branch)
    next_one = next((n for n in numbers if n > entry.version), None)
    if before is not None or any(n < entry.version for n in numbers):
        if next_one is None:
            return True
        raise unknown_order(store, entry, next_one, "the one before them was taken back")
    return next_one is not None and _came_behind(store, branch, entry, next_one)


def _is_same_table(store: Store, base: Snapshot) -> bool:
    """By the schema of the base, whose options may be those of a call."""
    was = base.schema
    try:
        now = load_schema(store, was.id, base.branch)
    except (NotFound, CorruptTable):
        return False
    return (now.time_millis, now.fields, now.partition_keys, now.primary_keys) == (
        was.time_millis, was.fields, was.partition_keys, was.primary_keys)  # fmt: skip


def _ensure_not_renamed(store: Store, branch: str, entry: Entry) -> None:
    """What was put into the folder of a branch may be under the branch's new name: nobody takes it away then.

    Raises:
        CommitUnknown: It may be.
    """
    if is_there(store, renamed_mark(branch)) or not is_there(store, entry.path):
        raise CommitUnknown(
            f"the branch {branch!r} was deleted or renamed while a snapshot was committed to it",
            url=store.url,
            version=entry.version,
            path=entry.path,
            hint="look at the branches before writing again: the rows are there under its new name, or nowhere",
        )


def _came_behind(store: Store, branch: str, entry: Entry, next_one: int) -> bool:
    """By the store's clock."""
    try:
        own, other = (store.head(path) for path in (entry.path, f"{directory(branch, 'snapshot')}/snapshot-{next_one}"))
    except NotFound:
        raise unknown_order(store, entry, next_one, "one of them has expired, as the one before them") from None
    if own.modified_ms == other.modified_ms:
        raise unknown_order(store, entry, next_one, "the one before them has expired, and both are of the same moment")
    return own.modified_ms > other.modified_ms


def _document(store: Store, branch: str, number: int) -> SnapshotDocument | None:
    path = f"{directory(branch, 'snapshot')}/snapshot-{number}"
    try:
        return parse_snapshot(store.get(path), path)
    except NotFound:
        return None
