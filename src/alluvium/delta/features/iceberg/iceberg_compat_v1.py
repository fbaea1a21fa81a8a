"""icebergCompatV1: the table can be described as one of Iceberg. Specification: "Iceberg Compatibility V1"."""

from __future__ import annotations

from alluvium.delta.features.feature import CommitContext, is_supported_for_writers
from alluvium.delta.features.iceberg import iceberg_compat as compat
from alluvium.delta.features.iceberg import materialize_partition_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.schema.types import VOID, Array, DataType, Map

_VERSION = 1


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


def _ensure_materialized(context: CommitContext) -> None:
    """ "any Parquet data file that is present": those of a table that was partitioned before lack the columns."""
    before = context.before
    if before is None or not before.partition_columns:
        return
    if context.pick_files(lambda files: files.slice(0, 1)).num_rows == 0:
        return
    if compat.is_enabled(before.metadata, _VERSION) or is_supported_for_writers(
        materialize_partition_columns.FEATURE, before.protocol
    ):
        return
    raise compat.refused(
        _VERSION, "its files have no partition columns", "write the rows into a new table that has the property"
    )


FEATURE = compat.make_feature(_VERSION, ensure_compatible, _ensure_materialized)
