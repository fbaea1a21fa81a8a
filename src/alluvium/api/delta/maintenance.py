"""What keeps a table in order, without Spark."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence

import alluvium
from alluvium.api.arguments import flag_of, property_texts, texts_of
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.upkeep.other_formats import other_source
from alluvium.api.options import parse_timestamp_ms, parse_version
from alluvium.api.stores import storage_for
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.log.segment import list_log
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.log_upkeep.log_cleanup import LogCleanup, clean_up_log
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.convert import convert
from alluvium.delta.upkeep.convert.iceberg import split_metadata
from alluvium.delta.upkeep.repair.repair import Repaired, RepairRequest, repair
from alluvium.delta.upkeep.vacuum.vacuum import Vacuumed, VacuumPreview, VacuumRequest, in_ms, vacuum
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.symlink_manifest import write_manifests
from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.ddl import parse_fields
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def check_table(url: str, storage_options: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """What is wrong with a table; nothing is changed, and no data file is read.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        The findings, none for a sound table: gaps in the log, checkpoints that are damaged or incomplete, data files
        that are gone or of another size than the log says, deletion vectors that are gone or damaged, statistics that
        do not parse, a version checksum that says otherwise, files of change data that are gone.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a reader that we are not.
    """
    store = storage_for(url, storage_options, None)
    findings = check_log(store)
    try:
        snapshot = open_snapshot(store, open_elsewhere=lambda other: open_store(other, storage_options))
        return (*findings, *check_snapshot(snapshot))
    except CorruptTable as error:
        return (*findings, Finding("error", "log", error.message, error.path))


def repair_table(
    url: str, storage_options: Mapping[str, str] | None = None, dry_run: bool = False, statistics: bool = True
) -> Repaired:
    """Mends a table as far as it can be mended; what cannot be is told, and left.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.
        dry_run: Only tell what would be done.
        statistics: Whether statistics that are missing are computed.

    Returns:
        Files that left the log since they, or their deletion vectors, are gone; what was mended beside; what is left.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a reader or writer that we are not.
    """
    store = storage_for(url, storage_options, None)

    def open_newest() -> Snapshot:
        return open_snapshot(store, open_elsewhere=lambda other: open_store(other, storage_options))

    request = RepairRequest(statistics=statistics, engine=f"Alluvium/{alluvium.__version__}")
    return repair(store, open_newest, request, dry_run)


def write_checkpoint(url: str, storage_options: Mapping[str, str] | None = None) -> int:
    """Writes a checkpoint of the newest version, so that readers need not read all commits.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        The version of the checkpoint.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: The log breaks the specification.
    """
    snapshot = _open_writable(url, storage_options)
    write_checkpoint_at(snapshot)
    return snapshot.version


def clean_log(url: str, storage_options: Mapping[str, str] | None = None, dry_run: bool = False) -> LogCleanup:
    """Deletes log files older than `delta.logRetentionDuration` that a checkpoint stands for, as checkpoints do.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.
        dry_run: Only tell what would go.

    Returns:
        The files, and the oldest version that can be read afterwards.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: The log breaks the specification, or a checkpoint that must stay is damaged.
    """
    return clean_up_log(_open_writable(url, storage_options), int(time.time() * 1000), dry_run=dry_run)


def compact_commits(url: str, start: int, end: int, storage_options: Mapping[str, str] | None = None) -> str:
    """Writes a log compaction, which readers may take in place of the commits from `start` to `end`.

    Args:
        url: The table.
        start: First version.
        end: Last version, greater than `start`.
        storage_options: Credentials and settings of the object store.

    Returns:
        Its path, relative to the table.

    Raises:
        InvalidRequest: `end` is not greater than `start`.
        NotFound: There is no table, or not all of the commits.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    return compact_log(_open_writable(url, storage_options).store, start, end)


