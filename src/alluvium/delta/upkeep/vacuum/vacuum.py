"""VACUUM: files that no version within the retention needs are deleted.

The order is what makes it safe. Files are listed first, and the newest log is read after: a commit that lands in
between is seen, and what it removed has a young tombstone. The listing says how old a file is by the store's own clock,
and so does the file that is written before anything is deleted, for the time of this machine may be wrong. A commit
that lands later is looked at before each request that deletes, and once more behind the last: who brings back what the
retention has given up, by RESTORE, is told where he was too late.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.commit.draft import Draft
from alluvium.delta.commit.winners import ensure_same_table
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.log.timeline import file_times
from alluvium.delta.terms.actions import Actions, total
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.vacuum.files import (
    choose_files,
    empty_directories,
    hides,
    with_unseen,
    without_inner_tables,
)
from alluvium.delta.upkeep.vacuum.large import LiveFiles, left_out_of, named_among, read_needed_of
from alluvium.delta.upkeep.vacuum.past import (
    from_inventory,
    list_past,
    read_needed,
    read_retention,
    write_last_vacuum,
)
from alluvium.delta.upkeep.vacuum.versions import needs_any, read_file_history, versions_where
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import publish
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, NotFound, WrongType
from alluvium.plan.changes import Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue
from alluvium.storage.locating import locating
from alluvium.storage.paths import split_url
from alluvium.storage.progress import counting
from alluvium.storage.store import LISTED, Store

HOUR_MS = 3_600_000
#: Some 100,000 years: what is longer is for ever, too.
_LONGEST_MS = 10**15
#: Schemes whose tables delta-spark tells of a VACUUM in the history, where no setting says otherwise.
_LOGGED = frozenset({"", "file", "memory", "hdfs", "abfs", "abfss", "wasb", "wasbs", "adl", "gs"})
_PATHS_A_REQUEST = 10_000
#: Times that an entry of the history is tried again after others changed what the table says of itself.
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """What is to be done.

    Attributes:
        retention_ms: For how long files stay that have left the table; None: as the table's property says.
        lite: Only look for files that the log says were removed.
        inventory: Files and directories, in place of a listing: see `past.from_inventory`.
        checks: Whether a retention that is shorter than the table's is refused.
        logs: Whether the history tells of it; None: as in delta-spark, where the store is not S3.
        engine: For the history.
        clones: Tables of which a dry run tells whether they need one of the files. No table knows its clones.
    """

    retention_ms: int | None = None
    lite: bool = False
    inventory: pa.Table | None = None
    checks: bool = True
    logs: bool | None = None
    engine: str = ""
    clones: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class VacuumPreview:
    """What VACUUM would delete; nothing was.

    Attributes:
        version: The newest version that was looked at.
        cutoff_ms: What is younger stays, milliseconds since 1970 UTC.
        files: One row a file: `path` (relative to the table), `size`, `modified_ms`.
        directories: Empty ones, relative to the table.
        lost_versions: Versions that need one of the files, and could not be read afterwards.
        lost_times_ms: When each of them was committed, by its file in the log, milliseconds since 1970 UTC; None where
            that is gone.
        lost_clones: Of the clones that were named, the URLs of those whose version needs one of the files.
    """

    version: int
    cutoff_ms: int
    files: pa.Table
    directories: tuple[str, ...]
    lost_versions: tuple[int, ...]
    lost_times_ms: tuple[int | None, ...] = ()
    lost_clones: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of all the files."""
        return total(self.files.column("size"))

    def __str__(self) -> str:
        lost = f"{len(self.lost_versions)} versions become unreadable" if self.lost_versions else "no version is lost"
        if self.lost_clones:
            lost += f", so do {len(self.lost_clones)} clones"
        return (
            f"VACUUM at version {self.version}: {self.files.num_rows} files of {self.size_bytes} bytes and "
            f"{len(self.directories)} empty directories would go, {lost}; nothing was deleted"
        )


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What VACUUM deleted.

    Attributes:
        version: The newest version afterwards.
        files: How many files.
        size_bytes: Their bytes.
        directories: How many empty directories.
    """

    version: int
    files: int
    size_bytes: int
    directories: int


@dataclass(frozen=True, slots=True)
class _Plan:
    snapshot: Snapshot
    files: pa.Table
    directories: tuple[str, ...]
    listed_directories: int
    last_past: int

    @property
    def count(self) -> int:
        return int(self.files.num_rows) + len(self.directories)


def vacuum(
    snapshot: Snapshot, request: VacuumRequest, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> Vacuumed | VacuumPreview:
    """Deletes files that no version within the retention needs.

    Args:
        snapshot: A version of the table.
        request: What is to be done.
        dry_run: Only tell what would go.
        retry: How often a commit of the history is tried.

    Raises:
        InvalidRequest: The retention is negative (`negative-retention`) or too short (`retention-too-short`), clones
            are named without a dry run (`contradicting-options`), the inventory has other columns
            (`invalid-inventory`), or VACUUM LITE lacks commits (`cannot-vacuum-lite`).
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: The log names files in a way that nobody understands: then none is deleted.
        CommitConflict: Another table took its place meanwhile (`table-replaced`).
        NotFound: Files that were deleted came back into the table meanwhile (`missing-file`).
        StorageError: Not all could be deleted; it can be done again.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        ensure_retention(request, snapshot.config)
        if request.clones and not dry_run:
            raise InvalidRequest(
                "only a dry run tells which clones VACUUM would break",
                code="contradicting-options",
                hint="dry_run=True; a clone stays where the retention is longer, or where it is a deep one",
            )
        live = LiveFiles.of(snapshot) if snapshot.is_unread and _lists(request) else None
        listed = None if request.lite else _list(snapshot, request.inventory, live)
        now_ms = int(time.time() * 1000)
        if not dry_run:
            now_ms = min(now_ms, read_clock(snapshot.store))
        newest = _newest(snapshot)
        cutoff_ms = now_ms - ensure_retention(request, newest.config)
        plan = _plan(newest, listed, cutoff_ms, live)
        if dry_run:
            return _preview(plan, cutoff_ms, request.clones)
        return _Run(request, cutoff_ms, listed, live, retry).carry_out(plan)


