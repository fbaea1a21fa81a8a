"""What a clone says of itself: as its source, but for what is about the source's own history. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from alluvium.delta.description.create import find_column
from alluvium.delta.description.upgrade import configure, split_protocol_request
from alluvium.delta.features.log.checkpoint_protection import PROPERTY as PROTECTED_BEFORE
from alluvium.delta.features.rows.clustering import DOMAIN as CLUSTERING
from alluvium.delta.features.rows.clustering import clustering_domain
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import TABLE_ATTRIBUTES, ensure_consistent, parse_properties, settable_properties
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest

#: "The assigned column names must be unique": rows of a clone are numbered anew, and the numbers that files of the
#: source carry under its own names are not theirs.
_OF_ROWS = (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)
#: They name versions of the source.
_OF_VERSIONS = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    PROTECTED_BEFORE,
)


def cloned_config(source: TableConfig, existing: TableConfig | None, properties: Mapping[str, str]) -> TableConfig:
    """The configuration of a clone.

    As in delta-spark it has the source's properties and those that are given, and none of the table in whose place it
    is put, whose id, name and comment it keeps; a new one has no comment.

    Args:
        source: The table that is cloned.
        existing: The table in whose place the clone is put; what it supports stays supported.
        properties: In place of the source's, or beside them; they may speak of the protocol.

    Raises:
        InvalidRequest: Properties that no table may have, or another mapping of columns (`mapping-mode-change`).
        UnsupportedFeature: They need what we do not write.
    """
    request, given = split_protocol_request(properties)
    attributes = {name: given.pop(name) for name in list(given) if name in TABLE_ATTRIBUTES}
    configuration = {
        **{k: v for k, v in source.metadata.configuration.items() if k not in (*_OF_ROWS, *_OF_VERSIONS)},
        **settable_properties(given),
        **_kept(existing),
    }
    if given:
        # What the source says by itself is its own, as in delta-spark.
        ensure_consistent(configuration)
        for name in parse_properties(configuration).stats_columns or ():
            find_column(source.schema, name)
    before = None if existing is None else existing.metadata
    metadata = msgspec.structs.replace(
        source.metadata,
        id=str(uuid.uuid4()) if before is None else before.id,
        name=None if before is None else before.name,
        description=attributes.get("comment", None if before is None else before.description),
        configuration=configuration,
    )
    config = configure(metadata, existing, replace(request, bare=True), copied=source)
    for other in (source, existing):
        if other is not None and other.mapping_mode != config.mapping_mode:
            raise _mapped_otherwise(other.mapping_mode, config.mapping_mode, is_source=other is source)
    return config


def _kept(existing: TableConfig | None) -> dict[str, str]:
    """What a table keeps whatever is put in its place. Ids of columns go on by themselves, where they are given."""
    if existing is None:
        return {}
    mine = existing.metadata.configuration
    return {name: mine[name] for name in (*_OF_ROWS, PROTECTED_BEFORE) if name in mine}


def _mapped_otherwise(before: str, after: str, is_source: bool) -> InvalidRequest:
    whose = "of the source" if is_source else "of the table that is there"
    return InvalidRequest(
        f"delta.columnMapping.mode {whose} is {before}, and a clone cannot change it to {after}",
        code="mapping-mode-change",
        hint="clone the table as it is, and set the property then" if is_source else "clone to another place",
    )


def cloned_domains(source: Snapshot, existing: Snapshot | None) -> tuple[DomainMetadata, ...]:
    """The domains that a clone sets: as in delta-spark by which columns it is clustered, and no others."""
    theirs = source.state.domains.get(CLUSTERING)
    if theirs is not None:
        return (theirs,)
    return (clustering_domain([]),) if existing is not None and CLUSTERING in existing.state.domains else ()
