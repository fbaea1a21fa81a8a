"""By which columns a table that is there is clustered, from now on. Pure; refusals are the reference's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alluvium.delta.description.create import ensure_clusterable, ensure_statistics
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.upgrade import ProtocolRequest, configure
from alluvium.delta.features.feature import is_supported_for_writers
from alluvium.delta.features.rows.clustering import FEATURE, clustering_columns, clustering_domain
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.edit import Path, find_path
from alluvium.schema.walk import fields_within


def changes_clustering(config: TableConfig, columns: Sequence[Path]) -> bool:
    """Whether there is something to say: a table that never was clustered is not made one that is by nothing."""
    return bool(columns) or is_supported_for_writers(FEATURE, config.protocol)


def cluster_by(config: TableConfig, domains: Mapping[str, DomainMetadata], columns: Sequence[Path]) -> Change:
    """Says of a table by which columns OPTIMIZE is to cluster it; its files stay as they are.

    Args:
        config: The table.
        domains: Its metadata domains.
        columns: Paths in any case; none of them: the table is clustered no longer.

    Raises:
        InvalidRequest: The table is partitioned (`contradicting-options`), or it cannot be clustered by the columns
            (`unknown-column`, `invalid-clustering-column`).
    """
    if config.partition_columns:
        raise InvalidRequest(
            f"a partitioned table cannot be clustered: it is partitioned by {', '.join(config.partition_columns)}",
            code="contradicting-options",
            hint="make a new table of its rows: CREATE TABLE ... CLUSTER BY (...) AS SELECT",
        )
    was_clustered = is_supported_for_writers(FEATURE, config.protocol)
    paths = ensure_clusterable(config.schema, [find_path(config.schema, path)[0] for path in columns])
    ensure_statistics(config.schema, config.metadata.configuration, paths)
    before = clustering_columns(domains, config)
    physical = [config.physical_paths.get(path, path) for path in paths]
    changed = config if was_clustered else configure(config.metadata, config, ProtocolRequest(features=(FEATURE.name,)))
    operation = Operation(
        "CLUSTER BY", {"oldClusteringColumns": _joined(before), "newClusteringColumns": _joined(paths)}
    )
    return Change(changed, operation, domains=(clustering_domain(physical),))


def ensure_clustering_stays(domains: Mapping[str, DomainMetadata], before: TableConfig, after: TableConfig) -> None:
    """Refuses a change of columns after which the table would be clustered by one that is not there.

    Raises:
        InvalidRequest: `"clustering-column"`.
    """
    if before.schema == after.schema:
        return
    clustered = clustering_columns(domains, before)
    left = {after.physical_paths.get(path, path) for path, _ in fields_within(after.schema)}
    gone = [path for path in clustered if before.physical_paths.get(path, path) not in left]
    if gone:
        raise InvalidRequest(
            f"{'.'.join(gone[0])!r} is a clustering column and cannot be dropped",
            code="clustering-column",
            column=".".join(gone[0]),
            hint="ALTER TABLE ... CLUSTER BY other columns, or NONE, first",
        )


def _joined(paths: Sequence[Path]) -> str:
    return ",".join(".".join(path) for path in paths)
