"""materializePartitionColumns: the data files have the partition columns, too.

Specification: "Materialize Partition Columns". Readers take the values from the log all the same.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta.features.feature import Feature, is_supported_for_writers
from alluvium.delta.terms.config import TableConfig
from alluvium.plan.write import WritePlan

ENABLED = "delta.enableMaterializePartitionColumnsFeature"


def is_requested(config: TableConfig) -> bool:
    """ "The writer feature `materializePartitionColumns` is auto-supported when this property is set to `true`." """
    return config.metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def materialize(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "When the writer feature `materializePartitionColumns` is set in the protocol, writers must require that
    partition column values are materialized into any newly created data file, placed after the data columns in the
    parquet schema."
    """
    if not is_supported_for_writers(FEATURE, config.protocol):
        return plan
    return replace(plan, materialize_partitions=True)


FEATURE = Feature(
    name="materializePartitionColumns",
    reader=False,
    spec="Materialize Partition Columns",
    is_used=is_requested,
    is_requested=is_requested,
    on_write=materialize,
)
