"""How each table feature leaves: what of it is in the way, and which of its properties go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from alluvium.delta.description.create import ensure_columns
from alluvium.delta.features.columns.check_constraints import PREFIX as CONSTRAINTS
from alluvium.delta.features.iceberg import materialize_partition_columns
from alluvium.delta.features.log import checkpoint_protection as protection
from alluvium.delta.features.rows.row_ids import (
    ENABLED,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    SUSPENDED,
)
from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.log.segment import list_log
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.column_ids import MAX_COLUMN_ID
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.upkeep.drop.feature_history import first_checkpoint_of_second_kind, first_removal_with_vector
from alluvium.delta.upkeep.older_types import files_of_older_types
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.spark_json import format_schema
from alluvium.schema.walk import drop_metadata, fields_within


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


def every_file(snapshot: Snapshot) -> pa.Table:
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
SET, UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
_ICT = "delta.enableInCommitTimestamps"
#: Features that can leave. All others are in files or schema for good, or need no reader or writer of their own.
REMOVALS: Mapping[str, Removal] = {
    "checkConstraints": Removal({}, problem=_constraints),
    "domainMetadata": Removal({}, problem=_domains),
    "rowTracking": Removal(
        # Suspended, so that nobody numbers the rows again while their numbers are taken away.
        {ENABLED: "false", SUSPENDED: "true"},
        SET,
        cleared=(ENABLED, SUSPENDED, MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION),
    ),
    "inCommitTimestamp": Removal(
        {
            _ICT: "false",
            "delta.inCommitTimestampEnablementVersion": None,
            "delta.inCommitTimestampEnablementTimestamp": None,
        },
        UNSET,
    ),
    "materializePartitionColumns": Removal({materialize_partition_columns.ENABLED: None}),
    "vacuumProtocolCheck": Removal({}, hides_history=True),
    "v2Checkpoint": Removal(
        {"delta.checkpointPolicy": "classic"}, SET, hides_history=True, kept=first_checkpoint_of_second_kind
    ),
    "deletionVectors": Removal(
        {"delta.enableDeletionVectors": None},
        UNSET,
        problem=_live_vectors,
        hides_history=True,
        leftover=_with_vectors,
        kept=first_removal_with_vector,
    ),
    "typeWidening": Removal(
        {"delta.enableTypeWidening": None},
        UNSET,
        problem=_widened,
        hides_history=True,
        leftover=files_of_older_types,
    ),
    "columnMapping": Removal(
        {MODE: None, MAX_COLUMN_ID: None},
        REMOVE_MAPPING,
        problem=_mapped,
        hides_history=True,
        leftover=every_file,
    ),
    "checkpointProtection": Removal({protection.PROPERTY: None}, problem=_protected, is_of_history=True),
}


def without_mapping(config: TableConfig) -> TableConfig:
    """The table with columns that go by their names in files, as they do in files that are written by it.

    Raises:
        InvalidRequest: A name that only column mapping allows.
    """
    unmapped = with_properties(config, REMOVALS["columnMapping"].properties)
    ensure_columns(unmapped.schema, unmapped.metadata.configuration)
    return unmapped


def with_properties(config: TableConfig, properties: Mapping[str, str | None]) -> TableConfig:
    """The table with other values of properties that it has; without those whose new value is None."""
    folded = {name.lower(): value for name, value in properties.items()}
    changed = {n: folded.get(n.lower(), value) for n, value in config.metadata.configuration.items()}
    if properties.get(SUSPENDED) is not None:
        changed[SUSPENDED] = properties[SUSPENDED]
    configuration = {name: value for name, value in changed.items() if value is not None}
    schema = config.metadata.schema_string
    if MODE in properties and config.mapping_mode != "none":
        # Physical and logical names are the same, so that files are found without the former.
        schema = format_schema(drop_metadata(config.schema, lambda key: key in (COLUMN_ID, PHYSICAL_NAME)))
    metadata = msgspec.structs.replace(config.metadata, configuration=configuration, schema_string=schema)
    return config if metadata == config.metadata else parse_config(config.protocol, metadata)
