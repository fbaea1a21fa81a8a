"""Commits that come too late: their number is free again, for whoever had it was cleaned from the log.

A log keeps its commits for days, so that only a writer that stood still can come too late. How long a commit took, from
the look at the log to the answer of the put, is measured by two clocks: one does not go on while a machine sleeps, the
other may be set. Only commits that took long ask the store.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from alluvium.commit.loop import Entry
from alluvium.commit.standing import unknown_order
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.errors import NotFound
from alluvium.storage.store import Store

#: Nobody gives the next number away, checkpoints a later one and cleans the log up to it, within this time (seconds).
QUICK_S = 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment, by the clock of the machine's run and by that of the day (seconds)."""

    running_s: float
    of_day_s: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.monotonic(), time.time())

    def is_long_ago(self) -> bool:
        """Whether either clock went on for longer than a quick commit takes, or was set back."""
        now = Moment.now()
        return not (now.running_s - self.running_s < QUICK_S and 0 <= now.of_day_s - self.of_day_s < QUICK_S)


def is_late(store: Store, entry: Entry) -> bool:
    """Whether a commit that was put this moment stands before those that the table goes on from.

    A log is cleaned from the oldest on: as long as the commit before it is there, its own number was never given. It
    is the newest, or it was there before those that follow, and before a checkpoint of itself.

    Raises:
        CommitUnknown: Nothing tells which of two commits was there first.
    """
    version = entry.version
    if version > 0 and _is_there(store, commit_path(version - 1)):
        return False
    listing = list_log(store, version)
    own = listing.commits.get(version)
    times = [(info.modified_ms, n) for n, info in listing.commits.items() if n > version]
    times += [(info.modified_ms, n) for n, parts in listing.checkpoints.items() for info in parts]
    if not times:
        return False
    first_ms, other = min(times)
    cleaned = "the one before them was cleaned from the log"
    if own is None:
        raise unknown_order(store, entry, other, f"{cleaned}, and so was it")
    if own.modified_ms == first_ms:
        raise unknown_order(store, entry, other, f"{cleaned}, and both are of the same moment")
    return own.modified_ms > first_ms


def _is_there(store: Store, path: str) -> bool:
    try:
        store.head(path)
    except NotFound:
        return False
    return True
