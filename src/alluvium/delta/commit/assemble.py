"""Draft plus base to log entry. Called anew for each base, so that whatever depends on it follows."""

from __future__ import annotations

from alluvium.commit.loop import Entry
from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.features.registry import COMMIT_PASSES
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.actions import format_entry
from alluvium.delta.terms.properties import parse_properties
from alluvium.schema.types import JsonValue

#: Operations after which every query gives what it gave before: the reference names a weaker isolation for them.
_CHANGE_NOTHING = frozenset(
    (
        "Empty Commit",
        "COMPUTE STATS",
        "REORG",
        "OPTIMIZE",
        "Deletion Vector Tombstones",
        "ROW TRACKING BACKFILL",
        "ROW TRACKING UNBACKFILL",
        "VACUUM START",
        "VACUUM END",
    )
)

#: Operations that name the version that they were made on also where there is none, -1, as the reference has it.
_SAY_WHAT_THEY_READ = frozenset(("CONVERT",))


def assemble(draft: Draft, context: CommitContext) -> Entry:
    """The entry for the version after the base.

    Args:
        draft: What to commit.
        context: What it lands on.

    Raises:
        InvalidRequest: A feature of the table forbids the actions.
    """
    actions = draft.actions
    for complete in COMMIT_PASSES:
        actions = complete(actions, context)
    level = parse_properties(context.config.metadata.configuration).isolation_level
    info = _commit_info(draft, level, context.now_ms)
    return Entry(context.version, commit_path(context.version), format_entry(info, actions))


def _commit_info(draft: Draft, isolation_level: str, now_ms: int) -> dict[str, JsonValue]:
    """Provenance in the field order and with the spellings of the reference implementation."""
    operation = draft.operation
    info: dict[str, JsonValue] = {
        "timestamp": now_ms,
        "operation": operation.name,
        "operationParameters": dict(operation.parameters),
    }
    if draft.read_version >= 0 or operation.name in _SAY_WHAT_THEY_READ:
        info["readVersion"] = draft.read_version
    info["isolationLevel"] = "SnapshotIsolation" if operation.name in _CHANGE_NOTHING else isolation_level
    info["isBlindAppend"] = draft.is_blind_append
    info["operationMetrics"] = dict(operation.metrics)
    if operation.note is not None:
        info["userMetadata"] = operation.note
    # The text alone: an `Author` is more than that.
    info["engineInfo"] = str(operation.engine)
    info["txnId"] = draft.txn_id
    return info
