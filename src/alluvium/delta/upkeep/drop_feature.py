"""A table feature that leaves a table: its properties first, then what protects the history, then the protocol.

Which features can leave, what they leave behind and in which order things are committed follows the reference
implementation. Older versions stay: those that need a reader of the feature are hidden behind checkpoints, which
`checkpointProtection` keeps in their place. Specification: "Checkpoint Protection".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commit.afterwards import afterwards
from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.create import ensure_columns
from alluvium.delta.description.evolve import to_json
from alluvium.delta.description.upgrade import find_droppable, protocol_of, supported_features, without_feature
from alluvium.delta.features.columns.check_constraints import PREFIX as CONSTRAINTS
from alluvium.delta.features.iceberg import materialize_partition_columns
from alluvium.delta.features.log import checkpoint_protection as protection
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.deletion_vectors import parse_descriptors, vector_address
from alluvium.delta.features.rows.row_ids import DOMAIN as ROW_IDS
from alluvium.delta.features.rows.row_ids import (
    ENABLED,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    SUSPENDED,
)
from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.log.segment import list_log
from alluvium.delta.log_upkeep.checkpoints import now_by_store, refresh_to, write_checkpoint_at
from alluvium.delta.log_upkeep.log_cleanup import clean_up_log
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.column_ids import MAX_COLUMN_ID
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.terms.properties import TRUNCATION_RETENTION, parse_properties
from alluvium.delta.terms.spec import FILES, TOMBSTONES, DomainMetadata
from alluvium.delta.upkeep.feature_history import (
    first_checkpoint_of_second_kind,
    first_removal_with_vector,
    first_with_traces,
)
from alluvium.delta.upkeep.older_types import files_of_older_types
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import publish, written_files
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import JsonValue, Struct
from alluvium.schema.walk import drop_metadata, fields_within
from alluvium.storage.locating import locating
from alluvium.storage.paths import encode_uri_paths

#: Checkpoints between the last version with the feature and the first without: one reader may read from an older one
#: while another is written.
_BARRIERS = 3
#: Writes live files (`FILES`) of the newest version anew under another configuration, in a commit that changes no row;
#: gives the version that it made.
Rewrite: TypeAlias = Callable[[Snapshot, pa.Table, TableConfig, Operation], Snapshot]


@dataclass(frozen=True, slots=True)
class Removal:
    """How a feature leaves.

    Attributes:
        properties: What its properties become in a commit of their own; None: they go.
        said: What the history calls that commit; None: it is not made, and the properties change with the protocol.
        cleared: Properties that go with the protocol.
        problem: What of it is left in a version, and what to do about that; None: nothing.
        hides_history: Whether older versions cannot be read without it.
        leftover: Live files (`FILES`) that must be written anew; None: no rewrite takes the problem away.
        is_of_history: Whether it is about older versions, so that its problem goes with them.
        kept: The oldest version that can be read and whose entry or checkpoint needs the feature; None: none does.
    """

    properties: Mapping[str, str | None]
    said: str | None = None
    cleared: tuple[str, ...] = ()
    problem: Callable[[Snapshot], tuple[str, str] | None] = lambda snapshot: None
    hides_history: bool = False
    leftover: Callable[[Snapshot], pa.Table] | None = None
    is_of_history: bool = False
    kept: Callable[[Snapshot], int | None] = lambda snapshot: None


def _live_vectors(snapshot: Snapshot) -> tuple[str, str] | None:
    files = snapshot.files
    count = files.num_rows - files.column("deletionVector").null_count
    if count == 0:
        return None
    return f"{count} files have rows that are deleted by vectors", "rewrite these files, so that the vectors go"


def _with_vectors(snapshot: Snapshot) -> pa.Table:
    return with_stats_text(snapshot.files.filter(snapshot.files.column("deletionVector").is_valid()))


def _every_file(snapshot: Snapshot) -> pa.Table:
    return with_stats_text(snapshot.files)


def _constraints(snapshot: Snapshot) -> tuple[str, str] | None:
    names = [k[len(CONSTRAINTS) :] for k in snapshot.config.metadata.configuration if k.startswith(CONSTRAINTS)]
    return (f"there are constraints: {', '.join(sorted(names))}", "drop the constraints first") if names else None


def _domains(snapshot: Snapshot) -> tuple[str, str] | None:
    names = sorted(name for name, domain in snapshot.state.domains.items() if not domain.removed)
    return (f"there are domains: {', '.join(names)}", "remove them with the engine that owns them") if names else None


def _widened(snapshot: Snapshot) -> tuple[str, str] | None:
    """ "Writers must ensure no `delta.typeChanges` metadata key is present in the table schema." """
    found = [".".join(path) for path, f in fields_within(snapshot.config.schema) if TYPE_CHANGES in f.metadata]
    if not found:
        return None
    return f"types were widened: {', '.join(found)}", "overwrite the table with overwriteSchema, so that its files fit"


def _mapped(snapshot: Snapshot) -> tuple[str, str] | None:
    """Files may stay as they are only if they have the columns under their names, and no column that there is no more:
    a later one of its name would show its values.
    """
    config = snapshot.config
    fields = list(fields_within(config.schema))
    hint = "drop the feature in a Spark session, which writes the files anew"
    found = [".".join(path) for path, f in fields if f.metadata.get(PHYSICAL_NAME, f.name) != f.name]
    if found:
        return f"files know columns by other names: {', '.join(found[:5])}", hint
    if config.mapping_mode == "none":
        return None
    if config.mapping_mode == "id":
        return "files know columns by ids, and may call them as they like", hint
    ids = {str(f.metadata.get(COLUMN_ID)) for _, f in fields}
    numbered = {str(number) for number in range(1, len(fields) + 1)}
    if ids != numbered or config.metadata.configuration.get(MAX_COLUMN_ID) != str(len(fields)):
        return "files may have columns that were dropped", hint
    return None


def _protected(snapshot: Snapshot) -> tuple[str, str] | None:
    """The feature may go when the history that it protects is gone."""
    oldest = next(iter(list_log(snapshot.store).commits), snapshot.version)
    before = protection.protected_before(snapshot.config)
    if before <= oldest:
        return None
    return (
        f"checkpoints before version {before} are protected, and versions from {oldest} on are there",
        "wait until these versions have expired and a clean-up of the log has removed them",
    )


REMOVE_MAPPING = "REMOVE COLUMN MAPPING"
_SET, _UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
_ICT = "delta.enableInCommitTimestamps"
#: Features that can leave. All others are in files or schema for good, or need no reader or writer of their own.
REMOVALS: Mapping[str, Removal] = {
    "checkConstraints": Removal({}, problem=_constraints),
    "domainMetadata": Removal({}, problem=_domains),
    "rowTracking": Removal(
        # Suspended, so that nobody numbers the rows again while their numbers are taken away.
        {ENABLED: "false", SUSPENDED: "true"},
        _SET,
        cleared=(ENABLED, SUSPENDED, MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION),
    ),
    "inCommitTimestamp": Removal(
        {
            _ICT: "false",
            "delta.inCommitTimestampEnablementVersion": None,
            "delta.inCommitTimestampEnablementTimestamp": None,
        },
        _UNSET,
    ),
    "materializePartitionColumns": Removal({materialize_partition_columns.ENABLED: None}),
    "vacuumProtocolCheck": Removal({}, hides_history=True),
    "v2Checkpoint": Removal(
        {"delta.checkpointPolicy": "classic"}, _SET, hides_history=True, kept=first_checkpoint_of_second_kind
    ),
    "deletionVectors": Removal(
        {"delta.enableDeletionVectors": None},
        _UNSET,
        problem=_live_vectors,
        hides_history=True,
        leftover=_with_vectors,
        kept=first_removal_with_vector,
    ),
    "typeWidening": Removal(
        {"delta.enableTypeWidening": None},
        _UNSET,
        problem=_widened,
        hides_history=True,
        leftover=files_of_older_types,
    ),
    "columnMapping": Removal(
        {MODE: None, MAX_COLUMN_ID: None},
        REMOVE_MAPPING,
        problem=_mapped,
        hides_history=True,
        leftover=_every_file,
    ),
    "checkpointProtection": Removal({protection.PROPERTY: None}, problem=_protected, is_of_history=True),
}


def drop_feature(
    snapshot: Snapshot,
    name: str,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    rewrite: Rewrite | None = None,
    truncate: bool = False,
) -> Committed | Preview:
    """Takes the support of a feature from a table.

    Properties that ask for the feature are set back in a commit of their own, so that no writer uses it any more. Where
    older versions cannot be read without it, empty commits with a checkpoint each follow, behind which these versions
    are hidden. The last commit changes the protocol; it stands only if nobody committed meanwhile.

    Args:
        snapshot: The newest version.
        name: The feature, in any case.
        engine: For the history.
        dry_run: Only tell what would change.
        retry: How often the commits before the last are tried.
        rewrite: Who writes files anew that have something of the feature in them; None: such a table is refused.
        truncate: Whether older versions that need the feature must be gone, instead of being hidden.

    Raises:
        InvalidRequest: With `truncate`: no reader needs the feature (`feature-without-history`), or versions that use
            it have not expired yet (`feature-in-history`); its use has ended, and the call can be repeated later.
        InvalidRequest: It is in use or needed by another (`feature-in-use`), the table does not support it
            (`feature-not-supported`), it can never be dropped (`feature-not-droppable`), or it does not exist.
        CommitConflict: Somebody wrote to the table just then.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        feature = find_droppable(name, REMOVALS)
        removal = REMOVALS[feature]
        if truncate and not removal.hides_history and not removal.is_of_history:
            raise InvalidRequest(
                f"older versions can be read without the feature {feature}: there is no history to truncate",
                code="feature-without-history",
                hint="leave truncateHistory out",
            )
        without_feature(snapshot.config.protocol, feature)
        if (rewrite is None or removal.leftover is None) and not (truncate and removal.is_of_history):
            _ensure_unused(snapshot, feature, removal)
        disabled = _with_properties(snapshot.config, removal.properties)
        last = _final_config(disabled, feature, removal, None if truncate else snapshot.version + 1)
        ensure_columns(last.schema, last.metadata.configuration)
    operation = Operation("DROP FEATURE", {"featureName": feature, "truncateHistory": truncate}, engine=engine)
    if dry_run:
        return Preview(snapshot.version, operation, differences(snapshot.config, last))
    snapshot = _disable(snapshot, removal, disabled, engine, retry, rewrite)
    if feature == "rowTracking":
        snapshot = _take_row_ids(snapshot, engine)
    if feature == "deletionVectors":
        snapshot = _remember_vectors(snapshot, engine, retry)
    # Of a truncation one that tells the store's clock, too.
    for _ in range(1 if truncate else _BARRIERS if removal.hides_history else 0):
        snapshot = _commit(snapshot, _draft(snapshot, Operation("Empty Commit", engine=engine)), retry)
        write_checkpoint_at(snapshot)
    if truncate:
        _truncate(snapshot, feature, removal)
    return _downgrade(snapshot, feature, operation, truncate)