def ensure_retention(request: VacuumRequest, config: TableConfig) -> int:
    """For how long files stay, in milliseconds.

    Raises:
        InvalidRequest: See `vacuum`.
    """
    default_ms, asked = _default_ms(config), request.retention_ms
    if asked is None:
        return default_ms
    if asked < 0:
        raise InvalidRequest(
            "a retention cannot be negative", code="negative-retention", hint="give a number of hours, 168 is a week"
        )
    if asked < default_ms and request.checks:
        hours = -(-default_ms // HOUR_MS)
        raise InvalidRequest(
            f"a retention of {asked / HOUR_MS:g} hours is shorter than that of the table, {hours} hours: files of "
            "writers that have not committed yet, and of versions that readers use, would be deleted",
            code="retention-too-short",
            hint=f"give {hours} or more; if nobody uses the table, turn the check off: "
            "spark.databricks.delta.retentionDurationCheck.enabled=false, or --no-check",
        )
    return asked


def in_ms(hours: float) -> int:
    """Hours in milliseconds; what is below nothing stays below it.

    Raises:
        WrongType: It is no number.
    """
    if not isinstance(hours, Real) or math.isnan(hours):
        raise WrongType(f"a retention of so many hours is none: {hours!r:.80}", hint="168 is a week")
    return math.floor(max(min(hours * HOUR_MS, _LONGEST_MS), -_LONGEST_MS))


def _default_ms(config: TableConfig) -> int:
    return parse_properties(config.metadata.configuration).deleted_file_retention_ms


def read_clock(store: Store) -> int:
    """The time by the clock of a store, milliseconds since 1970 UTC: that of a file that is written for it."""
    path = f"{LOG_DIRECTORY}/.alluvium-clock-{uuid.uuid4().hex}.tmp"
    store.put(path, b"", durable=False)
    try:
        return store.head(path).modified_ms
    finally:
        store.delete(path)


def _lists(request: VacuumRequest) -> bool:
    return not request.lite and request.inventory is None


def _list(snapshot: Snapshot, inventory: pa.Table | None, live: LiveFiles | None) -> pa.Table:
    is_hidden = hides(snapshot.config)
    if inventory is not None:
        return from_inventory(inventory, snapshot.store.url, is_hidden)
    # The logs are listed, too: they tell of tables that lie within this one.
    found = snapshot.store.list_columns("", lambda name: name != LOG_DIRECTORY and is_hidden(name))
    return without_inner_tables(pa.Table.from_batches(left_out_of(found, live), LISTED))


def _newest(snapshot: Snapshot) -> Snapshot:
    """The newest version of the same table.

    Raises:
        CommitConflict: Another one stands in its place.
    """
    newest = refresh(snapshot)
    ensure_same_table(snapshot.store, snapshot, newest)
    ensure_writable(newest.config)
    return newest


def _plan(snapshot: Snapshot, listed: pa.Table | None, cutoff_ms: int, live: LiveFiles | None) -> _Plan:
    retention = read_retention(snapshot, cutoff_ms)
    found = list_past(snapshot, retention) if listed is None else listed
    if live is not None or snapshot.is_unread:
        needed = read_needed_of(snapshot, retention, found, listed is not None, live)
    else:
        needed = read_needed(snapshot, retention)
        needed = needed if listed is None else with_unseen(needed, listed)
    directories = empty_directories(found, needed)
    listed_directories = total(found.column("is_directory").cast(pa.int64())) + 1
    # What the log says was removed is no hidden file of somebody else's, whatever its name.
    is_hidden = _nothing if listed is None else hides(snapshot.config)
    files = choose_files(found, needed, cutoff_ms, is_hidden).select(["path", "size", "modified_ms"])
    return _Plan(snapshot, files, directories, listed_directories, retention.last_past)


def _nothing(name: str) -> bool:
    return False


def _preview(plan: _Plan, cutoff_ms: int, clones: Sequence[Snapshot]) -> VacuumPreview:
    snapshot = plan.snapshot
    if not plan.files.num_rows:
        return VacuumPreview(snapshot.version, cutoff_ms, plan.files, plan.directories, ())
    listing = read_retention(snapshot, cutoff_ms).listing
    gone = plan.files.column("path").combine_chunks()
    history = read_file_history(snapshot.store, listing, snapshot.version, gone)
    lost = versions_where(history, history.without(gone) & history.known)
    known = {time.version: time.timestamp_ms for time in file_times(listing.commits)}
    times = tuple(known.get(version) for version in lost)
    broken = tuple(clone.store.url for clone in clones if needs_any(clone, snapshot.store.url, gone))
    return VacuumPreview(snapshot.version, cutoff_ms, plan.files, plan.directories, lost, times, broken)


@dataclass(frozen=True, slots=True)
class _Run:
    """A VACUUM that deletes."""

    request: VacuumRequest
    cutoff_ms: int
    listed: pa.Table | None
    live: LiveFiles | None
    retry: RetryPolicy

    def carry_out(self, plan: _Plan) -> Vacuumed:
        """Tells the history, deletes, and tells it again."""
        started = self._tell(plan.snapshot, self._start(plan))
        try:
            plan = self._looked_at_again(plan, started)
            files, size_bytes, directories = self._delete(plan)
        except BaseException:
            # What went wrong first is what the caller hears of.
            with suppress(AlluviumError):
                self._tell(plan.snapshot, Operation("VACUUM END", {"status": "FAILED"}, engine=self.request.engine))
            raise
        metrics = {
            "numDeletedFiles": str(files + directories),
            "numVacuumedDirectories": str(plan.listed_directories),
        }
        done = Operation("VACUUM END", {"status": "COMPLETED"}, metrics, self.request.engine)
        version = self._tell(plan.snapshot, done)
        if self.request.inventory is None:
            write_last_vacuum(plan.snapshot.store, plan.last_past)
        return Vacuumed(version, files, size_bytes, directories)

    def _looked_at_again(self, plan: _Plan, version: int) -> _Plan:
        """The plan, made anew where somebody committed since it was made."""
        newest = _newest(plan.snapshot)
        expected = plan.snapshot.version + (version > plan.snapshot.version)
        if newest.version == expected:
            return replace(plan, snapshot=newest)
        return _plan(newest, self.listed, self.cutoff_ms, self.live)

    def _delete(self, plan: _Plan) -> tuple[int, int, int]:
        """Files, their bytes, and directories that were deleted."""
        store, wanted = plan.snapshot.store, plan.files
        deleted, advance = [wanted.slice(0, 0)], counting("deleted files", wanted.num_rows)
        for start in range(0, wanted.num_rows, _PATHS_A_REQUEST):
            if start:
                plan = self._looked_at_again(plan, plan.snapshot.version)
            some = wanted.slice(start, _PATHS_A_REQUEST)
            some = some.filter(pc.is_in(some["path"], value_set=plan.files["path"].combine_chunks()))
            store.delete_all(some["path"].to_pylist())
            deleted.append(some)
            advance(min(_PATHS_A_REQUEST, wanted.num_rows - start))
        files = pa.concat_tables(deleted)
        self._ensure_unneeded(plan.snapshot, files["path"].combine_chunks())
        directories = sum(store.remove_directory(directory) for directory in plan.directories)
        return files.num_rows, total(files["size"]), directories

    def _ensure_unneeded(self, snapshot: Snapshot, deleted: pa.Array) -> None:
        """Tells of files that came back into the table while they were deleted."""
        newest = _newest(snapshot)
        if newest.version == snapshot.version or not len(deleted):
            return
        lost = named_among(newest, deleted)
        if lost:
            raise NotFound(
                f"version {newest.version} names {len(lost)} files that were deleted while it was committed: {lost[0]}",
                code="missing-file",
                url=newest.store.url,
                path=lost[0],
                version=newest.version,
                hint=f"RESTORE to version {snapshot.version} brings back the table as it was before",
            )

    def _start(self, plan: _Plan) -> Operation:
        parameters: dict[str, JsonValue] = {
            "retentionCheckEnabled": self.request.checks,
            "defaultRetentionMillis": _default_ms(plan.snapshot.config),
        }
        if self.request.retention_ms is not None:
            parameters["specifiedRetentionMillis"] = self.request.retention_ms
        metrics: Mapping[str, str] = {
            "numFilesToDelete": str(plan.count),
            "sizeOfDataToDelete": str(total(plan.files.column("size"))),
        }
        return Operation("VACUUM START", parameters, metrics, self.request.engine)

    def _tell(self, snapshot: Snapshot, operation: Operation) -> int:
        """Commits an entry of the history; the newest version afterwards."""
        logs = self.request.logs
        if logs is None:
            logs = split_url(snapshot.store.url).scheme in _LOGGED
        if not logs:
            return snapshot.version
        for left in reversed(range(_ROUNDS)):
            draft = Draft(Actions(), ReadScope.nothing(), operation, snapshot.version)
            try:
                return publish(snapshot.store, draft, snapshot, self.retry).entry.version
            except CommitConflict:
                if not left:
                    raise
                # Whoever changed the description, or restored one: the entry speaks of neither.
                snapshot = _newest(snapshot)
        raise AssertionError("the last round returns or raises")