def vacuum_table(
    url: str,
    retention_hours: float | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
    lite: bool = False,
    checks: bool = True,
    clones: Sequence[str] = (),
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Vacuumed | VacuumPreview:
    """Deletes files that neither the table nor any version within the retention needs.

    Args:
        url: The table.
        retention_hours: For how long files stay that have left the table; None: as `delta.deletedFileRetentionDuration`
            says, a week by default.
        storage_options: Credentials and settings of the object store.
        dry_run: Only tell what would go.
        lite: Only look for files that the log says were removed; the folder is not listed.
        checks: Whether a retention that is shorter than the table's is refused.
        clones: Tables, shallow clones of this one, of which a dry run tells which need what would go.
        retry: How often entries of the history are tried.

    Raises:
        NotFound: There is no table, or a clone.
        InvalidRequest: The retention is too short (`retention-too-short`), or negative.
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: The log breaks the specification; nothing is deleted.
    """
    snapshot = open_snapshot(storage_for(url, storage_options, None))
    retention_ms = None if retention_hours is None else in_ms(retention_hours)
    engine = f"Alluvium/{alluvium.__version__}"
    named = tuple(open_snapshot(storage_for(c, storage_options, None)) for c in texts_of(clones, "clones"))
    request = VacuumRequest(retention_ms, lite, checks=checks, engine=engine, clones=named)
    return vacuum(snapshot, request, dry_run, retry)


def clone_table(
    url: str,
    target: str,
    shallow: bool = False,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Makes a table that begins as another one at a version.

    Args:
        url: The table to clone.
        target: Where the clone goes.
        shallow: Whether it names the files where they are; otherwise it has copies of all, and where it is made again
            copies only what it has not yet.
        replace: Whether a table that is there is replaced; its history stays.
        properties: Table properties in place of the source's, or beside them.
        version: The version to clone; the newest by default.
        timestamp: Or the newest at that time; naive ones are UTC.
        storage_options: Credentials and settings of the object store, for both.
        dry_run: Only tell what would come of it.
        retry: How often to try.

    Raises:
        NotFound: There is no table to clone, or not that version, or files of it are gone.
        InvalidRequest: Something is where the clone is to be, or it cannot be what is asked for.
        UnsupportedFeature: Source or clone need a writer that we are not.
        CommitConflict: Another writer won.
    """
    if version is not None and timestamp is not None:
        raise InvalidRequest("a version or a time, not both", code="version-and-timestamp")

    def opened(other: str) -> Store:
        return storage_for(other, storage_options, None)

    at_ms = None if timestamp is None else parse_timestamp_ms(timestamp)
    version = None if version is None else parse_version(version)
    source = open_snapshot(opened(url), version, at_ms, open_elsewhere=opened)
    store = opened(target)
    try:
        existing: Snapshot | None = open_snapshot(store, open_elsewhere=opened)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        existing = None
    name, engine = f"delta.`{source.store.uri('')}`", f"Alluvium/{alluvium.__version__}"
    asked = property_texts({} if properties is None else properties)
    request = CloneRequest(name, flag_of(shallow, "shallow"), flag_of(replace, "replace"), asked, engine)
    return clone(source, store, existing, request, dry_run, retry)


def convert_table(
    url: str,
    partition_schema: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
    statistics: bool = True,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Makes a Delta table of the Parquet files in a folder, which stay where and as they are.

    Args:
        url: The folder, a Paimon append table, or an Iceberg table (or a file of its metadata).
        partition_schema: The partition columns in the order of the folders (`"day date, shop int"`); None: as the
            folders name them, with types inferred as Spark infers them.
        storage_options: Credentials and settings of the object store.
        dry_run: Only tell what the table would be.
        statistics: Whether statistics are taken from the footers.
        retry: How often a commit is tried.

    Returns:
        What was committed; for what is a Delta table already its version, and nothing is done.

    Raises:
        NotFound: There are no files.
        InvalidRequest: Files or folders do not fit; nothing is written.
        UnsupportedFeature: The files have a type that no table has.
        CommitConflict: Somebody else made a table of it meanwhile.
    """
    root, metadata = split_metadata(url)
    store = storage_for(root, storage_options, None)
    if (version := list_log(store).latest) >= 0:
        return Committed.nothing(version)
    partitions = None if partition_schema is None else parse_fields(partition_schema)
    request = ConvertRequest(partitions, statistics, engine=f"Alluvium/{alluvium.__version__}")
    source = other_source(store, "UTC", lambda other: open_store(other, storage_options), metadata)
    return convert(store, request, dry_run, retry, source)


def generate_manifests(url: str, storage_options: Mapping[str, str] | None = None) -> int:
    """Writes manifests of symbolic links: lists of the newest version's files, one a partition, for other engines.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        The version whose files they list.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table has deletion vectors or mapped columns, which such engines do not know.
    """
    snapshot = open_snapshot(storage_for(url, storage_options, None))
    write_manifests(snapshot)
    return snapshot.version


def _open_writable(url: str, storage_options: Mapping[str, str] | None) -> Snapshot:
    snapshot = open_snapshot(storage_for(url, storage_options, None))
    # A feature that we do not know may ask for more than our files of the log hold.
    ensure_writable(snapshot.config)
    return snapshot