def _downgrade(snapshot: Snapshot, feature: str, operation: Operation, truncate: bool) -> Committed:
    """The commit that changes the protocol."""
    removal = REMOVALS[feature]
    with locating(snapshot.store, snapshot.version):
        _ensure_unused(snapshot, feature, removal)
        disabled = _with_properties(snapshot.config, removal.properties)
        config = _final_config(disabled, feature, removal, None if truncate else snapshot.version + 1)
    domains = _without_mark(snapshot) if feature == "rowTracking" else ()
    actions = Actions(protocol=config.protocol, metadata=config.metadata, domains=domains)
    # A change of the protocol holds for the version that it was judged on, and for no other: any row of others may
    # bring the feature back.
    draft = Draft(actions, ReadScope.nothing(), operation, snapshot.version, config, is_alone=True)
    published = publish(snapshot.store, draft, snapshot, DEFAULT_RETRY)
    if removal.hides_history and not truncate:
        version = published.entry.version
        standing = f"version {version} of {snapshot.store.url}"
        afterwards(standing, "checkpoint", lambda: write_checkpoint_at(refresh_to(snapshot, version)))
    nothing = written_files(config, WRITTEN_FILES.empty_table())
    return Committed(published.entry.version, nothing, {}, published.attempts)


def _disable(
    snapshot: Snapshot,
    removal: Removal,
    disabled: TableConfig,
    engine: str,
    retry: RetryPolicy,
    rewrite: Rewrite | None,
) -> Snapshot:
    """Sets properties back, and has what is left of the feature in files and schema taken away."""
    in_use = rewrite is not None and removal.leftover is not None and removal.problem(snapshot) is not None
    if rewrite is not None and in_use and removal.said == REMOVE_MAPPING:
        # Files and names change together.
        return rewrite(snapshot, _every_file(snapshot), disabled, Operation(REMOVE_MAPPING, engine=engine))
    if removal.said is not None and disabled != snapshot.config:
        said = Operation(removal.said, _parameters(snapshot.config, removal), engine=engine)
        snapshot = _commit(snapshot, _draft(snapshot, said, disabled), retry)
    if rewrite is not None and in_use and removal.leftover is not None:
        said = Operation("REORG", {"predicate": "[]", "applyPurge": True}, engine=engine)
        alone = -1
        # Whoever came between may have added a file that has something of it, too.
        while snapshot.version != alone and (files := removal.leftover(snapshot)).num_rows:
            alone = snapshot.version + 1
            snapshot = rewrite(snapshot, files, snapshot.config, said)
        snapshot = _forget_types(snapshot, engine, retry)
    return snapshot


