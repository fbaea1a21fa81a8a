"""A table as a stream: how far it can be read now, and which files lie between two offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.changes.bounds import Bound, Clock, resolve_range
from alluvium.delta.changes.head import load_head
from alluvium.delta.changes.schema import EXTRA_COLUMNS
from alluvium.delta.changes.source import times_of
from alluvium.delta.features.columns.generated_columns import KEY as GENERATION
from alluvium.delta.features.columns.identity_columns import PREFIX as IDENTITY
from alluvium.delta.features.log.in_commit_timestamp import enablement
from alluvium.delta.features.registry import ensure_readable_protocol
from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges
from alluvium.delta.log.segment import list_log
from alluvium.delta.streams.admission import Capacity
from alluvium.delta.streams.batch import LostBatch, change_sources, row_sources
from alluvium.delta.streams.checks import ensure_allowed, ensure_fits, ensure_recorded, is_left_out
from alluvium.delta.streams.offset import BEFORE, CHANGED, Offset, format_offset
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.streams.parting import added_before, files_of, part_of
from alluvium.delta.streams.tail import LogTail, other_table
from alluvium.delta.streams.tracking import Tracker
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.delta.view.history import commit_time_ms
from alluvium.delta.view.snapshot import Snapshot, load_snapshot, refresh
from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.ports import ScanSource
from alluvium.schema.types import Struct
from alluvium.schema.walk import as_nullable, drop_metadata
from alluvium.storage.locating import locating

#: Commits that are read at a time: enough for a far store's round trips to overlap.
_BLOCK = 32
#: Versions whose columns are known to fit: a few are enough, one for each query of the stream.
_REMEMBERED = 1000
#: What is no matter of a batch that nobody reads: that of a restart may have been read under other options.
_OF_READERS = ("missing-version", "stream-lost-data", "stream-source-changed", "stream-source-deleted")
#: What is said of columns for the table itself: a copy of them has other numbers, and makes no values.
_OF_THE_TABLE = ("delta.columnMapping.", IDENTITY, GENERATION, TYPE_CHANGES)
#: Commits before a batch whose times are looked at, since a file's time counts as later than those before it.
_TIMES_BEFORE = 100


@dataclass(frozen=True, slots=True)
class Step:
    """What one version gives to a stream.

    Attributes:
        commit: What it did; of the first snapshot: all live files, as if it had added them.
        files: The files that are counted (`CHANGED_FILES`), in the order of their index.
        in_snapshot: Whether it is the first snapshot.
        is_whole: Whether the files may not be parted: changes of one row may stand in several. As in the reference,
            what was added and removed may.
    """

    commit: CommitChanges
    files: pa.Table
    in_snapshot: bool = False
    is_whole: bool = False

    @property
    def version(self) -> int:
        return self.commit.version


@dataclass(slots=True)
class Stream:
    """A table, streamed with the columns that it had when the stream was made.

    It is the same for all queries that are started of it: it remembers only what holds for each of them.

    Attributes:
        snapshot: The table as it was then.
        options: How it is streamed.
        tracker: Follows its columns; None: where they change, the stream stops.
    """

    snapshot: Snapshot
    options: StreamOptions
    tracker: Tracker | None = None
    _tail: LogTail = field(init=False)
    _partition_by: tuple[str, ...] = field(init=False)
    _first: Step | None = None
    _fitting: set[int] = field(default_factory=set)
    _newest_config: tuple[int, TableConfig] = field(init=False)

    def __post_init__(self) -> None:
        self._tail = LogTail(self.snapshot.store)
        self._partition_by = self.snapshot.config.partition_columns
        self._newest_config = self.snapshot.version, self.snapshot.config

    @property
    def table_id(self) -> str:
        """What offsets know the table by."""
        return self.snapshot.config.metadata.id

    @property
    def schema(self) -> Struct:
        """The columns, all of which may be null, with what rows show of them that are read at once."""
        own = as_nullable(drop_metadata(self.snapshot.config.schema, lambda key: key.startswith(_OF_THE_TABLE)))
        assert isinstance(own, Struct)
        return Struct((*own.fields, *EXTRA_COLUMNS.fields)) if self.options.changes else own

    @property
    def newest(self) -> int:
        """The newest version that was seen."""
        return max(self._tail.newest, self.snapshot.version)

    def latest(
        self, start: Offset | None, *, limited: bool = True, until: Offset | None = None, is_resumed: bool = True
    ) -> Offset | None:
        """How far the stream can be read now.

        Args:
            start: How far it has been read; None: not at all.
            is_resumed: Whether it has been read up to `start`, which else is where it begins.
            limited: Whether a batch is no larger than the options say.
            until: Where a run ends.

        Returns:
            `start` where there is nothing new; None where there is nothing yet.

        Raises:
            InvalidRequest: The stream has to stop: what a commit did is not allowed, its columns are others, or it is
                not the table any more.
            NotFound: What comes next is gone, or the first version is not there.
        """
        with locating(self.snapshot.store, None):
            begin, comes = self._beginning() if start is None else (start, 0)
            if comes > 1:
                return None
            marked = self._track(begin, is_resumed=start is not None)
            if marked is not None:
                return marked
            if comes:
                # Written down at once, so that what comes until the next run is not passed over.
                return begin
            self._ensure_begun(begin, is_resumed=start is not None and is_resumed)
            # After a crash the first batch is found by its end alone: it must not pass that of the first snapshot.
            end = self._advance(begin, limited, until, passes=start is not None)
            self._known_to_fit(end.version)
            return None if start is None and end == begin else end

    def end_of_run(self, start: Offset | None) -> Offset:
        """How far a run of several batches goes that reads what there is now; errors as of `latest`."""
        with locating(self.snapshot.store, None):
            begin, comes = self._beginning() if start is None else (start, 0)
            if comes > 1:
                return begin
            marked = self._track(begin, is_resumed=start is not None)
            if marked is not None:
                if self.tracker is not None and self.tracker.is_to_be_written(marked):
                    return marked
                begin = marked
            self._ensure_begun(begin, is_resumed=start is not None)
            return self._advance(begin, limited=False, until=None, passes=True)

    def _advance(self, begin: Offset, limited: bool, until: Offset | None, passes: bool) -> Offset:
        """The end of what is read from an offset on; `passes`: it may lie behind the first snapshot."""
        options = self.options
        capacity = Capacity(options.max_files, options.max_bytes) if limited else Capacity()
        end = begin
        for step in self._steps(begin, until):
            # As in the reference, versions without rows are passed behind the last file, but not in a change feed.
            if not capacity.is_left and options.changes:
                return end
            if not step.in_snapshot and self.tracker is not None and self.tracker.is_changed_by(step.commit):
                return Offset(self.table_id, step.version, CHANGED)
            if not capacity.is_left and step.files.num_rows:
                return end
            everything = step.in_snapshot and options.in_event_order
            first = begin.first if step.version == begin.version else 0
            sizes = step.files["size"].combine_chunks().slice(first)
            # A remove need not say how large its file was.
            sizes = pc.fill_null(sizes, 0)
            if step.is_whole:
                taken = len(sizes) if capacity.take_all(sizes) else -1
            else:
                taken = len(sizes) if everything else capacity.take(sizes)
            if taken < len(sizes):
                if taken > 0:
                    end = Offset(self.table_id, step.version, first + taken - 1, step.in_snapshot)
                return end
            end = self._behind(step)
            if step.in_snapshot and not passes:
                return end
        if not capacity.is_left and options.changes:
            return end
        # The version of a mark is not looked at again: nothing of it lies before the mark.
        return until if until is not None and until.is_mark and until.version == end.version else end

    def _behind(self, step: Step) -> Offset:
        """Behind all of a version; as in the reference, of one whose changes are recorded, at the last file of them."""
        if self.options.changes and step.commit.recorded.num_rows:
            return Offset(self.table_id, step.version, step.commit.recorded.num_rows - 1)
        return Offset(self.table_id, step.version + 1)

    def backlog(self, reached: Offset) -> tuple[int, int] | None:
        """How many files, and bytes of them, are still to be read behind an offset, as far as the log has been seen.

        Returns:
            None where that would have to be read for the purpose: what is far behind is read bit by bit.
        """
        first, version = self._first, reached.version
        sizes: list[pa.ChunkedArray] = []
        if reached.in_snapshot:
            if first is None or first.version != version:
                return None
            sizes.append(first.files["size"].slice(reached.first))
            version += 1
        infos = self._tail.seen(version)
        # Another query of the stream may have looked at what is further on.
        if len(infos) > _BLOCK or len(infos) < self._tail.newest + 1 - version:
            return None
        with locating(self.snapshot.store, None):
            for commit in self._tail.read(infos):
                if is_left_out(commit, self.options):
                    continue
                is_recorded = self.options.changes and commit.recorded.num_rows > 0
                files, passed = commit.recorded if is_recorded else commit.added, 0
                if commit.version == reached.version:
                    is_mixed = self.options.changes and not is_recorded
                    passed = added_before(commit, reached.first) if is_mixed else reached.first
                sizes.append(files["size"].slice(passed))
        return sum(map(len, sizes)), sum(pc.sum(pc.fill_null(each, 0)).as_py() or 0 for each in sizes)

    def batch(self, start: Offset | None, end: Offset) -> tuple[ScanSource, ...]:
        """What lies between two offsets; nothing where they are the same.

        Raises:
            InvalidRequest: As of `latest`.
            NotFound: As of `latest`.
            UnsupportedFeature: The batch ends between changes that belong together.
        """
        with locating(self.snapshot.store, None):
            try:
                begin = self._begin_of(end) if start is None else start
                if begin.place == end.place:
                    return ()
                if self.tracker is not None:
                    self.tracker.begin(begin.version, end.version - 1 if end.index == BEFORE else end.version)
                self._ensure_begun(begin, is_resumed=start is not None)
                parts = [_part(step, begin, end) for step in self._steps(begin, end)]
            except (NotFound, InvalidRequest) as error:
                if error.code not in _OF_READERS:
                    raise
                extra = EXTRA_COLUMNS.fields if self.options.changes else ()
                return (LostBatch(self.snapshot, error, (format_offset(end),), extra),)
            if not end.in_snapshot:
                self._first = None
            # Streams that leave out other files of the same range have other rows.
            return self._sources(parts, begin, (format_offset(begin), format_offset(end), self.options.text))

    def _sources(self, parts: list[CommitChanges], begin: Offset, span: tuple[str, ...]) -> tuple[ScanSource, ...]:
        if self.tracker is not None:
            # The same range may be shown in other columns.
            span = (*span, self.tracker.shown.metadata.schema_string)
        if self.options.changes:
            commits = [part for part in map(self._without_excluded, parts) if _is_filled(part)]
            return change_sources(self.snapshot, commits, self._times(commits, begin), span)
        files = pa.concat_tables([CHANGED_FILES.empty_table(), *(p.added for p in parts)])
        return row_sources(self.snapshot, self._included(files), span)

    def begin(self) -> Offset:
        """Where a stream begins of which nothing has been read."""
        return self._beginning()[0]

    def _beginning(self) -> tuple[Offset, int]:
        """The same, and by how much its version is still to come."""
        options, newest = self.options, refresh(self.snapshot)
        if newest.config.metadata.id != self.table_id:
            raise other_table(newest.version)
        if not options.names_start:
            # As in the reference, what begins with all rows has been told of no other partitions.
            self._partition_by = newest.config.partition_columns
            return Offset(self.table_id, newest.version, BEFORE, in_snapshot=True), 0
        if options.starting_version == "latest":
            return Offset(self.table_id, newest.version + 1), 1
        asked, late = Bound(options.starting_version, options.starting_ms), options.may_begin_late
        commits = {v: info for v, info in list_log(newest.store).commits.items() if v <= newest.version}
        clock = Clock(newest.store, commits, enablement(newest.config))
        first = resolve_range(clock, newest.version, asked, None, allow_out_of_range=late).first
        return Offset(self.table_id, first), max(0, first - newest.version)

    def _begin_of(self, end: Offset) -> Offset:
        """Where the first batch began, of which only the end is known.

        It may have been begun under other options, which count no more: an end inside of the first snapshot, or before
        the version that is named now, tells that the rows of that snapshot came first.
        """
        version = end.version if end.in_snapshot else end.version - 1
        snapshot = Offset(end.table_id, version, BEFORE, in_snapshot=True)
        if end.in_snapshot or not self.options.names_start:
            return snapshot
        if self.options.starting_version == "latest":
            # Its first batch is empty.
            return end
        begin = self.begin()
        if begin.place < end.place:
            return begin
        # What began at a version that was still to come has an empty first batch, too.
        return end if self.options.may_begin_late else snapshot

    def _ensure_begun(self, begin: Offset, is_resumed: bool) -> None:
        """The columns of the version from which a query goes on: it may have been stopped for long.

        As in the reference, it is stopped, too, where they were renamed right after the last version that it has read:
        whatever its rows go to has the old names. One that follows the columns writes down what a run that did not has
        passed.
        """
        if begin.version in self._fitting:
            return
        is_behind = is_resumed and begin.index in (BEFORE, CHANGED) and not begin.in_snapshot
        read = begin.version - 1 if is_behind else begin.version
        try:
            protocol, metadata = load_head(self.snapshot.store, max(0, read))
        except NotFound:
            # There is no such version yet; or it is gone, which is said where it is read.
            return
        if metadata.id != self.table_id and self._is_made_anew():
            raise other_table(max(0, read))
        if self.tracker is not None:
            self.tracker.change(protocol, metadata, max(0, read))
        else:
            self._ensure_fits(protocol, metadata, max(0, read))
        self._known_to_fit(begin.version)

    def _is_made_anew(self) -> bool:
        """Whether the table is another one than when the stream was made, of which the tail has seen nothing yet.

        A table that took the place of another in the same log has the other's number in older versions.
        """
        try:
            return load_head(self.snapshot.store, self.snapshot.version)[1].id != self.table_id
        except NotFound:
            return True

    def _known_to_fit(self, version: int) -> None:
        # A query that runs for years must not remember each version; looking once more costs little.
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add(version)

    def _track(self, begin: Offset, is_resumed: bool) -> Offset | None:
        """Of a stream that follows the table's columns: where it is held up by a change of them."""
        if self.tracker is None:
            return None
        self.tracker.begin(begin.version, is_resumed=is_resumed)
        return self.tracker.reached(begin)

    def _ensure_fits(self, protocol: Protocol | None, metadata: Metadata | None, version: int) -> None:
        known, config = self._newest_config
        if version > known:
            now = replace(config, protocol=protocol or config.protocol, metadata=metadata or config.metadata)
            self._newest_config = version, now
        if self.tracker is not None:
            if protocol is not None:
                ensure_readable_protocol(protocol)
            if metadata is not None:
                ensure_recorded(replace(self.snapshot.config, metadata=metadata), version, self.options)
            return
        own = self.snapshot
        ensure_fits(
            protocol or own.config.protocol,
            metadata or own.config.metadata,
            version,
            replace(own.config, partition_columns=self._partition_by),
            own.version,
            self.options,
        )

    def _steps(self, begin: Offset, end: Offset | None) -> Iterator[Step]:
        """What versions give, from one offset to another, or as far as there is something."""
        start = begin.version
        if begin.in_snapshot:
            yield self._snapshot_step(start)
            start += 1
        last = None if end is None else end.version if end.index >= 0 else end.version - 1
        if last is not None and last < start:
            return
        commits = self._tail.commits(start, last, fails_on_loss=self.options.fails_on_loss)
        if last is None and not commits and begin.index > BEFORE and not begin.in_snapshot:
            # Of it files have been read: it was there, and the newest is not cleaned up.
            raise other_table(start)
        for at in range(0, len(commits), _BLOCK):
            for commit in self._tail.read(commits[at : at + _BLOCK]):
                if commit.version > start:
                    self._ensure_fits_behind_loss(commit.version)
                yield self._step(commit)
                start = commit.version + 1

    def _ensure_fits_behind_loss(self, version: int) -> None:
        """The columns may have been changed by one of the versions that are passed over."""
        try:
            protocol, metadata = load_head(self.snapshot.store, version)
        except (NotFound, CorruptTable):
            # No checkpoint tells: what is left of the log is all that is known.
            return
        self._ensure_fits(protocol, metadata, version)

    def _snapshot_step(self, version: int) -> Step:
        """As in the reference, "index" counts the files sorted by time, then path."""
        # Taken once: another query of the same stream may let go of it at any moment.
        first = self._first
        if first is None or first.version != version:
            snapshot = load_snapshot(self.snapshot.store, version, time_zone=self.snapshot.time_zone)
            self._ensure_fits(snapshot.config.protocol, snapshot.config.metadata, version)
            if self.tracker is not None:
                self.tracker.change(snapshot.config.protocol, snapshot.config.metadata, version, replaces=True)
            files = snapshot.files.sort_by([("modificationTime", "ascending"), ("path", "ascending")])
            versions = pa.repeat(pa.scalar(version, pa.int64()), files.num_rows)
            chosen = [files[name].cast(CHANGED_FILES.field(name).type) for name in CHANGED_FILES.names[:-1]]
            table = pa.Table.from_arrays([*chosen, versions], schema=CHANGED_FILES).combine_chunks()
            nothing = CHANGED_FILES.empty_table()
            commit = CommitChanges(version, table, nothing, nothing, None, None, None)
            first = self._first = Step(commit, table, in_snapshot=True)
        return first

    def _step(self, commit: CommitChanges) -> Step:
        nothing = CHANGED_FILES.empty_table()
        if commit.protocol is not None or commit.metadata is not None:
            self._ensure_fits(commit.protocol, commit.metadata, commit.version)
        if is_left_out(commit, self.options):
            return Step(replace(commit, added=nothing, removed=nothing, recorded=nothing), nothing)
        ensure_allowed(commit, self.options)
        if not self.options.changes:
            # Rows are new files alone: what was removed is not counted, wherever it stands among them.
            return Step(replace(commit, removed=nothing, order=None), commit.added)
        if commit.recorded.num_rows:
            return Step(commit, commit.recorded, is_whole=True)
        # What a file lost is seen by its vectors before and after. As in the reference, one of them is enough.
        files = files_of(commit)
        return Step(commit, files, is_whole=files["deletionVector"].null_count < files.num_rows)

    def _times(self, commits: list[CommitChanges], begin: Offset) -> Mapping[int, int]:
        """When the versions of a change feed were committed."""
        times: dict[int, int] = {}
        later = commits
        if commits and begin.in_snapshot and commits[0].version == begin.version:
            at = load_snapshot(self.snapshot.store, begin.version, time_zone=self.snapshot.time_zone)
            times[begin.version], later = commit_time_ms(at), commits[1:]
        if later:
            listed = list_log(self.snapshot.store, max(0, later[0].version - _TIMES_BEFORE)).commits
            # Since when commits carry their time may have been said after the stream was made.
            in_commit = enablement(self._newest_config[1])
            times.update(times_of(later, Clock(self.snapshot.store, listed, in_commit)))
        return times

    def _included(self, files: pa.Table) -> pa.Table:
        exclude = self.options.exclude
        if exclude is None or not files.num_rows:
            return files
        return files.filter(pa.array([exclude.search(path) is None for path in files["path"].to_pylist()]))

    def _without_excluded(self, commit: CommitChanges) -> CommitChanges:
        if commit.recorded.num_rows:
            # "Read only those [...], and skip the remaining add and remove actions", be they left out, too.
            nothing = CHANGED_FILES.empty_table()
            return replace(commit, added=nothing, removed=nothing, recorded=self._included(commit.recorded))
        return replace(commit, added=self._included(commit.added), removed=self._included(commit.removed))


def _is_filled(commit: CommitChanges) -> bool:
    return bool(commit.added.num_rows or commit.removed.num_rows or commit.recorded.num_rows)


def _part(step: Step, begin: Offset, end: Offset) -> CommitChanges:
    """What of a version lies between two offsets.

    Raises:
        UnsupportedFeature: Changes that belong together lie on both sides of one (`parted-changes`).
    """
    first = begin.first if step.version == begin.version else 0
    last = end.index if step.version == end.version else step.files.num_rows - 1
    if first == 0 and last >= step.files.num_rows - 1:
        return step.commit
    if first > last:
        nothing = CHANGED_FILES.empty_table()
        return replace(step.commit, added=nothing, removed=nothing, recorded=nothing)
    if step.is_whole:
        raise UnsupportedFeature(
            f"the checkpoint parts the changes of version {step.version}, which belong together",
            code="parted-changes",
            version=step.version,
            hint="let the engine that wrote it finish the version, then go on here",
        )
    return part_of(step.commit, first, last + 1 - first)
