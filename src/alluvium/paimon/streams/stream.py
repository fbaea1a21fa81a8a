"""A table as a stream: first its rows, then what snapshots change, one snapshot after the other.

Columns are those that the table had when the stream was made; files of later schemas are shown in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from alluvium.errors import NotFound
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_snapshots, read_changelog, read_snapshot
from alluvium.paimon.streams.begin import CONSUMER, begin_of, write_consumer
from alluvium.paimon.streams.followed import as_streams_begin, follows_overwrites, follows_waiting
from alluvium.paimon.streams.offset import Offset
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.paimon.view.changes import STREAMED, change_mode, documents_between
from alluvium.paimon.view.source import CAME, CHANGES, WAITING, WENT, PaimonSource, View
from alluvium.storage.locating import locating


@dataclass(slots=True)
class Stream:
    """A table, streamed.

    Attributes:
        snapshot: The newest state when the stream was made, whose columns it has.
        said: Where it begins (`begin.STARTS`).
        newest: The newest snapshot that was seen.
    """

    snapshot: Snapshot
    said: Mapping[str, str]
    newest: int = 0
    _begun: Offset | None = None
    _seen: SnapshotDocument | None = None

    def begin(self) -> Offset:
        """Where it begins; a query that knows no offset begins where the others of the stream did."""
        if self._begun is None:
            with locating(self.snapshot.store, None):
                self._begun = begin_of(self.snapshot, self.said)
        return self._begun

    def latest(self, start: Offset | None) -> Offset:
        """How far the stream can be read now; the first batch is empty, and writes down where it begins.

        Raises:
            NotFound: What comes next has expired (`stream-lost-data`), or the table is gone.
        """
        if start is None:
            return self.begin()
        with locating(self.snapshot.store, None):
            there = list_snapshots(self.snapshot.store, self.snapshot.branch)
        if not there:
            if start.snapshot_id > 1 or start.is_whole:
                raise NotFound("the table is gone: it has no snapshot", code="not-a-table")
            return start
        self._ensure_there(start, there)
        end = there[-1] + 1
        if end > start.snapshot_id:
            with locating(self.snapshot.store, None):
                self._ensure_same(there)
        self.newest = there[-1]
        return Offset(end) if end > start.snapshot_id else start

    def batch(self, start: Offset | None, end: Offset) -> tuple[PaimonSource, ...]:
        """What lies between two offsets; nothing where they are the same."""
        if start is None or start == end:
            return ()
        found: list[PaimonSource] = []
        first = start.snapshot_id
        with locating(self.snapshot.store, None):
            if start.is_whole:
                found += self._whole(start.snapshot_id)
                first += 1
            found += self._changes(first, end.snapshot_id)
        return tuple(found)

    def committed(self, end: Offset) -> None:
        """All before an offset is done; a consumer says so to those who expire snapshots.

        Nothing is done before a snapshot that is to be read as a whole: whoever began behind its number would take what
        it changed for all of its rows.
        """
        if CONSUMER in self.said and not end.is_whole:
            with locating(self.snapshot.store, None):
                write_consumer(self.snapshot, self.said[CONSUMER], end.snapshot_id)

    def _whole(self, number: int) -> list[PaimonSource]:
        """The rows of a snapshot, and those that wait for a bucket, as they were written."""
        state = self.snapshot if self.snapshot.version == number else self.snapshot.state(number)
        state = as_streams_begin(replace(state, schema=self.snapshot.schema))
        views = [View(), *([View(WAITING)] if follows_waiting(state.schema) else [])]
        return [PaimonSource(state, view) for view in views]

    def _changes(self, first: int, end: int) -> list[PaimonSource]:
        """What snapshots changed, one after the other; overwrites are told of apart from the others."""
        mode = change_mode(self.snapshot, "auto")
        mode = STREAMED if mode == "delta" else mode
        found: list[View] = []
        for number in self._overwrites(first, end, mode):
            found += [View(CHANGES, first - 1, number - 1, mode)] if first < number else []
            found += [View(WENT, end=number), View(CAME, end=number)]
            first = number + 1
        found += [View(CHANGES, first - 1, end - 1, mode)] if first < end else []
        return [PaimonSource(self.snapshot, view) for view in found]

    def _overwrites(self, first: int, end: int, mode: str) -> list[int]:
        """The overwrites that followers are told of.

        Raises:
            NotFound: The snapshot before one has expired, and with that the rows that went (`stream-lost-data`).
        """
        if not follows_overwrites(self.snapshot.schema):
            return []
        documents = documents_between(self.snapshot, first - 1, end - 1, mode)
        numbers = [document.id for document in documents if document.commit_kind == "OVERWRITE"]
        for before in (number - 1 for number in numbers if number > 1):
            try:
                self.snapshot.state(before)
            except NotFound:
                raise NotFound(
                    f"the snapshot {before + 1} is an overwrite: what it removed is told by the one before, which has "
                    "expired",
                    code="stream-lost-data",
                    version=before,
                    hint="begin with a new checkpoint; a consumer-id keeps snapshots until they are read",
                ) from None
        return numbers

    def _ensure_same(self, there: list[int]) -> None:
        """What was there is there still: after a rollback other snapshots get the numbers of those that it took."""
        seen = self._seen
        # One that expires meanwhile tells nothing.
        if seen is not None and there[0] <= seen.id and self._document(seen.id) not in (None, seen):
            raise _made_anew(seen.id + 1, f"its snapshot {seen.id} is another one now")
        self._seen = self._document(there[-1])

    def _document(self, number: int) -> SnapshotDocument | None:
        try:
            return read_snapshot(self.snapshot.store, number, self.snapshot.branch)
        except NotFound:
            return None

    def _ensure_there(self, start: Offset, there: list[int]) -> None:
        if start.snapshot_id > there[-1] + 1:
            raise _made_anew(start.snapshot_id, f"its newest is {there[-1]}")
        if start.snapshot_id >= there[0]:
            return
        try:
            if start.is_whole or change_mode(self.snapshot, "auto") != "changelog":
                read_snapshot(self.snapshot.store, start.snapshot_id, self.snapshot.branch)
            else:
                # A changelog may be kept for longer than its snapshot.
                read_changelog(self.snapshot.store, start.snapshot_id, self.snapshot.branch)
        except NotFound:
            raise NotFound(
                f"the stream goes on at snapshot {start.snapshot_id}, which has expired; the next one that is there is "
                f"{there[0]}",
                code="stream-lost-data",
                version=start.snapshot_id,
                hint="begin with a new checkpoint; a consumer-id keeps snapshots until they are read",
            ) from None


def _made_anew(next_snapshot: int, found: str) -> NotFound:
    return NotFound(
        f"the stream has read the table to snapshot {next_snapshot - 1}, {found}: it was rolled back, or made anew",
        code="stream-lost-data",
        version=next_snapshot,
        hint="begin with a new checkpoint",
    )