def _forget_types(snapshot: Snapshot, engine: str, retry: RetryPolicy) -> Snapshot:
    """ "Writers must ensure no `delta.typeChanges` metadata key is present in the table schema": files are of today."""
    config = snapshot.config
    schema = drop_metadata(config.schema, lambda key: key == TYPE_CHANGES)
    if schema == config.schema:
        return snapshot
    metadata = msgspec.structs.replace(config.metadata, schema_string=format_schema(schema))
    changed = [f for _, f in fields_within(config.schema) if TYPE_CHANGES in f.metadata]
    shown = msgspec.json.decode(format_schema(Struct(tuple(changed))))["fields"]
    said = Operation("DROP FEATURE", {"columns": to_json(shown)}, engine=engine)
    return _commit(snapshot, _draft(snapshot, said, parse_config(config.protocol, metadata)), retry)


def _ensure_unused(snapshot: Snapshot, feature: str, removal: Removal) -> None:
    problem = removal.problem(snapshot)
    if problem is not None:
        raise InvalidRequest(
            f"the feature {feature} is in use: {problem[0]}", code="feature-in-use", hint=f"{problem[1]}"
        )


def without_mapping(config: TableConfig) -> TableConfig:
    """The table with columns that go by their names in files, as they do in files that are written by it.

    Raises:
        InvalidRequest: A name that only column mapping allows.
    """
    unmapped = _with_properties(config, REMOVALS["columnMapping"].properties)
    ensure_columns(unmapped.schema, unmapped.metadata.configuration)
    return unmapped


