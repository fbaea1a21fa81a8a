"""variantShredding: paths of variants as typed columns of the data files.

Specification: "Variant Shredding". Values are put together again by `codecs.variants.variant_shredding`, and by Spark
itself. A file tells by its own schema whether its variants are shredded, so that reading needs nothing of the log. We
never shred: "writers are free to write variant columns in the "unshredded" format".
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature
from alluvium.delta.features.types.variant import is_used
from alluvium.delta.terms.config import TableConfig


def is_requested(config: TableConfig) -> bool:
    """Whether writers are asked to shred: `delta.enableVariantShredding`."""
    return config.metadata.configuration.get("delta.enableVariantShredding", "false").strip().lower() == "true"


FEATURE = Feature(
    name="variantShredding",
    reader=True,
    spec="Variant Shredding",
    aliases=("variantShredding-preview",),
    requires=("variantType",),
    # A file may be shredded whether or not the property that asks writers to shred is still set.
    is_used=is_used,
    is_requested=is_requested,
)
