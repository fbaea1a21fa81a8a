"""Whether a table goes on from an entry that was put: its number may have been another's, whose entry has expired.

Between the look at the newest entry and the put of the next one a writer may stand still for long, be it that its
machine sleeps. Others commit meanwhile, and clean their log: then nothing is in the way of the put, and what it made is
no part of the history.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from alluvium.commit.landed import landed
from alluvium.commit.loop import Entry
from alluvium.errors import CommitUnknown, StorageError
from alluvium.storage.store import PutOutcome, Store

log = logging.getLogger("alluvium")


class Standing:
    """Puts entries of a log, and takes away what came too late.

    Args:
        store: The table's objects.
        is_late: Whether an entry that was put this moment stands before those that the table goes on from; a format's
            own question, which raises `CommitUnknown` where nothing tells.
    """

    def __init__(self, store: Store, is_late: Callable[[Entry], bool]) -> None:
        self._store = store
        self._is_late = is_late
        self._late: Entry | None = None

    def outcome(self, put: PutOutcome, entry: Entry) -> PutOutcome:
        """What became of an entry, by what its put said."""
        if put is not PutOutcome.DONE:
            return put
        return {True: PutOutcome.DONE, False: PutOutcome.EXISTS, None: PutOutcome.UNKNOWN}[self._follows(entry)]

    def landed(self, entry: Entry) -> bool | None:
        """As `alluvium.commit.landed.landed`, and the table goes on from it."""
        if self._late is entry:
            return False
        found = landed(self._store, entry.path, entry.data)
        return self._follows(entry) if found else found

    def _follows(self, entry: Entry) -> bool | None:
        """Whether the table goes on from what was put, which else is taken away again; None: the store does not say."""
        try:
            if not self._is_late(entry):
                return True
            # Another's may stand there by now; where that cannot be read, ours may.
            found = landed(self._store, entry.path, entry.data)
            if found is None:
                return None
            if found:
                self._store.delete(entry.path)
        except StorageError as error:
            log.warning("whether version %d stands is asked again: %s", entry.version, error)
            return None
        self._late = entry
        return False


def unknown_order(store: Store, entry: Entry, other: int, reason: str) -> CommitUnknown:
    """The error where nothing tells which of two entries was there first.

    Args:
        other: Version of the other.
        reason: Why it cannot be told.
    """
    return CommitUnknown(
        f"nobody knows whether version {other} goes on from version {entry.version}, or was there before it: {reason}",
        url=store.url,
        version=entry.version,
        path=entry.path,
        hint="look at the table before writing again; keep its log for longer",
    )
