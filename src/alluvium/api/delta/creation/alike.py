"""Whether a table that lies somewhere already is the one that is asked for, and may get a name in the catalog."""

from __future__ import annotations

from alluvium.api.delta.creation.request import Wanted
from alluvium.api.delta.delta_errors import TableExists
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.terms.properties import TABLE_ATTRIBUTES, settable_properties
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import Struct
from alluvium.schema.walk import drop_metadata

#: What tables say of their columns that nobody asks for.
_INTERNAL = ("delta.columnMapping.", "delta.identity.highWaterMark", "EXISTS_DEFAULT")


def ensure_alike(existing: Snapshot, wanted: Wanted) -> None:
    """Refuses a table that is another than the one that is asked for; of what is not said there is nothing to differ.

    Raises:
        InvalidRequest: Rows are given, or columns, partitioning, clustering or properties differ (`table-exists`).
    """
    if wanted.rows is not None:
        raise TableExists(
            f"a Delta table lies already where the rows of {wanted.name or 'the table'} are to go",
            code="table-exists",
            url=existing.store.url,
            version=existing.version,
            hint="without AS SELECT the name is given to that table; CREATE OR REPLACE TABLE replaces it; after a "
            "statement that was interrupted, name it so, or delete the folder",
        )
    differing = _differing(existing, wanted)
    if differing is not None:
        what, theirs, asked = differing
        raise TableExists(
            f"the table that lies there has other {what}: {theirs}, not {asked}",
            code="table-exists",
            url=existing.store.url,
            version=existing.version,
            hint="leave columns, partitioning and properties out to take the table as it is",
        )


def _differing(existing: Snapshot, wanted: Wanted) -> tuple[str, object, object] | None:
    """What differs, as it is and as it is asked for."""
    config = existing.config
    if wanted.columns:
        asked, known = _plain(Struct(wanted.columns)), _plain(config.schema)
        if asked != known:
            return "columns", known, asked
        partitions = tuple(name.lower() for name in wanted.partition_by)
        if partitions != tuple(name.lower() for name in config.partition_columns):
            return "partition columns", list(config.partition_columns), list(wanted.partition_by)
        clusters = [".".join(path) for path in clustering_columns(existing.state.domains, config)]
        if [".".join(parse_column_path(text)).lower() for text in wanted.cluster_by] != [
            name.lower() for name in clusters
        ]:
            return "clustering columns", clusters, list(wanted.cluster_by)
    if wanted.properties:
        own = {k: v for k, v in wanted.properties.items() if k not in TABLE_ATTRIBUTES}
        asked_properties = settable_properties({k: v for k, v in own.items() if not _speaks_of_protocol(k)})
        if asked_properties != dict(config.metadata.configuration):
            return "properties", dict(config.metadata.configuration), asked_properties
    return None


def _plain(schema: Struct) -> Struct:
    return drop_metadata(schema, lambda key: key.startswith(_INTERNAL))


def _speaks_of_protocol(name: str) -> bool:
    folded = name.lower()
    return folded.startswith("delta.feature.") or folded in (
        "delta.minreaderversion",
        "delta.minwriterversion",
        "delta.ignoreprotocoldefaults",
    )
