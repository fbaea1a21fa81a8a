"""Draft plus base to log entry. Called anew for each base, so that whatever depends on it follows."""

from __future__ import annotations

from alluvium.commit.loop import Entry
from alluvium.delta.actions import format_entry
from alluvium.delta.config import TableConfig
from alluvium.delta.draft import Draft
from alluvium.delta.features.identity_columns import COMMIT_TAG, differ_only_in_marks
from alluvium.delta.features.registry import COMMIT_PASSES
from alluvium.delta.log.names import commit_path
from alluvium.delta.properties import parse_properties
from alluvium.schema.types import JsonValue


def assemble(draft: Draft, config: TableConfig, base_version: int, now_ms: int) -> Entry:
    """The entry for the version after the base.

    Args:
        draft: What to commit.
        config: Of the base; the draft's own, where it has one, takes its place.
        base_version: -1 when there is no table yet.
        now_ms: The commit's time, milliseconds since 1970 UTC.

    Raises:
        InvalidRequest: A feature of the table forbids the actions.
    """
    tags = _tags(draft, config, base_version)
    config = draft.config or config
    for check in COMMIT_PASSES:
        check(draft.actions, config)
    version = base_version + 1
    level = parse_properties(config.metadata.configuration).isolation_level
    info = _commit_info(draft, level, now_ms, tags)
    return Entry(version, commit_path(version), format_entry(info, draft.actions))


def _tags(draft: Draft, config: TableConfig, base_version: int) -> dict[str, JsonValue]:
    """What the reference looks for in a winner's commit, to know whether its own commit may follow."""
    before, after = config.metadata, draft.actions.metadata
    if base_version < 0 or after is None or after == before or not differ_only_in_marks(before, after):
        return {}
    return {COMMIT_TAG: "true"}


def _commit_info(draft: Draft, isolation_level: str, now_ms: int, tags: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Provenance in the field order and with the spellings of the reference implementation."""
    operation = draft.operation
    info: dict[str, JsonValue] = {
        "timestamp": now_ms,
        "operation": operation.name,
        "operationParameters": dict(operation.parameters),
    }
    if draft.read_version >= 0:
        info["readVersion"] = draft.read_version
    info["isolationLevel"] = isolation_level
    info["isBlindAppend"] = draft.is_blind_append
    info["operationMetrics"] = dict(operation.metrics)
    if tags:
        info["tags"] = tags
    if operation.user_metadata is not None:
        info["userMetadata"] = operation.user_metadata
    info["engineInfo"] = operation.engine
    info["txnId"] = draft.txn_id
    return info
