"""A stream that goes on where the table's columns change: it reads by those that its log holds, ends a batch where a
version changes them, writes that down, and stops, to be read anew. Renames, drops and wider types must be agreed to.

As in the reference, so do the table's protocol and its properties `delta.*`, and a version that changes them is marked
in the offsets twice: Spark calls a batch done only when it has begun another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import msgspec

from alluvium.delta.changes.head import load_head
from alluvium.delta.log.read import commit_version
from alluvium.delta.log.read_changes import CommitChanges, load_commit, parse_head
from alluvium.delta.log.segment import list_log
from alluvium.delta.streams.agreement import Agreement, ensure_agreed
from alluvium.delta.streams.column_changes import column_changes
from alluvium.delta.streams.offset import CHANGED, PASSED, Offset
from alluvium.delta.streams.tracking_log import TrackingLog, config_of, entry_of, load_tracking_log
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.lines import decode_lines
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import InvalidRequest
from alluvium.storage.store import ObjectInfo, Store


class _Files(msgspec.Struct, frozen=True):
    add: msgspec.Raw = msgspec.Raw(b"")
    remove: msgspec.Raw = msgspec.Raw(b"")
    cdc: msgspec.Raw = msgspec.Raw(b"")


_FILES = msgspec.json.Decoder(_Files)


@dataclass(slots=True)
class Tracker:
    """The columns of a stream.

    Attributes:
        table: The table's objects.
        now: The table as it was when the stream was made.
        log: What is written down.
        location: `schemaTrackingLocation`, as Hadoop spells it.
        agreement: What the reader agrees to.
    """

    table: Store
    now: TableConfig
    log: TrackingLog
    location: str
    agreement: Agreement
    _shown: TableConfig | None = None
    _place: str | None = None
    _ended: InvalidRequest | None = None

    @property
    def shown(self) -> TableConfig:
        """The table as the stream shows it."""
        if self._shown is None:
            newest = self.log.newest
            self._shown = self.now if newest is None else config_of(newest, self.now)
        return self._shown

    @property
    def is_begun(self) -> bool:
        """Whether anything is written down."""
        return self.log.newest is not None

    def skim(self) -> None:
        """Takes several changes one after the other, without files between them, as one."""
        newest = self.log.newest
        if newest is None:
            return
        last, config = self._skimmed(newest.delta_commit_version, config_of(newest, self.now))
        if last > newest.delta_commit_version:
            self.log = self.log.appended(entry_of(last, config, newest.source_metadata_path), replaces=True)

    def _skimmed(self, version: int, begun: TableConfig) -> tuple[int, TableConfig]:
        """How far versions from one on change the table without files, and what holds there."""
        commits = list_log(self.table, version).commits
        config, last = begun, version
        # The version of the entry itself may have files, which are still to be read by its columns.
        while version in commits and (found := _change_alone(self.table, commits[version])) is not None:
            changed = _with(config, *found)
            if self.log.previous is None and not column_changes(begun, changed).is_additive:
                # What takes the place of the first entry is compared with nothing: nobody would have to agree, though
                # rows have gone by under the columns that it had.
                break
            config, last = changed, version
            version += 1
        return last, config

    def start(self, find_place: Callable[[], str]) -> None:
        """A query begins.

        Args:
            find_place: Finds where it keeps what it knows of the source, `<checkpoint>/sources/0`.

        Raises:
            InvalidRequest: The log is another query's, lies beside the checkpoint, or holds changes that nobody agreed
                to; or the stream has ended, or other runs have written down other columns since it was loaded.
        """
        if self._ended is not None:
            raise self._ended
        place = find_place()
        self.agreement.ensure_under(self.location, place)
        self.log = load_tracking_log(self.log.store, self.now.metadata.id)
        newest, previous = self.log.newest, self.log.previous
        if newest is not None and newest.source_metadata_path != place:
            raise InvalidRequest(
                f"the log of columns in {self.log.store.url!r} is that of the source {newest.source_metadata_path}, "
                f"not of {place}",
                code="tracking-location-conflict",
                path=self.log.store.url,
                hint="give another schemaTrackingLocation, or a streamingSourceTrackingId",
            )
        if newest is not None and self._is_other(*_head_of(config_of(newest, self.now))):
            self._end(newest.delta_commit_version)
        if newest is not None and previous is not None:
            changes = column_changes(config_of(previous, self.now), self.shown)
            versions = (previous.delta_commit_version, newest.delta_commit_version)
            ensure_agreed(changes, versions, place, self.agreement)
        self._place = place

    def begin(self, first: int, last: int | None = None, *, is_resumed: bool = True) -> None:
        """Writes down the columns by which a stream begins, where they are not written down yet.

        Args:
            first: The version from which is read.
            last: The last version of a batch that was planned before there was a log; None: none was.
            is_resumed: Whether there are offsets. Else what is written down is of a run that died before its first, or
                began elsewhere.

        Raises:
            InvalidRequest: They are not those that the stream shows; it is to be read anew. Or no columns show all
                versions of the batch.
        """
        if self._ended is not None:
            raise self._ended
        if self.is_begun and is_resumed:
            return
        # What comes from now on begins behind the newest version.
        version = min(max(first, first if last is None else last), list_log(self.table).latest)
        config = parse_config(*load_head(self.table, version))
        if self.is_begun:
            self._begin_elsewhere(version, config)
            return
        if last is not None:
            self._ensure_one_schema(min(first, version), version, config)
        is_changed = self._differs(config.protocol, config.metadata, version)
        self._write(version, config, ends=is_changed)

    def _begin_elsewhere(self, version: int, config: TableConfig) -> None:
        """The same where other columns are written down, or those of a version that is still to come."""
        newest, head = self.log.newest, _head_of(config)
        is_later = newest is not None and newest.delta_commit_version > self._skimmed(version, config)[0]
        if is_later or self._differs(*head, version):
            self._write(version, config, ends=self._is_other(*head), replaces=True)

    def is_changed_by(self, commit: CommitChanges) -> bool:
        """Whether a version needs other columns than the stream has."""
        return self.is_begun and self._differs(commit.protocol, commit.metadata, commit.version)

    def reached(self, start: Offset) -> Offset | None:
        """The end of the next batch behind an offset that marks a change; None: behind others.

        Raises:
            InvalidRequest: As of `committed`: the query died between the second mark and what is written down. Spark
                would not say again that the first one is done, and the query would wait for ever.
        """
        if start.index == CHANGED:
            return replace(start, index=PASSED)
        if start.index == PASSED:
            self.committed(start)
        return None

    def is_to_be_written(self, mark: Offset) -> bool:
        """Whether what a mark stands for is still to be written down, which a stream does not pass."""
        return self.is_begun and self._differs(*self._head_set_at(mark.version), mark.version)

    def committed(self, end: Offset) -> None:
        """A batch is done, so that what it ends at may be written down.

        Raises:
            InvalidRequest: It was; the stream is to be read anew (`stream-metadata-changed`).
        """
        if end.is_mark and self.is_begun:
            self.change(*self._head_set_at(end.version), end.version)

    def change(
        self, protocol: Protocol | None, metadata: Metadata | None, version: int, *, replaces: bool = False
    ) -> None:
        """Writes down what a version sets, where that is not what the stream has; errors as of `committed`."""
        if self._differs(protocol, metadata, version):
            self._write(version, _with(self.shown, protocol, metadata), ends=True, replaces=replaces)

    def _differs(self, protocol: Protocol | None, metadata: Metadata | None, version: int) -> bool:
        newest = self.log.newest
        if newest is not None and newest.delta_commit_version >= version:
            return False
        return self._is_other(protocol, metadata)

    def _is_other(self, protocol: Protocol | None, metadata: Metadata | None) -> bool:
        own = self.shown
        return (protocol is not None and _features(protocol) != _features(own.protocol)) or (
            metadata is not None and _columns(metadata) != _columns(own.metadata)
        )

    def _head_set_at(self, version: int) -> tuple[Protocol | None, Metadata | None]:
        commit = list_log(self.table, version).commits.get(version)
        if commit is None:
            return None, None
        return parse_head(load_commit(self.table, commit), commit.path, version)

    def _write(self, version: int, config: TableConfig, *, ends: bool, replaces: bool = False) -> None:
        self.log = self.log.appended(entry_of(version, config, self._place or ""), replaces=replaces)
        if ends:
            self._end(version)
        self._shown = config

    def _end(self, version: int) -> NoReturn:
        self._ended = InvalidRequest(
            f"version {version} changes columns, properties or protocol of the table, which is written down in "
            f"{self.log.store.url!r} now",
            code="stream-metadata-changed",
            version=version,
            path=self.log.store.url,
            hint="read the table anew and start the query again with the same checkpoint: it goes on with them",
        )
        raise self._ended

    def _ensure_one_schema(self, first: int, last: int, config: TableConfig) -> None:
        for version in sorted(v for v in list_log(self.table, first).commits if first <= v <= last):
            protocol, metadata = load_head(self.table, version)
            changes = column_changes(parse_config(protocol, metadata), config)
            if not changes.is_additive:
                raise InvalidRequest(
                    f"the batch from version {first} to {last} was planned before there was a log of columns, and no "
                    f"columns show all of it: {changes}",
                    code="tracking-log-too-late",
                    version=version,
                    hint="begin with a new checkpoint",
                )


def _with(config: TableConfig, protocol: Protocol | None, metadata: Metadata | None) -> TableConfig:
    return parse_config(protocol or config.protocol, metadata or config.metadata)


def _head_of(config: TableConfig) -> tuple[Protocol, Metadata]:
    return config.protocol, config.metadata


def _columns(metadata: Metadata) -> tuple[object, ...]:
    properties = {k: v for k, v in metadata.configuration.items() if k.startswith("delta.")}
    return msgspec.json.decode(metadata.schema_string), metadata.partition_columns, properties


def _features(protocol: Protocol) -> tuple[object, ...]:
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )


def _change_alone(store: Store, commit: ObjectInfo) -> tuple[Protocol | None, Metadata | None] | None:
    """What a commit sets that names no file; None: it names some, or sets nothing."""
    data, version = load_commit(store, commit), commit_version(commit)
    head = parse_head(data, commit.path, version)
    if head == (None, None):
        return None
    lines = decode_lines(data, _FILES, commit.path, version)
    return None if any(line.add or line.remove or line.cdc for line in lines) else head
