"""`spark.catalog.listColumns` of a table of ours: what only its log knows of the columns."""

from __future__ import annotations

from pyspark.sql.catalog import Column

from alluvium.api.delta.delta_access import TableAccess
from alluvium.delta.features.rows.clustering import clustering_columns


def told_by_log(access: TableAccess, listed: list[Column]) -> list[Column]:
    """The columns with their partitioning, clustering and NOT NULL."""
    snapshot = access.snapshot()
    partitions = set(snapshot.config.partition_columns)
    clusters = {path[0] for path in clustering_columns(snapshot.state.domains, snapshot.config) if len(path) == 1}
    required = {f.name for f in snapshot.config.schema.fields if not f.nullable}
    return [
        column._replace(
            nullable=column.name not in required,
            isPartition=column.name in partitions,
            isCluster=column.name in clusters,
        )
        for column in listed
    ]