def _with_properties(config: TableConfig, properties: Mapping[str, str | None]) -> TableConfig:
    """The table with other values of properties that it has; without those whose new value is None."""
    folded = {name.casefold(): value for name, value in properties.items()}
    changed = {n: folded.get(n.casefold(), value) for n, value in config.metadata.configuration.items()}
    if properties.get(SUSPENDED) is not None:
        changed[SUSPENDED] = properties[SUSPENDED]
    configuration = {name: value for name, value in changed.items() if value is not None}
    schema = config.metadata.schema_string
    if MODE in properties and config.mapping_mode != "none":
        # Physical and logical names are the same, so that files are found without the former.
        schema = format_schema(drop_metadata(config.schema, lambda key: key in (COLUMN_ID, PHYSICAL_NAME)))
    metadata = msgspec.structs.replace(config.metadata, configuration=configuration, schema_string=schema)
    return config if metadata == config.metadata else parse_config(config.protocol, metadata)


def _parameters(config: TableConfig, removal: Removal) -> dict[str, JsonValue]:
    """As the reference's history has them."""
    if removal.said == _SET:
        return {"properties": to_json({k: v for k, v in removal.properties.items() if v is not None})}
    if removal.said == _UNSET:
        has = {name.casefold() for name in config.metadata.configuration}
        return {"properties": to_json([n for n in removal.properties if n.casefold() in has]), "ifExists": True}
    return {}


def _truncate(snapshot: Snapshot, feature: str, removal: Removal) -> None:
    """Removes expired versions, and refuses to go on while there are others that need the feature."""
    retention_ms = parse_properties(snapshot.config.metadata.configuration).truncation_retention_ms
    clean_up_log(snapshot, now_by_store(snapshot), retention_ms=retention_ms)
    if removal.is_of_history:
        # Whose versions are gone, or not.
        problem = removal.problem(snapshot)
        said = None if problem is None else f"the feature {feature} is in use: {problem[0]}"
    else:
        # To the reference a table whose types may be widened has no trace of that before one is.
        properties = {} if feature == "typeWidening" else removal.properties
        version = first_with_traces(snapshot, properties, lambda found: removal.problem(found) is not None)
        version = removal.kept(snapshot) if version is None else version
        text = f"the feature {feature} is used no more, but version {version} needs it and can still be read"
        said = None if version is None else text
    if said is not None:
        raise InvalidRequest(
            said,
            code="feature-in-history",
            hint=f"repeat the call when such versions are older than {TRUNCATION_RETENTION} (24 hours by default)"
            + ("" if removal.is_of_history else ", or leave truncateHistory out"),
        )


