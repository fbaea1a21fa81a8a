"""variantType: values of any shape in one column, each as two binaries.

Specification: "Variant Data Type". The type itself lives in `schema`, its bytes in `codecs`; that no table is
partitioned by one is seen to where the metadata is parsed (`delta.config`).
"""

from __future__ import annotations

from alluvium.delta.config import TableConfig
from alluvium.delta.features.feature import Feature
from alluvium.schema.types import VARIANT
from alluvium.schema.walk import holds


def is_used(config: TableConfig) -> bool:
    """Whether a column of the schema, or a part of one, is a variant."""
    return holds(config.schema, VARIANT)


FEATURE = Feature(
    name="variantType",
    reader=True,
    spec="Variant Data Type",
    aliases=("variantType-preview",),
    writable=False,
    refusal="tables that list variantType are read, not written yet",
    is_used=is_used,
)
