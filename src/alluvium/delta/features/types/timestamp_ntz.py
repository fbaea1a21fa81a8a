"""timestampNtz: the type of timestamps without a time zone.

Specification: "Timestamp without timezone (TimestampNTZ)". The type itself lives in `schema`; this module only
says when a table must list the feature.
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.schema.types import TIMESTAMP_NTZ, Array, DataType, Map, Struct


def contains_timestamp_ntz(data_type: DataType) -> bool:
    """Whether the type, or one nested in it, is a timestamp without a time zone."""
    if isinstance(data_type, Struct):
        return any(contains_timestamp_ntz(f.type) for f in data_type.fields)
    if isinstance(data_type, Array):
        return contains_timestamp_ntz(data_type.element)
    if isinstance(data_type, Map):
        return contains_timestamp_ntz(data_type.key) or contains_timestamp_ntz(data_type.value)
    return data_type == TIMESTAMP_NTZ


def is_used(config: TableConfig) -> bool:
    """ "To use this type, a table must support a feature `timestampNtz`." """
    return contains_timestamp_ntz(config.schema)


FEATURE = Feature(
    name="timestampNtz",
    reader=True,
    spec="Timestamp without timezone (TimestampNTZ)",
    aliases=("timestampNTZ",),
    is_used=is_used,
    automatic=False,
)
