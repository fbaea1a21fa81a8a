"""RESTORE: an older version's files and description become the newest version. No data are written or deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.upgrade import protocol_of, supported_features
from alluvium.delta.features.columns.identity_columns import with_furthest_marks
from alluvium.delta.features.log.checkpoint_protection import PROPERTY as PROTECTED_BEFORE
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.clustering import DOMAIN as CLUSTERING
from alluvium.delta.features.rows.clustering import clustering_domain
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.log.replay import logical_file_keys
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions, tombstones_of, total
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import FILES, DomainMetadata, Metadata
from alluvium.delta.upkeep.missing_files import ensure_still_there, missing_of, refuse_missing
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import publish
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import JsonValue
from alluvium.storage.locating import locating

_MATERIALIZED = (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)
#: Ids of columns are never given twice; and a history that is protected since a feature was dropped is still there,
#: however old the description is that comes back.
_NEVER_FALL = ("delta.columnMapping.maxColumnId", PROTECTED_BEFORE)
#: Its high-water mark never falls: ids that were given stay given.
_ROW_TRACKING = "delta.rowTracking"


@dataclass(frozen=True, slots=True)
class Restoration:
    """What it takes to come back to an older version.

    Attributes:
        config: Afterwards.
        added: Live files of the old version that are not live now (`FILES`).
        removed: Files that are live now and were not then (`FILES`).
        domains: Domains to set back or remove.
        metrics: Under the names of the history.
    """

    config: TableConfig
    added: pa.Table
    removed: pa.Table
    domains: tuple[DomainMetadata, ...]
    metrics: Mapping[str, str]


def plan_restore(current: Snapshot, old: Snapshot) -> Restoration:
    """What differs between two versions of a table. Pure.

    A file with another deletion vector is another file.
    """
    now, then = _keys(current.files), _keys(old.files)
    added = _only_files(with_stats_text(old.files.filter(pc.invert(pc.is_in(then, value_set=now)))))
    removed = _only_files(current.files.filter(pc.invert(pc.is_in(now, value_set=then))))
    metrics = {
        "tableSizeAfterRestore": str(total(old.files.column("size"))),
        "numOfFilesAfterRestore": str(old.files.num_rows),
        "numRemovedFiles": str(removed.num_rows),
        "numRestoredFiles": str(added.num_rows),
        "removedFilesSize": str(total(removed.column("size"))),
        "restoredFilesSize": str(total(added.column("size"))),
    }
    return Restoration(_config(current.config, old.config), added, removed, _domains(current, old), metrics)


def restore(
    current: Snapshot,
    old: Snapshot,
    parameters: Mapping[str, JsonValue],
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Commits an older version's files and description as the newest version.

    Args:
        current: The newest version.
        old: The version to come back to.
        parameters: How it was asked for, for the history.
        engine: For the history.
        dry_run: Only tell what would change, and which files are gone.
        retry: How often to try.

    Raises:
        NotFound: Data files of the old version, or files of their deletion vectors, are gone (`missing-file`); where
            VACUUM has removed them meanwhile, the version stands, and the error names it.
        CommitConflict: Another writer changed the table meanwhile.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    with locating(current.store, current.version):
        ensure_writable(current.config)
        plan = plan_restore(current, old)
        ensure_writable(plan.config)
        missing = missing_of(old, plan.added)
    operation = Operation("RESTORE", parameters, plan.metrics, engine)
    if dry_run:
        added, removed = (tuple(t.column("path").to_pylist()) for t in (plan.added, plan.removed))
        changes = differences(current.config, plan.config)
        return Preview(current.version, operation, changes, added, removed, missing=missing)
    refuse_missing(old, missing)
    nothing = WRITTEN_FILES.empty_table()
    if old.version == current.version:
        return Committed(current.version, nothing, {}, 0)
    actions = Actions(
        # Said again even where they are the same, as the reference does: whoever reads this commit alone knows them.
        protocol=plan.config.protocol,
        metadata=plan.config.metadata,
        added=plan.added,
        removed=tombstones_of(plan.removed, int(time.time() * 1000)),
        domains=plan.domains,
        restores=True,
    )
    draft = Draft(actions, ReadScope.table(), operation, current.version, config=plan.config)
    published = publish(current.store, draft, current, retry)
    version = published.entry.version
    hint = f"RESTORE to version {version - 1} brings back the table as it was before"
    ensure_still_there(old, plan.added, f"version {version}, to which the table was restored,", hint)
    return Committed(version, nothing, plan.metrics, published.attempts)


def _keys(files: pa.Table) -> pa.ChunkedArray:
    """What each file is known by: "identified by their `(path, deletionVector.uniqueId)` primary key"."""
    return pa.chunked_array([logical_file_keys(batch) for batch in files.to_batches()], pa.string())


def _only_files(files: pa.Table) -> pa.Table:
    count = files.num_rows
    columns = [
        # What comes back is new to readers of changes.
        pa.repeat(pa.scalar(True), count) if f.name == "dataChange" else files.column(f.name).cast(f.type)
        for f in FILES
    ]
    return pa.Table.from_arrays(columns, schema=FILES)


def _config(current: TableConfig, old: TableConfig) -> TableConfig:
    # What was supported stays supported: files, history and other writers' plans may rest on it.
    supported = supported_features(current.protocol)
    wanted = supported | supported_features(old.protocol)
    protocol = current.protocol if wanted == supported else protocol_of(wanted)
    return parse_config(protocol, _metadata(current.metadata, old.metadata))


def _metadata(current: Metadata, old: Metadata) -> Metadata:
    old = msgspec.structs.replace(old, schema_string=with_furthest_marks(old.schema_string, current.schema_string))
    # Columns of row ids that files have keep their names: "The assigned column names must remain unique in all future
    # versions of the table."
    named = {k: v for k, v in current.configuration.items() if k in _MATERIALIZED and k not in old.configuration}
    old = msgspec.structs.replace(old, configuration={**old.configuration, **named})
    highest = {name: _highest(name, current, old) for name in _NEVER_FALL if name in current.configuration}
    return msgspec.structs.replace(old, configuration={**old.configuration, **highest})


def _highest(name: str, current: Metadata, old: Metadata) -> str:
    texts = (metadata.configuration.get(name) for metadata in (current, old))
    return str(max((int(text) for text in texts if text and text.isdigit()), default=0))


def _domains(current: Snapshot, old: Snapshot) -> tuple[DomainMetadata, ...]:
    now, then = current.state.domains, old.state.domains
    back = [d for name, d in then.items() if name != _ROW_TRACKING and now.get(name) != d]
    gone = [_without(d) for name, d in now.items() if name != _ROW_TRACKING and name not in then]
    return (*back, *gone)


def _without(domain: DomainMetadata) -> DomainMetadata:
    """What is said of a domain that the old version did not have."""
    if domain.domain == CLUSTERING:
        # The feature stays, and with it the word by which columns: by none, as the reference says it.
        return clustering_domain([])
    return DomainMetadata(domain=domain.domain, configuration=domain.configuration, removed=True)
