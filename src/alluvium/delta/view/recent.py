"""Snapshots that this process has read lately, for whoever asks for the same version again.

A log is listed at every question all the same, so that nobody sees an old version; what is saved is reading and
reconciling files that have not changed, and decoding their statistics anew.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from alluvium.delta.log.segment import LogSegment
from alluvium.delta.log.state import LogState
from alluvium.storage.paths import is_near
from alluvium.storage.store import Store

#: How much all of them may hold, in bytes of their lists of files; and how many they may be.
MAX_BYTES = 512 << 20
MAX_SNAPSHOTS = 64
#: One that nobody asked for in this time is let go when the next one comes.
MAX_IDLE_S = 900.0
#: Files that changed so shortly before they were listed are not known by their time: a table that is dropped and made
#: anew may have others of the same names, sizes and times. Stores count times in seconds, and so do some disks of this
#: machine; of one whose store tells files apart by themselves what counts is its tick.
SETTLED_MS = 2_000
SETTLED_NEAR_MS = 50


class Kept(Protocol):
    """What this memory asks of a snapshot."""

    @property
    def store(self) -> Store:
        """The table's objects."""

    @property
    def state(self) -> LogState:
        """What its log files reconcile to."""


S = TypeVar("S", bound=Kept)


@dataclass(slots=True)
class _Entry(Generic[S]):
    segment: LogSegment
    snapshot: S
    used_s: float
    size_bytes: int


class RecentSnapshots(Generic[S]):
    """The snapshots, by table and settings; safe for threads."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry[S]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable, segment: LogSegment) -> S | None:
        """The snapshot that was read from these very files, or from the first of them."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not _begins(segment, entry.segment):
                return None
            entry.used_s = time.monotonic()
            self._entries.move_to_end(key)
            return entry.snapshot

    def keep(self, key: Hashable, segment: LogSegment, snapshot: S, listed_ms: int) -> None:
        """Remembers a snapshot, in place of another of the same key.

        Args:
            key: Of what table it is, and read how.
            segment: The files that it was read from, as they were listed.
            snapshot: The snapshot.
            listed_ms: When they were listed, milliseconds since 1970 UTC.
        """
        files = (*segment.checkpoint, *segment.commits)
        newest = max((info.modified_ms for info in files), default=listed_ms)
        is_fine = is_near(snapshot.store.url) and all(info.identity for info in files)
        settled_ms = listed_ms - (SETTLED_NEAR_MS if is_fine else SETTLED_MS)
        state = snapshot.state
        # Once for all: each look at a table's size takes a quarter of a millisecond.
        size_bytes = int(state.files.nbytes + state.tombstones.nbytes)
        entry = _Entry(segment, snapshot, time.monotonic(), size_bytes)
        # Read from other files than those listed: one of them is damaged, and each reader is to be told.
        if newest > settled_ms or snapshot.state.segment != segment or entry.size_bytes > MAX_BYTES:
            return
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            self._let_go(entry.used_s)

    def clear(self) -> None:
        """Forgets all of them."""
        with self._lock:
            self._entries.clear()

    def _let_go(self, now_s: float) -> None:
        for key, entry in list(self._entries.items()):
            idle = now_s - entry.used_s > MAX_IDLE_S
            if idle or len(self._entries) > MAX_SNAPSHOTS or self._size_bytes() > MAX_BYTES:
                del self._entries[key]

    def _size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self._entries.values())


def _begins(segment: LogSegment, known: LogSegment) -> bool:
    """Whether a version is `known`, or `known` and commits after it; files are the same by name, size, time and
    identity.
    """
    count = len(known.commits)
    return segment.checkpoint == known.checkpoint and segment.commits[:count] == known.commits
