"""Delta's streams as the engine asks for them: offsets are text, and errors leave as what delta-spark raises."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from alluvium.api.counterparts.raising import counterparts
from alluvium.delta.streams.batch import LostBatch
from alluvium.delta.streams.offset import BEFORE, Offset, format_offset, parse_offset
from alluvium.delta.streams.stream import Stream
from alluvium.errors import AlluviumError
from alluvium.plan.ports import ScanSource
from alluvium.schema.types import Struct

log = logging.getLogger("alluvium")


@dataclass(frozen=True, slots=True)
class DeltaStream:
    """Implements `plan.ports.StreamSource`."""

    stream: Stream

    @property
    def name(self) -> str:
        return f"DeltaSource[{self.stream.snapshot.store.uri('').rstrip('/')}]"

    @property
    def schema(self) -> Struct:
        return self.stream.schema

    def latest(self, start: str | None, *, limited: bool, until: str | None) -> str | None:
        with self._told():
            end = self.stream.latest(self._parsed(start), limited=limited, until=self._parsed(until))
        return None if end is None else format_offset(end)

    def end_of_run(self, start: str | None) -> str:
        with self._told():
            return format_offset(self.stream.end_of_run(self._parsed(start)))

    def batch(self, start: str | None, end: str) -> Sequence[ScanSource]:
        with self._told():
            reached = parse_offset(end, self.stream.table_id)
            sources = self.stream.batch(self._parsed(start), reached)
        return [replace(s, error=self._as_told(s.error)) if isinstance(s, LostBatch) else s for s in sources]

    def _as_told(self, error: AlluviumError) -> AlluviumError:
        """The error as it is raised where the batch is read."""
        try:
            with self._told():
                raise error
        except AlluviumError as told:
            return told

    def started(self, find_place: Callable[[], str]) -> None:
        if self.stream.tracker is not None:
            with self._told():
                self.stream.tracker.start(find_place)

    def committed(self, end: str) -> None:
        if self.stream.tracker is not None:
            with self._told():
                self.stream.tracker.committed(parse_offset(end, self.stream.table_id))

    def metrics(self, offset: str) -> Mapping[str, str]:
        with self._told():
            reached = parse_offset(offset, self.stream.table_id)
        behind = max(0, self.stream.newest + 1 - reached.version)
        try:
            backlog = self.stream.backlog(reached)
        except AlluviumError as error:
            # A query does not end for what it tells of itself.
            log.warning("how far a stream is behind cannot be told: %s", error)
            backlog = None
        if backlog is None:
            return {"versionsBehind": str(behind)}
        if backlog[0] == 0 and reached.index > BEFORE and not reached.in_snapshot:
            # It is behind the last file of this version.
            behind -= 1
        files, size = map(str, backlog)
        return {"versionsBehind": str(behind), "numFilesOutstanding": files, "numBytesOutstanding": size}

    def _parsed(self, text: str | None) -> Offset | None:
        return None if text is None else parse_offset(text, self.stream.table_id)

    @contextmanager
    def _told(self) -> Iterator[None]:
        with counterparts("stream"):
            try:
                yield
            except AlluviumError as error:
                error.url = error.url or self.stream.snapshot.store.url
                raise