def _final_config(config: TableConfig, feature: str, removal: Removal, version: int | None) -> TableConfig:
    """The table without the feature, and with checkpoints before a version protected where they hide older ones."""
    protocol, metadata = without_feature(config.protocol, feature), config.metadata
    configuration = {k: v for k, v in metadata.configuration.items() if k not in removal.cleared}
    if removal.hides_history and version is not None:
        protocol = protocol_of({*supported_features(protocol), protection.FEATURE.name})
        configuration[protection.PROPERTY] = str(version)
    return parse_config(protocol, msgspec.structs.replace(metadata, configuration=configuration))


def _draft(snapshot: Snapshot, operation: Operation, config: TableConfig | None = None) -> Draft:
    actions = Actions() if config is None else Actions(metadata=config.metadata)
    return Draft(actions, ReadScope.nothing(), operation, snapshot.version, config)


def _take_row_ids(snapshot: Snapshot, engine: str) -> Snapshot:
    """Commits the files without their row ids: should the feature come back, ids begin anew."""
    added = _without_row_ids(snapshot.files)
    if added.num_rows == 0:
        return snapshot
    operation = Operation("ROW TRACKING UNBACKFILL", {"batchId": "0"}, engine=engine)
    # A file that somebody removes meanwhile must not come back by this.
    draft = Draft(Actions(added=added), ReadScope.table(), operation, snapshot.version, is_alone=True)
    return _commit(snapshot, draft, DEFAULT_RETRY)


def _remember_vectors(snapshot: Snapshot, engine: str, retry: RetryPolicy) -> Snapshot:
    """Commits the files of vectors that older versions need as removed ones.

    Clients that do not know vectors take such files for litter, but leave alone what was removed only lately.
    """
    tombstones = _tombstones_of_vectors(snapshot)
    operation = Operation("Deletion Vector Tombstones", engine=engine)
    return _commit(
        snapshot, Draft(Actions(removed=tombstones), ReadScope.nothing(), operation, snapshot.version), retry
    )


def _tombstones_of_vectors(snapshot: Snapshot) -> pa.Table:
    """One row for each file of vectors in the table's directory that a removed file points to."""
    vectors = snapshot.tombstones.column("deletionVector").combine_chunks()
    vectors = vectors.filter(pc.equal(pc.struct_field(vectors, "storageType"), "u"))
    # Many vectors share a file: a descriptor each is enough.
    names = pc.struct_field(vectors, "pathOrInlineDv")
    first = pc.index_in(pc.unique(names), value_set=names)
    root = snapshot.store.url.rstrip("/") + "/"
    addresses = [vector_address(vector, root) for vector in parse_descriptors(vectors.take(first))]
    paths = pa.array(sorted(address.removeprefix(root) for address in addresses), pa.string())
    count = len(paths)
    known = {
        "path": encode_uri_paths(paths),
        "deletionTimestamp": pa.repeat(pa.scalar(int(time.time() * 1000), pa.int64()), count),
        "dataChange": pa.repeat(pa.scalar(False), count),
    }
    return pa.Table.from_arrays([known.get(f.name, pa.nulls(count, f.type)) for f in TOMBSTONES], schema=TOMBSTONES)


def _without_row_ids(files: pa.Table) -> pa.Table:
    """Live files that have row ids, as they are added again without."""
    numbered = with_stats_text(files.filter(files.column("baseRowId").is_valid()))
    count = numbered.num_rows
    for name, values in {
        "baseRowId": pa.nulls(count, pa.int64()),
        "defaultRowCommitVersion": pa.nulls(count, pa.int64()),
        "dataChange": pa.repeat(pa.scalar(False), count),
    }.items():
        place = numbered.schema.get_field_index(name)
        numbered = numbered.set_column(place, FILES.field(place), values)
    return numbered


def _without_mark(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    mark = snapshot.state.domains.get(ROW_IDS)
    if mark is None:
        return ()
    return (DomainMetadata(domain=ROW_IDS, configuration=mark.configuration, removed=True),)


def _commit(snapshot: Snapshot, draft: Draft, retry: RetryPolicy) -> Snapshot:
    published = publish(snapshot.store, draft, snapshot, retry)
    return refresh_to(snapshot, published.entry.version)
