"""v2Checkpoint: checkpoints with a unique name, whose files may stand in sidecars.

Specification: "V2 Checkpoint Table Feature". It is a matter of the log's structure: `log/segment.py` finds such
checkpoints, `log/sidecar.py` and `log/read_checkpoint.py` read them. None are written: "Writers are always allowed
create a classic checkpoint following v1 spec."
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(name="v2Checkpoint", reader=True, spec="V2 Checkpoint Table Feature", writable=False)
