"""domainMetadata: named configurations beside the table's own.

Specification: "Domain Metadata". Replay keeps the latest of each domain (`log/state.py`).
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(name="domainMetadata", reader=False, spec="Domain Metadata")
