"""inCommitTimestamp: commits that carry their own time.

Specification: "In-Commit Timestamps". Which time a version has is decided in `log/timeline.py`; this module says from
which version on commits carry theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.features.feature import CommitContext, Feature
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import CorruptTable

_ENABLED = "delta.enableInCommitTimestamps"
_VERSION = "delta.inCommitTimestampEnablementVersion"
_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


@dataclass(frozen=True, slots=True)
class Enablement:
    """Since when commits carry their time.

    Attributes:
        version: The first version that does.
        timestamp_ms: Its time, milliseconds since 1970 UTC; None where every version of the table carries one.
    """

    version: int
    timestamp_ms: int | None


def is_used(config: TableConfig) -> bool:
    """ "The feature `inCommitTimestamp` must exist in the table `protocol`'s `writerFeatures`. The table property
    `delta.enableInCommitTimestamps` must be set to `true`."
    """
    listed = FEATURE.name in (config.protocol.writer_features or ())
    return listed and config.metadata.configuration.get(_ENABLED, "").strip().lower() == "true"


def enablement(config: TableConfig) -> Enablement | None:
    """Since when the table's commits carry their time; None where they do not.

    "If the table has commits from a period when this feature was not enabled, provenance information around when this
    feature was enabled must be tracked in table properties": without them it was enabled from the start.

    Raises:
        CorruptTable: The properties do not parse, or one of them is missing (`invalid-property`).
    """
    if not is_used(config):
        return None
    properties = config.metadata.configuration
    version, timestamp_ms = _number(properties, _VERSION), _number(properties, _TIMESTAMP)
    if (version is None) != (timestamp_ms is None):
        raise CorruptTable(f"of {_VERSION} and {_TIMESTAMP} one is missing", code="invalid-property")
    return Enablement(version or 0, timestamp_ms)


def is_requested(config: TableConfig) -> bool:
    """Whether the property asks for the feature."""
    return config.metadata.configuration.get(_ENABLED, "").strip().lower() == "true"


def on_commit(actions: Actions, context: CommitContext) -> Actions:
    """Gives the commit its time.

    "It is the larger of two values: The time [...] at which the writer attempted the commit; One millisecond later than
    the previous commit's `inCommitTimestamp`". "The `inCommitTimestamp` of the commit that enables this feature must be
    greater than the file modification time of the immediately preceding commit."
    """
    if not is_used(context.config):
        return actions
    earliest = 0 if context.previous_ms is None else context.previous_ms + 1
    timestamp_ms = max(context.now_ms, earliest)
    info = {**actions.info, "inCommitTimestamp": timestamp_ms}
    return replace(actions, info=info, metadata=_with_provenance(actions.metadata, context, timestamp_ms))


def _with_provenance(metadata: Metadata | None, context: CommitContext, timestamp_ms: int) -> Metadata | None:
    """ "If the table has commits from a period when this feature was not enabled, provenance information around when
    this feature was enabled must be tracked in table properties".
    """
    if metadata is None or context.before is None:
        return metadata
    before = context.before.metadata.configuration
    if is_used(context.before):
        # A table that is replaced keeps its history, and so what is known of it.
        known = {name: before[name] for name in (_VERSION, _TIMESTAMP) if name in before}
    else:
        known = {_VERSION: str(context.version), _TIMESTAMP: str(timestamp_ms)}
    return msgspec.structs.replace(metadata, configuration={**metadata.configuration, **known})


def _number(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise CorruptTable(f"table property {name} = {text!r} is not a number", code="invalid-property")
    return value


FEATURE = Feature(
    name="inCommitTimestamp",
    reader=False,
    spec="In-Commit Timestamps",
    is_used=is_used,
    is_requested=is_requested,
    on_commit=on_commit,
)
