"""The table that rows are written to, as it is to be then: one that is there, or a new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.written.options import ensure_whole, parse_clusters, parse_description, sorted_as
from alluvium.api.options import Options
from alluvium.delta.description.create import clustered_by, new_config, resolve_partition_columns
from alluvium.delta.description.merge_schema import merged_config, overwritten_config
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import Struct
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows, and what is said of where they go.

    Attributes:
        columns: Tells their columns, where anybody needs to know; of some types no table can be made.
        partition_by: Partition columns of a table to create.
        options: Of the writer.
        save_mode: As the history names it.
    """

    columns: Callable[[], Struct]
    partition_by: Sequence[str]
    options: Options
    save_mode: str


def ensure_welcome(save_mode: str, snapshot: Snapshot) -> None:
    """Refuses rows for a new table where there is one (`table-exists`)."""
    if save_mode == "ErrorIfExists":
        raise InvalidRequest(
            "there is a table already",
            code="table-exists",
            url=snapshot.store.url,
            version=snapshot.version,
            hint='say mode="append" or mode="overwrite"',
        )


def write_target(
    store: Store,
    rows: NewRows,
    retry: RetryPolicy = DEFAULT_RETRY,
    defaults: Callable[[], Mapping[str, str]] = dict,
    time_zone: str = "UTC",
    open_elsewhere: Callable[[str], Store] = open_store,
    base: Snapshot | None = None,
) -> DeltaTarget:
    """The table as it is to be once the rows are in it.

    Args:
        store: The table's objects.
        rows: What comes.
        retry: How often a lost commit is tried again.
        defaults: Properties of every table to create.
        time_zone: In which partition values without a zone are read.
        open_elsewhere: From a URL to its store, for files that lie outside the table.
        base: The version that the rows were read from, where that is one of the table itself.

    Raises:
        InvalidRequest: The options, names or columns do not fit the table; or no table can be made of them.
    """
    names, parsed = rows.partition_by, rows.options
    overwrites = parsed.flag("overwriteSchema") and rows.save_mode == "Overwrite"
    merges = parsed.flag("mergeSchema") and rows.save_mode in ("Append", "Overwrite")
    try:
        snapshot = base or open_snapshot(store, time_zone=time_zone, open_elsewhere=open_elsewhere)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        properties = {
            **defaults(),
            **parsed.properties,
            **parse_description(parsed),
            **sorted_as(parsed),
        }
        clusters = parse_clusters(parsed)
        made = new_config(rows.columns(), names, properties, clusters)
        return DeltaTarget(store, made, None, retry, (clustered_by(made, clusters),) if clusters else ())
    config = snapshot.config
    _warn_of_properties(parsed, config)
    ensure_clustered_alike(snapshot, parse_clusters(parsed))
    with locating(store, snapshot.version):
        if overwrites:
            ensure_whole(parsed, config.partition_columns)
            return DeltaTarget(store, overwritten_config(config, rows.columns(), names), snapshot, retry)
        if names and resolve_partition_columns(config.schema, names) != config.partition_columns:
            raise InvalidRequest(
                f"the table is partitioned by {', '.join(config.partition_columns) or 'nothing'}, "
                f"{'and rows are not appended' if rows.save_mode == 'Append' else 'not'} by {', '.join(names)}",
                code="partition-mismatch",
                hint="leave partitionBy out, or overwrite the table with overwriteSchema",
            )
        return DeltaTarget(store, merged_config(config, rows.columns()) if merges else config, snapshot, retry)


def ensure_clustered_alike(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Refuses names of other clustering columns than a table has (`clustering-mismatch`); none are fine."""
    if not names:
        return
    known = clustering_columns(snapshot.state.domains, snapshot.config)
    if [tuple(map(str.lower, parse_column_path(name))) for name in names] == [
        tuple(map(str.lower, path)) for path in known
    ]:
        return
    shown = ", ".join(".".join(path) for path in known)
    raise InvalidRequest(
        f"the table is clustered by {shown or 'nothing'}, not by {', '.join(names)}",
        code="clustering-mismatch",
        url=snapshot.store.url,
        version=snapshot.version,
        hint="leave clusterBy out, or say ALTER TABLE ... CLUSTER BY first",
    )


def _warn_of_properties(parsed: Options, config: TableConfig) -> None:
    """As in the reference, they are for tables to create; but not without a word."""
    ignored = [name for name, value in parsed.properties.items() if config.metadata.configuration.get(name) != value]
    if ignored:
        warnings.warn(
            f"the table exists, so its properties stay as they are: {', '.join(ignored)} ignored", stacklevel=5
        )
