"""v2Checkpoint: checkpoints with a unique name, whose files may stand in sidecars.

Specification: "V2 Checkpoint Table Feature". It is a matter of the log's structure: `log/segment.py` finds such
checkpoints, `log/sidecar.py` and `log/read_checkpoint.py` read them, `log/checkpoint.py` writes them where the table's
policy asks for it. "Writers are always allowed create a classic checkpoint following v1 spec."
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties


def is_used(config: TableConfig) -> bool:
    """Whether checkpoints are to be of the second kind: the feature alone only allows them."""
    supported = FEATURE.name in (config.protocol.writer_features or ())
    return supported and parse_properties(config.metadata.configuration).checkpoint_policy == "v2"


FEATURE = Feature(name="v2Checkpoint", reader=True, spec="V2 Checkpoint Table Feature", is_used=is_used)
