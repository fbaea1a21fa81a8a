"""ALTER TABLE, as far as only Delta knows it: constraints, features, clustering, identity columns."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.alter import Alteration
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.grammar.alter import (
    AddConstraint,
    AddFeature,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
)
from alluvium.api.sql.upkeep.targets import table_access
from alluvium.commands.sync_identity import sync_identity_column

_Alter = AddConstraint | AddFeature | ClusterBy | DropConstraint | DropFeature | SyncIdentity


def run(spark: SparkSession, statement: _Alter) -> DataFrame | None:
    """Carries out one of the statements; the answer has no columns."""
    access = table_access(spark, statement.target)
    if access is None:
        return None
    _carry_out(DeltaTable(spark, access), access, statement)
    return spark.createDataFrame([], StructType())


def _carry_out(table: DeltaTable, access: TableAccess, statement: _Alter) -> None:
    if isinstance(statement, AddConstraint):
        table.addConstraint(statement.name, statement.check.text)
    elif isinstance(statement, DropConstraint):
        table.dropConstraint(statement.name, ifExists=statement.if_exists)
    elif isinstance(statement, AddFeature):
        table.addFeatureSupport(statement.feature)
    elif isinstance(statement, ClusterBy):
        with counterparts("clusterBy"):
            Alteration(access.snapshot, access.engine).cluster_by_paths(statement.columns)
    elif isinstance(statement, SyncIdentity):
        sync_identity_column(access.spark, access.snapshot(), statement.column, access.engine)
    else:
        table.dropFeatureSupport(statement.feature, statement.truncate_history or None)
