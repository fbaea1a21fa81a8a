"""vacuumProtocolCheck: VACUUM looks at the writer's protocol, too.

Specification: "VACUUM Protocol Check": "readers don't need to understand or change anything new; they just need to
acknowledge the feature exists."
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(name="vacuumProtocolCheck", reader=True, spec="VACUUM Protocol Check")
