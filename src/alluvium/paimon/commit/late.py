"""Snapshots that come too late: their number is free again, for whoever had it has expired.

Between the look at the newest snapshot and the put of the next one a writer may stand still for long, be it that its
machine sleeps. Others commit meanwhile, and let snapshots expire: then nothing is in the way of the put, and what it
made is no part of the history.
"""

from __future__ import annotations

from alluvium.commit.loop import Entry
from alluvium.errors import CommitUnknown, NotFound
from alluvium.paimon.log.names import directory, is_there
from alluvium.paimon.log.travel import list_snapshots
from alluvium.storage.store import Store


def is_late(store: Store, branch: str, entry: Entry) -> bool:
    """Whether a snapshot that was put this moment stands before those that the table goes on from.

    Snapshots expire from the oldest on: as long as the one before it is there, its own number was never given. It is
    the newest, or it was there before those that follow.

    Raises:
        CommitUnknown: Nothing tells which of two snapshots was there first.
    """
    folder = directory(branch, "snapshot")
    if entry.version > 1 and is_there(store, f"{folder}/snapshot-{entry.version - 1}"):
        return False
    next_one = next((n for n in list_snapshots(store, branch) if n > entry.version), None)
    if next_one is None:
        return False
    try:
        own, other = store.head(entry.path), store.head(f"{folder}/snapshot-{next_one}")
    except NotFound:
        raise _unknown(store, entry, next_one, "one of them has expired, too") from None
    if own.modified_ms == other.modified_ms:
        raise _unknown(store, entry, next_one, "both are of the same moment")
    return own.modified_ms > other.modified_ms


def _unknown(store: Store, entry: Entry, next_one: int, reason: str) -> CommitUnknown:
    return CommitUnknown(
        f"nobody knows whether snapshot {next_one} goes on from snapshot {entry.version}, or was there before it: "
        f"the one before them has expired, and {reason}",
        url=store.url,
        version=entry.version,
        path=entry.path,
        hint="look at the table before writing again; let snapshots expire later",
    )
