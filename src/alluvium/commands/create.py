"""A table created, or put in the place of another: with its first rows, or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from alluvium.commands.layout import session_layout
from alluvium.commands.own_reads import read_scope
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.delta.description.create import NewTable, clustered_by, table_config
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.features.rows.clustering import DOMAIN, clustering_domain
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Describe, Operation, ReadScope, Replace
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.statements.statement import one_statement
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
    target = _target(store, wanted, existing, retry)
    replaces = existing is not None
    read = ReadScope.table() if replaces else ReadScope.nothing()
    return target.commit(Describe(operation_of(target.config), read, empties=replaces))


def create_table_of_rows(
    df: DataFrame,
    store: Store,
    wanted: NewTable,
    existing: Snapshot | None,
    operation_of: Callable[[TableConfig], Operation],
    options: tuple[tuple[str, str], ...] = (),
    txn: tuple[str, int] | None = None,
    rebalance: bool | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    or_replaces: bool = False,
) -> Committed:
    """Commits a table and its first rows at once; rows of the table in whose place it is put are removed.

    Args:
        df: The rows, of the columns that are wanted.
        store: The table's objects.
        wanted: The table.
        existing: The table that it replaces, if there is one; the rows may be read from it.
        operation_of: What the history says, given the configuration.
        options: For Spark's own writer.
        txn: An application's id and version to be recorded.
        rebalance: Whether to move rows between tasks; None: as the table wants it.
        retry: How often to try.
        or_replaces: Whether it was to replace a table, had there been one: to the reference that is no blind append.

    Raises:
        InvalidRequest: Columns, properties or rows that no table may have; nothing is left of them.
        UnsupportedFeature: They need what we do not write, or the table that is replaced does.
        CommitConflict: Another writer won.
    """
    target = replace(_target(store, wanted, existing, retry), layout=session_layout(df.sparkSession))
    replaces = None if existing is None else Replace()
    with one_statement(df.sparkSession, OwnTable(store.url)) as statement:
        if existing is not None:
            statement.stand_on(existing.version)
        read = ReadScope.table() if or_replaces and existing is None else read_scope(df, existing, replaces)
        request = WriteRequest(replaces, operation_of(target.config), read, txn, options, rebalance=rebalance)
        return write_rows(df, target, request)


def _target(store: Store, wanted: NewTable, existing: Snapshot | None, retry: RetryPolicy) -> DeltaTarget:
    """The table as it is to be."""
    with locating(store, existing.version if existing else None):
        if existing is not None:
            ensure_writable(existing.config)
            if existing.files.num_rows:
                ensure_removable(existing.config)
            if wanted.partition_by and DOMAIN in existing.state.domains:
                raise InvalidRequest(
                    "a clustered table cannot be replaced by a partitioned one: its protocol keeps the feature",
                    code="contradicting-options",
                    hint="cluster by the columns, or drop the table first",
                )
        config = table_config(wanted, existing.config if existing else None)
        domains = _domains(wanted, config, existing)
    return DeltaTarget(store, config, existing, retry, domains)


def _domains(wanted: NewTable, config: TableConfig, existing: Snapshot | None) -> tuple[DomainMetadata, ...]:
    if wanted.cluster_by:
        return (clustered_by(config, wanted.cluster_by),)
    # The reference keeps the domain, without columns.
    return (clustering_domain([]),) if existing is not None and DOMAIN in existing.state.domains else ()
