"""checkpointProtection: old versions, and the checkpoints that hide them, go all at once or not at all.

It is how a feature is dropped without waiting: checkpoints before the drop keep older clients from reading what they
would misread, so nobody may take away some of them. Specification: "Checkpoint Protection".
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import CorruptTable

PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


def protected_before(config: TableConfig) -> int:
    """The version before which checkpoints are protected; 0 where none is.

    Raises:
        CorruptTable: The property is no version.
    """
    if FEATURE.name not in (config.protocol.writer_features or ()):
        return 0
    text = config.metadata.configuration.get(PROPERTY, "0")
    if not text.isdecimal():
        raise CorruptTable(f"{PROPERTY} is no version: {text!r}", code="invalid-property")
    return int(text)


def may_clean_up_to(config: TableConfig, version: int) -> bool:
    """Whether everything before a version may be deleted.

    "writers to clean up metadata iff metadata can be cleaned up to the `requireCheckpointProtectionBeforeVersion`
    table property in one go"
    """
    return version >= protected_before(config)


def _ensure_valid(config: TableConfig) -> None:
    protected_before(config)


FEATURE = Feature(
    name="checkpointProtection",
    reader=False,
    spec="Checkpoint Protection",
    is_used=lambda config: protected_before(config) > 0,
    on_metadata=_ensure_valid,
)
