"""A table without rows: created, or put in the place of another."""

from __future__ import annotations

from collections.abc import Callable

from alluvium.delta.description.create import NewTable, resolve_clustering_columns, table_config
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.features.rows.clustering import DOMAIN, clustering_domain
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Committed, Describe, Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating
from alluvium.storage.store import Store


def create_table(
    store: Store,
    wanted: NewTable,
    existing: Snapshot | None,
    operation_of: Callable[[TableConfig], Operation],
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed:
    """Commits a table's description; rows of the table in whose place it is put are removed.

    Args:
        store: The table's objects.
        wanted: The table.
        existing: The table that it replaces, if there is one.
        operation_of: What the history says, given the configuration.
        retry: How often to try.

    Raises:
        InvalidRequest: Columns or properties that no table may have.
        UnsupportedFeature: They need what we do not write, or the table that is replaced does.
        CommitConflict: Another writer won.
    """
    with locating(store, existing.version if existing else None):
        if existing is not None:
            ensure_writable(existing.config)
            ensure_removable(existing.config)
        config = table_config(wanted, existing.config if existing else None)
        domains = _domains(wanted, config, existing)
    target = DeltaTarget(store, config, existing, retry, domains)
    replaces = existing is not None
    read = ReadScope.table() if replaces else ReadScope.nothing()
    return target.commit(Describe(operation_of(config), read, empties=replaces))


def _domains(wanted: NewTable, config: TableConfig, existing: Snapshot | None) -> tuple[DomainMetadata, ...]:
    if wanted.cluster_by:
        paths = resolve_clustering_columns(config.schema, wanted.cluster_by)
        physical = config.physical_paths
        return (clustering_domain([physical.get(path, path) for path in paths]),)
    # The reference keeps the domain, without columns.
    return (clustering_domain([]),) if existing is not None and DOMAIN in existing.state.domains else ()
