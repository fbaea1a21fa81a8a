"""variantType: values of any shape in one column. Refused for now.

Specification: "Variant Data Type", "Variant Shredding".
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(
    name="variantType",
    reader=True,
    spec="Variant Data Type",
    aliases=("variantType-preview",),
    readable=False,
    writable=False,
    refusal="columns of type variant cannot be read yet, and the protocol allows no reader to leave them out",
)
