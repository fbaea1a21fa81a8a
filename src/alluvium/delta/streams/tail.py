"""The end of a log, as a stream that has read the rest follows it: each commit is read once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from alluvium.delta.log.read import commit_version
from alluvium.delta.log.read_changes import CommitChanges, read_changes
from alluvium.delta.log.segment import list_log
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.paths import is_near
from alluvium.storage.store import ObjectInfo, Store

#: Commits that are kept, for a batch is made of those that were looked at before: so many, so large in the log.
_KEPT = 256
_KEPT_BYTES = 64 << 20
#: Spark asks 70 times a second for news where it has no trigger; a far store is asked so often at most.
_FAR_INTERVAL_S = 0.25


@dataclass(slots=True)
class LogTail:
    """Commits from a version on.

    Attributes:
        store: The table's objects.
        newest: The newest version that was seen.
    """

    store: Store
    newest: int = -1
    _kept: OrderedDict[ObjectInfo, CommitChanges] = field(default_factory=OrderedDict)
    _before: dict[int, ObjectInfo] = field(default_factory=dict)
    _idle_since_s: float | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def commits(self, start: int, end: int | None = None, *, fails_on_loss: bool = True) -> list[ObjectInfo]:
        """The commits from a version on, ascending.

        Args:
            start: The first version.
            end: The last version; None: all there are.
            fails_on_loss: Whether each of them must be there; otherwise those that are gone are passed over.

        Raises:
            NotFound: Some of them are gone (`stream-lost-data`), or the table is (`not-a-table`).
            InvalidRequest: The table is another one than before (`different-table`).
        """
        if end is None:
            self._wait()
        with self._lock:
            listed = dict(list_log(self.store, max(0, start - 1)).commits)
            known = self._before.get(start)
            self._ensure_same(start, listed)
            listed.pop(start - 1, None)
            self.newest = max(self.newest, max(listed, default=start - 1))
        # A stream of changes stays in the last version that it has read.
        is_news = any(version > start or info != known for version, info in listed.items())
        self._idle_since_s = None if is_news or end is not None else time.monotonic()
        found = [info for version, info in listed.items() if end is None or version <= end]
        if fails_on_loss:
            _ensure_whole([commit_version(info) for info in found], start, end)
        return found

    def seen(self, start: int) -> list[ObjectInfo]:
        """The commits from a version on that the last look at the log found."""
        return [info for version, info in sorted(self._before.items()) if version >= start]

    def _wait(self) -> None:
        """Nothing was new a moment ago."""
        if self._idle_since_s is not None and not is_near(self.store.url):
            time.sleep(max(0.0, self._idle_since_s + _FAR_INTERVAL_S - time.monotonic()))

    def _ensure_same(self, start: int, listed: dict[int, ObjectInfo]) -> None:
        """What was there is there still: a table that was made anew has other commits under the same names."""
        for version in (start - 1, start):
            now, known = listed.get(version), self._before.get(version)
            if now is not None and known is not None and not self._is_same(now, known):
                raise other_table(version)
        if start > 0 and not listed:
            newest = list_log(self.store).latest
            if newest < start - 1:
                raise other_table(start - 1) if newest >= 0 else _gone()
        self._before = {version: info for version, info in listed.items() if version >= start - 1}

    def _is_same(self, now: ObjectInfo, known: ObjectInfo) -> bool:
        """Whether a commit is the one that was read; a copy of it (`touch`, a backup that was restored) is."""
        if now == known:
            return True
        was = self._kept.get(known)
        if was is None or now.size != known.size or read_changes(self.store, (now,)) != [was]:
            return False
        self._kept[now] = self._kept.pop(known)
        return True

    def read(self, commits: Sequence[ObjectInfo]) -> list[CommitChanges]:
        """What commits did, in their order."""
        with self._lock:
            missing = [info for info in commits if info not in self._kept]
            read = dict(zip(missing, read_changes(self.store, missing), strict=True))
            found = [read.get(info) or self._kept[info] for info in commits]
            self._kept.update(zip(commits, found, strict=True))
            while len(self._kept) > _KEPT or sum(info.size for info in self._kept) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return found


def _ensure_whole(versions: Sequence[int], start: int, end: int | None) -> None:
    there = set(versions)
    last = max(versions[-1] if versions else start - 1, start - 1 if end is None else end)
    missing = next((v for v in range(start, last + 1) if v not in there), None)
    if missing is None:
        return
    earliest = min((v for v in versions if v > missing), default=None)
    raise NotFound(
        f"the stream goes on at version {missing}, whose commit is gone"
        + ("" if earliest is None else f"; the next one that is there is {earliest}"),
        code="stream-lost-data",
        version=missing,
        hint='the log was cleaned up before it was read: begin with a new checkpoint, or say failOnDataLoss="false" '
        "to go on without what is lost; a longer delta.logRetentionDuration prevents it",
    )


def other_table(version: int) -> InvalidRequest:
    """What a stream is told whose table is not the one that it has read."""
    return InvalidRequest(
        f"the table that the stream has read, last its version {version}, is not here any more: it was dropped and "
        "made anew, or its log was rolled back",
        code="different-table",
        version=version,
        hint="begin with a new checkpoint",
    )


def _gone() -> NotFound:
    return NotFound("the table is gone: its log holds no commit", code="not-a-table")
