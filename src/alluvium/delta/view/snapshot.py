"""Snapshot: one version of a table, immutable, readable from birth."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import pyarrow as pa

from alluvium.delta.features.log.in_commit_timestamp import enablement
from alluvium.delta.features.registry import ensure_readable, ensure_readable_protocol
from alluvium.delta.log.large.pieces import Pieces, joined
from alluvium.delta.log.segment import has_same_checkpoint, list_segment
from alluvium.delta.log.state import MAX_CHECKPOINT_BYTES, LogState, advance, apply_commits, load_state
from alluvium.delta.log.timeline import version_at
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.view.recent import RecentSnapshots
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

T = TypeVar("T")

#: What was read lately, see `alluvium.delta.view.recent`.
RECENT: RecentSnapshots[Snapshot] = RecentSnapshots()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table.

    Attributes:
        store: The table's objects.
        state: What its log files reconcile to; where it has `deferred` files, its own lists are not all there is.
        config: Protocol, metadata and schema, parsed.
        time_zone: In which partition values without a zone are read.
        open_store: From a URL to its store, for files that lie outside the table.
    """

    store: Store
    state: LogState
    config: TableConfig
    time_zone: str = "UTC"
    open_store: Callable[[str], Store] = field(default=open_store, repr=False, compare=False)
    _found: dict[tuple[str, str], tuple[LogState, object]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed, milliseconds since 1970 UTC."""
        return self.state.segment.timestamp_ms

    @property
    def files(self) -> pa.Table:
        """The live files, schema `FILES`. All of them: of a log of millions that is gigabytes, see `map_files`."""
        return self.whole.files

    @property
    def tombstones(self) -> pa.Table:
        """Removed files not yet forgotten, schema `TOMBSTONES`. All of them."""
        return self.whole.tombstones

    @property
    def whole(self) -> LogState:
        """The state with all of its files, read now where they were left unread for their size."""
        if not self.state.deferred:
            return self.state
        return self.once("whole", self._read_whole)

    def _read_whole(self) -> LogState:
        """All anew: where the checkpoint is damaged, another one or the commits may lead to the version."""
        found = load_state(self.store, self.state.segment, ensure_readable_protocol)
        if found.metadata.id != self.state.metadata.id:
            raise NotFound(
                f"version {self.version} is no longer that of the table that was opened: another stands in its place",
                code="missing-version",
                version=self.version,
                hint="the table was dropped and made anew: open it again",
            )
        return found

    @property
    def is_unread(self) -> bool:
        """Whether the live files are more than should be held at once, and nobody has needed all of them yet."""
        return bool(self.state.deferred) and self._found.get(("whole", self.time_zone), (None,))[0] is not self.state

    def is_all(self, files: pa.Table) -> bool:
        """Whether a table is that of all live files itself."""
        return not self.is_unread and files is self.files

    def map_files(self, see: Callable[[pa.Table], T], each_once: bool = False) -> list[T]:
        """What a function makes of the live files, piece by piece where they are more than should be held at once.

        Args:
            see: Is given some of them (`FILES`, perhaps `stats_parsed`), perhaps from several threads.
            each_once: Whether a file may not come twice where a checkpoint lists it twice: to be sure of that takes
                eight bytes a file.
        """
        found = self._by_pieces(lambda pieces: pieces.map_files(see, each_once))
        return [see(self.files)] if found is None else found

    def map_tombstones(self, see: Callable[[pa.Table], T]) -> list[T]:
        """The same of removed files not yet forgotten (`TOMBSTONES`)."""
        found = self._by_pieces(lambda pieces: [see(piece) for piece in pieces.tombstones()])
        return [see(self.tombstones)] if found is None else found

    def _by_pieces(self, see: Callable[[Pieces], list[T]]) -> list[T] | None:
        """None where all files are there, or have to be read together, since the checkpoint is damaged."""
        if not self.is_unread or not has_same_checkpoint(self.store, self.state.segment):
            return None
        try:
            found = see(Pieces(self.store, self.state))
        except CorruptTable as error:
            if error.code != "damaged-checkpoint":
                raise
            return None
        # Another may have come into its place while it was read.
        return found if has_same_checkpoint(self.store, self.state.segment) else None

    def pick_files(self, pick: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """The live files that a function picks out of those that it is given; schema `FILES`, each once."""
        return joined(self.map_files(pick)) if self.is_unread else pick(self.files)

    def count_files(self) -> int:
        """How many files are live."""
        return sum(self.map_files(lambda files: int(files.num_rows), each_once=True))

    def statistics(self, files: pa.Table) -> AddStatistics:
        """Statistics of some of the live files; those of all of them are decoded once."""
        return self.once("statistics", lambda: self._decode(files)) if self.is_all(files) else self._decode(files)

    def once(self, name: str, find: Callable[[], T]) -> T:
        """What follows from this version alone, found when it is first asked for.

        Args:
            name: What it is.
            find: Finds it; must not depend on the store, for the answer outlives its credentials.
        """
        # The dictionary is shared by copies of the snapshot, of which one may have been given another state or zone.
        state, found = self._found.get((name, self.time_zone), (None, None))
        if state is not self.state:
            found = find()
            self._found[name, self.time_zone] = (self.state, found)
        return cast(T, found)

    def has_come_to(self, txn: tuple[str, int] | None) -> bool:
        """Whether an application (its id and version; None: there is none) has come as far already.

        "If this value is greater than or equal to the batch being written, then this data has already been added to the
        table and processing can skip to the next batch."
        """
        found = None if txn is None else self.state.txns.get(txn[0])
        return txn is not None and found is not None and found.version >= txn[1]

    def _decode(self, files: pa.Table) -> AddStatistics:
        config = self.config
        return AddStatistics(files, config.schema, config.partition_columns, config.physical_paths, self.time_zone)


def load_snapshot(
    store: Store,
    version: int | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    max_checkpoint_bytes: int = MAX_CHECKPOINT_BYTES,
) -> Snapshot:
    """Reads a version of the table at the store's root.

    Args:
        store: The table's objects.
        version: The version; None: the newest, or the one at `timestamp_ms`.
        timestamp_ms: The newest version committed at or before this time, milliseconds since 1970 UTC.
        time_zone: In which partition values without a zone are read.
        max_checkpoint_bytes: See `load_state`: files of larger checkpoints are read when somebody needs them.

    Raises:
        NotFound: There is no table, or not that version.
        UnsupportedFeature: The table needs a reader that we are not.
        CorruptTable: The log breaks the specification.
    """
    with locating(store, version):
        if timestamp_ms is not None:
            newest = load_snapshot(store, time_zone=time_zone, max_checkpoint_bytes=max_checkpoint_bytes)
            version = version_at(store, timestamp_ms, enablement(newest.config))
            if version == newest.version:
                return newest
        key = (store.url, time_zone, max_checkpoint_bytes, version)
        listed_ms = int(time.time() * 1000)
        segment = list_segment(store, version)
        known = RECENT.find(key, segment)
        if known is not None and known.state.segment == segment:
            return replace(_light(known), store=store, open_store=open_store)
        if known is not None:
            newer = segment.commits[len(known.state.segment.commits) :]
            state = apply_commits(known.state, store, newer, ensure_readable_protocol)
            state = replace(state, segment=segment)
        else:
            state = load_state(store, segment, ensure_readable_protocol, max_checkpoint_bytes)
        snapshot = _snapshot(store, state, time_zone)
        RECENT.keep(key, segment, _light(snapshot), listed_ms)
        return snapshot


def _light(snapshot: Snapshot) -> Snapshot:
    """A snapshot to remember, or as it was remembered: what somebody reads of one that is too large stays with him."""
    return replace(snapshot, _found={}) if snapshot.state.deferred else snapshot


def refresh(snapshot: Snapshot) -> Snapshot:
    """The newest version, reading only the log entries that came since."""
    with locating(snapshot.store, None):
        _, state = advance(snapshot.store, snapshot.state.segment, snapshot.state, ensure_readable_protocol)
        # The number alone does not tell: a table that was made anew may have as many versions.
        if state is snapshot.state:
            return snapshot
        return replace(_snapshot(snapshot.store, state, snapshot.time_zone), open_store=snapshot.open_store)


def _snapshot(store: Store, state: LogState, time_zone: str) -> Snapshot:
    config = parse_config(state.protocol, state.metadata)
    ensure_readable(config)
    return Snapshot(store, state, config, time_zone)
