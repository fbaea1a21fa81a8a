"""icebergCompatV1: the table can be described as one of Iceberg. Specification: "Iceberg Compatibility V1"."""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta import iceberg_compat as compat
from alluvium.delta.actions import Actions
from alluvium.delta.config import TableConfig
from alluvium.delta.features import materialize_partition_columns
from alluvium.delta.features.feature import CommitContext, Feature, is_supported_for_writers
from alluvium.plan.write import WritePlan
from alluvium.schema.types import VOID, Array, DataType, Map

_VERSION = 1


def is_used(config: TableConfig) -> bool:
    """ "This table feature is enabled when the table property `delta.enableIcebergCompatV1` is set to `true`." """
    return compat.is_enabled(config.metadata, _VERSION)


def _is_allowed(data_type: DataType) -> bool:
    """ "Block adding `Map`/`Array`/`Void` types to the table schema (and, thus, block writing them, too)" """
    return not isinstance(data_type, (Array, Map)) and data_type != VOID


def ensure_compatible(config: TableConfig) -> None:
    """Refuses a table that breaks the feature, whoever made it so.

    Raises:
        InvalidRequest: `"iceberg-compat"`.
    """
    compat.ensure_mapped(config, _VERSION)
    # "Require that Deletion Vectors are not supported (and, consequently, not active, either). i.e., the
    # `deletionVectors` table feature is not present in the table `protocol`."
    if "deletionVectors" in (config.protocol.writer_features or ()):
        raise compat.refused(_VERSION, "it supports deletion vectors", "drop the feature deletionVectors first")
    compat.ensure_types(config, _VERSION, _is_allowed)
    compat.ensure_type_changes(config, _VERSION)


def on_write(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "Require that partition column values are materialized into any Parquet data file that is present in the table,
    placed *after* the data columns in the parquet schema"
    """
    if not (is_supported_for_writers(FEATURE, config.protocol) and is_used(config)):
        return plan
    ensure_compatible(config)
    return replace(plan, materialize_partitions=True)


def on_commit(actions: Actions, context: CommitContext) -> Actions:
    """Looks at what is committed, and at the table when its description changes."""
    if not (is_supported_for_writers(FEATURE, context.config.protocol) and is_used(context.config)):
        return actions
    if actions.metadata is not None or actions.protocol is not None:
        ensure_compatible(context.config)
        _ensure_materialized(context)
    compat.ensure_counted(actions, _VERSION)
    return actions


def _ensure_materialized(context: CommitContext) -> None:
    """ "any Parquet data file that is present": those of a table that was partitioned before lack the columns."""
    before = context.before
    if before is None or not before.partition_columns or context.files.num_rows == 0:
        return
    if is_used(before) or is_supported_for_writers(materialize_partition_columns.FEATURE, before.protocol):
        return
    raise compat.refused(
        _VERSION, "its files have no partition columns", "write the rows into a new table that has the property"
    )


FEATURE = Feature(
    name="icebergCompatV1",
    reader=False,
    spec="Iceberg Compatibility V1",
    requires=("columnMapping",),
    is_used=is_used,
    on_change=compat.completes(_VERSION),
    on_write=on_write,
    on_commit=on_commit,
)
