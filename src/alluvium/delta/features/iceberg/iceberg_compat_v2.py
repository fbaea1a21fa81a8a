"""icebergCompatV2: the table can be described as one of Iceberg. Specification: "Iceberg Compatibility V2".

Elements of arrays and maps would need "32 bit integer identifiers", "also written to the `field_id` field of the
`SchemaElement` struct in the Parquet Thrift specification". Spark's Parquet writer numbers the fields of structs only,
so that tables with arrays or maps are refused.
"""

from __future__ import annotations

from alluvium.delta.features.iceberg import iceberg_compat as compat
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Map

_VERSION = 2
#: "Require that the table schema contains only data types in the following allow-list": these are not in it.
_FORBIDDEN = frozenset((t.VOID, t.VARIANT))


def _is_allowed(data_type: DataType) -> bool:
    return data_type not in _FORBIDDEN


def ensure_compatible(config: TableConfig) -> None:
    """Refuses a table that breaks the feature, whoever made it so.

    Raises:
        InvalidRequest: `"iceberg-compat"`.
        UnsupportedFeature: The table has arrays or maps, whose elements we cannot number in the files.
    """
    compat.ensure_mapped(config, _VERSION)
    # "Require that Deletion Vectors are not active, which means either the `deletionVectors` table feature is not
    # present in the table protocol or the table property `delta.enableDeletionVectors` is not set to `true`"
    configuration = config.metadata.configuration
    supported = "deletionVectors" in (config.protocol.writer_features or ())
    if supported and configuration.get("delta.enableDeletionVectors", "").strip().lower() == "true":
        raise compat.refused(_VERSION, "its rows may be deleted by vectors", "set delta.enableDeletionVectors to false")
    compat.ensure_types(config, _VERSION, _is_allowed)
    compat.ensure_type_changes(config, _VERSION)
    for path, data_type in compat.types_within(config.schema):
        if isinstance(data_type, (Array, Map)):
            raise UnsupportedFeature(
                f"the table is to be compatible with Iceberg (V2), and {'.'.join(path)!r} is {data_type}: the elements "
                "would need numbers in the files, which Spark's Parquet writer does not write",
                code="unsupported-type",
                features=(FEATURE.name,),
                column=".".join(path),
                hint="leave the column out, or set delta.enableIcebergCompatV2 to false",
            )


FEATURE = compat.make_feature(_VERSION, ensure_compatible)
