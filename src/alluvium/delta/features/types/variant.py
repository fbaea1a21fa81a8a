"""variantType: values of any shape in one column, each as two binaries.

Specification: "Variant Data Type". The type itself lives in `schema`, its bytes in `codecs`; that no table is
partitioned by one is seen to where the metadata is parsed (`delta.terms.config`). Engines write variants "in the
"unshredded" representation as a struct containing the fields `value` and `metadata`": of the table's properties none
makes them do otherwise. Of statistics a variant has `nullCount` alone.
"""

from __future__ import annotations

from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import VARIANT
from alluvium.schema.walk import holds


def is_used(config: TableConfig) -> bool:
    """Whether a column of the schema, or a part of one, is a variant."""
    return holds(config.schema, VARIANT)


def ensure_not_generated(metadata: Metadata, before: TableConfig | None) -> Metadata:
    """ "The Variant data type is not allowed to be the result type of a generated column expression."

    Raises:
        InvalidRequest: `"invalid-expression"`.
    """
    for f in parse_schema(metadata.schema_string).fields:
        if GENERATED in f.metadata and holds(f.type, VARIANT):
            raise InvalidRequest(
                f"the column {f.name!r} cannot be generated: its type is {f.type}",
                code="invalid-expression",
                column=f.name,
                hint="generate a column of another type, e.g. by variant_get",
            )
    return metadata


FEATURE = Feature(
    name="variantType",
    reader=True,
    spec="Variant Data Type",
    aliases=("variantType-preview",),
    is_used=is_used,
    automatic=False,
    on_change=ensure_not_generated,
)
