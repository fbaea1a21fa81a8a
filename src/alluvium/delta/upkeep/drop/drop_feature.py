"""A table feature that leaves a table: its properties first, then what protects the history, then the protocol.

Which features can leave, what they leave behind and in which order things are committed follows the reference
implementation. Older versions stay: those that need a reader of the feature are hidden behind checkpoints, which
`checkpointProtection` keeps in their place. Specification: "Checkpoint Protection".
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
from alluvium.delta.features.log import checkpoint_protection as protection
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.deletion_vectors import parse_descriptors, vector_address
from alluvium.delta.features.rows.row_ids import DOMAIN as ROW_IDS
from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.log_upkeep.checkpoints import now_by_store, refresh_to, write_checkpoint_at
from alluvium.delta.log_upkeep.log_cleanup import clean_up_log
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.properties import TRUNCATION_RETENTION, parse_properties
from alluvium.delta.terms.spec import FILES, TOMBSTONES, DomainMetadata
from alluvium.delta.upkeep.drop.feature_history import first_with_traces
from alluvium.delta.upkeep.drop.removals import (
    REMOVALS,
    REMOVE_MAPPING,
    SET,
    UNSET,
    Removal,
    every_file,
    with_properties,
)
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import publish, written_files
from alluvium.errors import CommitConflict, InvalidRequest
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
        disabled = with_properties(snapshot.config, removal.properties)
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
        disabled = with_properties(snapshot.config, removal.properties)
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
        return rewrite(snapshot, every_file(snapshot), disabled, Operation(REMOVE_MAPPING, engine=engine))
    if removal.said is not None and disabled != snapshot.config:
        said = Operation(removal.said, _parameters(snapshot.config, removal), engine=engine)
        snapshot = _commit(snapshot, _draft(snapshot, said, disabled), retry)
    if rewrite is not None and in_use and removal.leftover is not None:
        snapshot = _rewrite_leftover(snapshot, removal, rewrite, engine, retry)
    return snapshot


def _rewrite_leftover(
    snapshot: Snapshot, removal: Removal, rewrite: Rewrite, engine: str, retry: RetryPolicy
) -> Snapshot:
    """Writes files anew; of widened types until nobody came between the last look at the files and the commit that
    forgets which types they had.
    """
    leftover = removal.leftover
    assert leftover is not None, "there is something to write anew"
    said = Operation("REORG", {"predicate": "[]", "applyPurge": True}, engine=engine)
    repeats_left = retry.max_repeats
    while True:
        alone = -1
        # Whoever came between may have added a file that has something of it, too.
        while snapshot.version != alone and (files := leftover(snapshot)).num_rows:
            alone = snapshot.version + 1
            snapshot = rewrite(snapshot, files, snapshot.config, said)
        if removal is not REMOVALS["typeWidening"]:
            return snapshot
        try:
            return _forget_types(snapshot, engine)
        except CommitConflict as error:
            if error.code != "concurrent-commit" or not repeats_left:
                raise
        repeats_left -= 1
        snapshot = refresh(snapshot)


def _forget_types(snapshot: Snapshot, engine: str) -> Snapshot:
    """ "Writers must ensure no `delta.typeChanges` metadata key is present in the table schema": files are of today."""
    config = snapshot.config
    schema = drop_metadata(config.schema, lambda key: key == TYPE_CHANGES)
    if schema == config.schema:
        return snapshot
    metadata = msgspec.structs.replace(config.metadata, schema_string=format_schema(schema))
    changed = [f for _, f in fields_within(config.schema) if TYPE_CHANGES in f.metadata]
    shown = msgspec.json.decode(format_schema(Struct(tuple(changed))))["fields"]
    said = Operation("DROP FEATURE", {"columns": to_json(shown)}, engine=engine)
    forgotten = parse_config(config.protocol, metadata)
    draft = Draft(Actions(metadata=metadata), ReadScope.nothing(), said, snapshot.version, forgotten, is_alone=True)
    return _commit(snapshot, draft, DEFAULT_RETRY)


def _ensure_unused(snapshot: Snapshot, feature: str, removal: Removal) -> None:
    problem = removal.problem(snapshot)
    if problem is not None:
        raise InvalidRequest(
            f"the feature {feature} is in use: {problem[0]}", code="feature-in-use", hint=f"{problem[1]}"
        )


def _parameters(config: TableConfig, removal: Removal) -> dict[str, JsonValue]:
    """As the reference's history has them."""
    if removal.said == SET:
        return {"properties": to_json({k: v for k, v in removal.properties.items() if v is not None})}
    if removal.said == UNSET:
        has = {name.lower() for name in config.metadata.configuration}
        return {"properties": to_json([n for n in removal.properties if n.lower() in has]), "ifExists": True}
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
