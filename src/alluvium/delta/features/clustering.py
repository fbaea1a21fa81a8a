"""clustering: rows that lie near each other by some columns' values.

Specification: "Clustered Table". Readers have nothing to obey: clustered files simply have narrow statistics.
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(name="clustering", reader=False, spec="Clustered Table", writable=False)
