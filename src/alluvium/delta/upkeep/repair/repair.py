"""REPAIR: the log is rid of what is not there, damaged files that stand for others are made anew, the rest is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows import append_only
from alluvium.delta.terms.actions import Actions, tombstones_of, total
from alluvium.delta.upkeep.checks.check_files import check_change_data, check_data_files, check_deletion_vectors
from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.delta.upkeep.repair.log_files import Mended, mend_checksum, mend_log
from alluvium.delta.upkeep.repair.missing import REPORT, Missing, find_missing
from alluvium.delta.upkeep.repair.statistics import compute_statistics, files_without
from alluvium.delta.upkeep.repair.temporary import find_temporary
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import publish
from alluvium.errors import CommitConflict, CorruptTable
from alluvium.plan.changes import Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

#: As Databricks calls it; delta-spark has no such operation.
OPERATION = "FSCK"
#: Times that missing files, which are few, are looked for again after somebody else committed.
_ROUNDS = 20
_OVERTAKEN = ("concurrent-commit", "concurrent-delete-delete", "metadata-changed", "protocol-changed")


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What is to be done beside taking missing files out of the log.

    Attributes:
        log: Whether checkpoints, checksums and their like are mended.
        statistics: Whether statistics that are missing are computed.
        engine: For the history.
    """

    log: bool = True
    statistics: bool = True
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What came of it; of a dry run what would.

    Attributes:
        version: The newest version afterwards.
        missing: Files that were taken out of the log: `dataFilePath`, `dataFileMissing`, `deletionVectorPath`,
            `deletionVectorFileMissing`.
        mended: What was mended beside, and how.
        left: What cannot be mended, or of which nobody can say.
        statistics: Of how many files statistics were computed.
        dry_run: Whether nothing was written.
    """

    version: int
    missing: pa.Table = field(default_factory=REPORT.empty_table)
    mended: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    statistics: int = 0
    dry_run: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not (self.missing.num_rows or self.mended or self.left or self.statistics)

    def __str__(self) -> str:
        would = "would be " if self.dry_run else ""
        lines = [f"REPAIR at version {self.version}{'; nothing was written' if self.dry_run else ''}"]
        if self.missing.num_rows:
            lines.append(f"  {self.missing.num_rows} files {would}removed from the log")
        if self.statistics:
            lines.append(f"  statistics of {self.statistics} files {would}computed")
        lines += [f"  {would}mended: {_shown(f)}" for f in self.mended]
        lines += [f"  left: {_shown(f)}" for f in self.left]
        return "\n".join(lines)


def _shown(finding: Finding) -> str:
    return f"{finding.message}{f' ({finding.path})' if finding.path else ''}"


def repair(
    store: Store,
    open_newest: Callable[[], Snapshot],
    request: RepairRequest,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Repaired:
    """Mends a table as far as it can be mended.

    Files that are gone, or whose deletion vector is gone, leave the log by a commit: nobody can read them. That
    commit is made anew where another writer removed one of them, or one is back. Nothing is deleted but files of the
    log that only stand for others, and that are damaged.

    Args:
        store: The table's objects.
        open_newest: Opens the newest version.
        request: What is to be done.
        dry_run: Only tell.
        retry: How often a commit is tried.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Others were faster each time.
    """
    with suppress(CorruptTable):
        # Before anything is mended. A log that cannot be read yet may be readable then.
        _ensure_writable(open_newest())
    log = mend_log(store, dry_run) if request.log else Mended()
    try:
        snapshot = open_newest()
    except CorruptTable as error:
        fatal = Finding("error", "log", error.message, error.path)
        known = any(f.message == fatal.message for f in log.left)
        return Repaired(-1, mended=log.done, left=log.left if known else (*log.left, fatal), dry_run=dry_run)
    _ensure_writable(snapshot)
    if request.log:
        log += mend_checksum(snapshot, dry_run)
    snapshot, missing = _remove_missing(snapshot, request.engine, dry_run, retry)
    count, unread = _statistics(snapshot, missing, request, dry_run, retry)
    newest = refresh(snapshot)
    left = (*log.left, *missing.unknown, *unread, *_left(newest, missing), *find_temporary(store))
    return Repaired(newest.version, missing.report, log.done, left, count, dry_run)


def _ensure_writable(snapshot: Snapshot) -> None:
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)


def _remove_missing(snapshot: Snapshot, engine: str, dry_run: bool, retry: RetryPolicy) -> tuple[Snapshot, Missing]:
    """Commits that missing files are removed; the version that was looked at, and what was missing."""
    with locating(snapshot.store, snapshot.version):
        missing = find_missing(snapshot)
    if append_only.is_used(snapshot.config):
        return snapshot, _kept(missing)
    for attempt in range(_ROUNDS):
        if dry_run or not missing.files.num_rows:
            return snapshot, missing
        try:
            _commit(snapshot, missing, engine, retry)
            return refresh(snapshot), missing
        except CommitConflict as error:
            if error.code not in _OVERTAKEN or attempt == _ROUNDS - 1:
                raise
            # Whoever was faster may have removed one of the files, or have brought it back.
            snapshot = refresh(snapshot)
            _ensure_writable(snapshot)
            again = find_missing(snapshot, missing.files.column("path").combine_chunks())
            missing = replace(again, unknown=(*missing.unknown, *again.unknown))
    raise AssertionError("the last round returns or raises")


def _kept(missing: Missing) -> Missing:
    """Of an append-only table no file may leave the log, be it gone."""
    why = "it, or its deletion vector, is gone; it stays in the log, since the table is append-only"
    found = [Finding("error", "files", why, path) for path in missing.report.column("dataFilePath").to_pylist()]
    unknown = (*missing.unknown, *summed_up("files", found))
    return Missing(missing.files.slice(0, 0), missing.report.slice(0, 0), unknown)


def _commit(snapshot: Snapshot, missing: Missing, engine: str, retry: RetryPolicy) -> None:
    metrics = {
        "numRemovedFiles": str(missing.files.num_rows),
        "numRemovedBytes": str(total(missing.files.column("size"))),
    }
    actions = Actions(removed=tombstones_of(missing.files, int(time.time() * 1000)))
    operation = Operation(OPERATION, {}, metrics, engine)
    # Alone: a file that another commit adds again under its name must not be removed with what was gone.
    draft = Draft(actions, ReadScope.nothing(), operation, snapshot.version, is_alone=True)
    publish(snapshot.store, draft, snapshot, retry)


def _statistics(
    snapshot: Snapshot, missing: Missing, request: RepairRequest, dry_run: bool, retry: RetryPolicy
) -> tuple[int, tuple[Finding, ...]]:
    if not request.statistics:
        return 0, ()
    without = files_without(snapshot)
    if dry_run or not without.num_rows:
        gone = set(missing.files.column("path").to_pylist())
        return sum(path not in gone for path in without.column("path").to_pylist()), ()
    done = compute_statistics(snapshot, request.engine, retry=retry)
    return done.committed.files.num_rows, done.left


def _left(snapshot: Snapshot, missing: Missing) -> tuple[Finding, ...]:
    """What is wrong with files that are there."""
    told = {f.path for f in missing.unknown} | set(missing.report.column("dataFilePath").to_pylist())
    found = (*check_data_files(snapshot), *check_deletion_vectors(snapshot), *check_change_data(snapshot))
    return tuple(f for f in found if f.path is None or f.path not in told)
