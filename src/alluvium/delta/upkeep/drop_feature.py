"""A table feature that leaves a table: its properties first, then what protects the history, then the protocol.

Which features can leave, what they leave behind and in which order things are committed follows the reference
implementation. Older versions stay: those that need a reader of the feature are hidden behind checkpoints, which
`checkpointProtection` keeps in their place. Specification: "Checkpoint Protection".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.actions import Actions
from alluvium.delta.column_ids import MAX_COLUMN_ID
from alluvium.delta.config import TableConfig, parse_config
from alluvium.delta.create import ensure_columns
from alluvium.delta.differences import differences
from alluvium.delta.draft import Draft
from alluvium.delta.evolve import to_json
from alluvium.delta.features import checkpoint_protection as protection
from alluvium.delta.features import materialize_partition_columns
from alluvium.delta.features.check_constraints import PREFIX as CONSTRAINTS
from alluvium.delta.features.deletion_vectors import parse_descriptors, vector_address
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.type_widening import TYPE_CHANGES
from alluvium.delta.log.segment import list_log
from alluvium.delta.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.row_ids import DOMAIN as ROW_IDS
from alluvium.delta.row_ids import ENABLED, MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, SUSPENDED
from alluvium.delta.snapshot import Snapshot, locating
from alluvium.delta.spec import FILES, TOMBSTONES, DomainMetadata
from alluvium.delta.target import publish, written_files
from alluvium.delta.upgrade import find_droppable, protocol_of, supported_features, without_feature
from alluvium.delta.upkeep.checkpoints import refresh_to, write_checkpoint_at
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import JsonValue
from alluvium.schema.walk import drop_metadata, fields_within
from alluvium.storage.paths import encode_uri_paths

#: Checkpoints between the last version with the feature and the first without: one reader may read from an older one
#: while another is written.
_BARRIERS = 3
#: A change of the protocol holds for the version that it was judged on, and for no other.
_ONCE = RetryPolicy(max_attempts=1)


@dataclass(frozen=True, slots=True)
class Removal:
    """How a feature leaves.

    Attributes:
        properties: What its properties become in a commit of their own; None: they go.
        said: What the history calls that commit; None: it is not made, and the properties change with the protocol.
        cleared: Properties that go with the protocol.
        problem: What of it is left in a version, and what to do about that; None: nothing.
        hides_history: Whether older versions cannot be read without it.
    """

    properties: Mapping[str, str | None]
    said: str | None = None
    cleared: tuple[str, ...] = ()
    problem: Callable[[Snapshot], tuple[str, str] | None] = lambda snapshot: None
    hides_history: bool = False


def _live_vectors(snapshot: Snapshot) -> tuple[str, str] | None:
    files = snapshot.files
    count = files.num_rows - files.column("deletionVector").null_count
    if count == 0:
        return None
    return f"{count} files have rows that are deleted by vectors", "rewrite these files, so that the vectors go"


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


def _renamed(snapshot: Snapshot) -> tuple[str, str] | None:
    fields = fields_within(snapshot.config.schema)
    found = [".".join(path) for path, f in fields if f.metadata.get(PHYSICAL_NAME, f.name) != f.name]
    if not found:
        return None
    return f"files know columns by other names: {', '.join(found[:5])}", "write the rows into a new table"


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
    "v2Checkpoint": Removal({"delta.checkpointPolicy": "classic"}, _SET, hides_history=True),
    "deletionVectors": Removal(
        {"delta.enableDeletionVectors": None}, _UNSET, problem=_live_vectors, hides_history=True
    ),
    "typeWidening": Removal({"delta.enableTypeWidening": None}, _UNSET, problem=_widened, hides_history=True),
    "columnMapping": Removal(
        {MODE: None, MAX_COLUMN_ID: None}, "REMOVE COLUMN MAPPING", problem=_renamed, hides_history=True
    ),
    "checkpointProtection": Removal({protection.PROPERTY: None}, problem=_protected),
}


def drop_feature(
    snapshot: Snapshot, name: str, engine: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
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

    Raises:
        InvalidRequest: It is in use or needed by another (`feature-in-use`), the table does not support it
            (`feature-not-supported`), it can never be dropped (`feature-not-droppable`), or it does not exist.
        CommitConflict: Somebody wrote to the table just then.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        feature = find_droppable(name, REMOVALS)
        removal = REMOVALS[feature]
        without_feature(snapshot.config.protocol, feature)
        _ensure_unused(snapshot, feature, removal)
        disabled = _with_properties(snapshot.config, removal.properties)
        last = _final_config(disabled, feature, removal, snapshot.version + 1)
        ensure_columns(last.schema, last.metadata.configuration)
    operation = Operation("DROP FEATURE", {"featureName": feature, "truncateHistory": False}, engine=engine)
    if dry_run:
        return Preview(snapshot.version, operation, differences(snapshot.config, last))
    if removal.said is not None and disabled != snapshot.config:
        said = Operation(removal.said, _parameters(snapshot.config, removal), engine=engine)
        snapshot = _commit(snapshot, _draft(snapshot, said, disabled), retry)
    if feature == "rowTracking":
        snapshot = _take_row_ids(snapshot, engine)
    if feature == "deletionVectors":
        snapshot = _remember_vectors(snapshot, engine, retry)
    if removal.hides_history:
        for _ in range(_BARRIERS):
            snapshot = _commit(snapshot, _draft(snapshot, Operation("Empty Commit", engine=engine)), retry)
            write_checkpoint_at(snapshot)
    with locating(snapshot.store, snapshot.version):
        _ensure_unused(snapshot, feature, removal)
        disabled = _with_properties(snapshot.config, removal.properties)
        config = _final_config(disabled, feature, removal, snapshot.version + 1)
    domains = _without_mark(snapshot) if feature == "rowTracking" else ()
    # It has read the whole table, for any row may bring the feature back.
    draft = Draft(
        Actions(protocol=config.protocol, metadata=config.metadata, domains=domains),
        ReadScope(blind=False),
        operation,
        snapshot.version,
        config,
    )
    published = publish(snapshot.store, draft, snapshot, _ONCE)
    if removal.hides_history:
        write_checkpoint_at(refresh_to(snapshot, published.entry.version))
    nothing = written_files(config, WRITTEN_FILES.empty_table())
    return Committed(published.entry.version, nothing, {}, published.attempts)


def _ensure_unused(snapshot: Snapshot, feature: str, removal: Removal) -> None:
    problem = removal.problem(snapshot)
    if problem is not None:
        raise InvalidRequest(
            f"the feature {feature} is in use: {problem[0]}", code="feature-in-use", hint=f"{problem[1]}"
        )


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


def _final_config(config: TableConfig, feature: str, removal: Removal, version: int) -> TableConfig:
    """The table without the feature, and with checkpoints protected where they hide older versions."""
    protocol, metadata = without_feature(config.protocol, feature), config.metadata
    configuration = {k: v for k, v in metadata.configuration.items() if k not in removal.cleared}
    if removal.hides_history:
        protocol = protocol_of({*supported_features(protocol), protection.FEATURE.name})
        configuration[protection.PROPERTY] = str(version)
    return parse_config(protocol, msgspec.structs.replace(metadata, configuration=configuration))


def _draft(snapshot: Snapshot, operation: Operation, config: TableConfig | None = None) -> Draft:
    actions = Actions() if config is None else Actions(metadata=config.metadata)
    return Draft(actions, ReadScope(), operation, snapshot.version, config)


def _take_row_ids(snapshot: Snapshot, engine: str) -> Snapshot:
    """Commits the files without their row ids: should the feature come back, ids begin anew."""
    added = _without_row_ids(snapshot.files)
    if added.num_rows == 0:
        return snapshot
    operation = Operation("ROW TRACKING UNBACKFILL", {"batchId": "0"}, engine=engine)
    # A file that somebody removes meanwhile must not come back by this.
    draft = Draft(Actions(added=added), ReadScope(blind=False), operation, snapshot.version)
    return _commit(snapshot, draft, _ONCE)


def _remember_vectors(snapshot: Snapshot, engine: str, retry: RetryPolicy) -> Snapshot:
    """Commits the files of vectors that older versions need as removed ones.

    Clients that do not know vectors take such files for litter, but leave alone what was removed only lately.
    """
    tombstones = _tombstones_of_vectors(snapshot)
    if tombstones.num_rows == 0:
        return snapshot
    operation = Operation("Deletion Vector Tombstones", engine=engine)
    return _commit(snapshot, Draft(Actions(removed=tombstones), ReadScope(), operation, snapshot.version), retry)


def _tombstones_of_vectors(snapshot: Snapshot) -> pa.Table:
    """One row for each file of vectors in the table's directory that a removed file points to."""
    vectors = snapshot.state.tombstones.column("deletionVector").combine_chunks()
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
    numbered = files.filter(files.column("baseRowId").is_valid()).select(FILES.names)
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
