"""Files that a writer which died has left under names for the time being: named, never deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.errors import AlluviumError
from alluvium.storage.store import LISTED, Store

#: Ours and other writers', and the folders of Spark's jobs.
_TEMPORARY = r"(^|/)(\.?[^/]+\.tmp|_temporary/.*|\.spark-staging-[^/]*/.*)$"
_DAY_MS = 86_400_000


def find_temporary(store: Store, now_ms: int | None = None) -> tuple[Finding, ...]:
    """Such files that are older than a day: a younger one may be somebody's work."""
    before_ms = (int(time.time() * 1000) if now_ms is None else now_ms) - _DAY_MS
    return tuple(summed_up("temporary", list(_find(store, before_ms))))


def _find(store: Store, before_ms: int) -> Iterator[Finding]:
    try:
        listed = pa.Table.from_batches(store.list_columns("", lambda name: False), LISTED)
    except AlluviumError as error:
        yield Finding("warning", "temporary", f"the folder cannot be listed: {error.message}")
        return
    is_old = pc.and_(pc.less(listed.column("modified_ms"), before_ms), pc.invert(listed.column("is_directory")))
    found = listed.filter(pc.and_(is_old, pc.match_substring_regex(listed.column("path"), _TEMPORARY)))
    for path, size in zip(found.column("path").to_pylist(), found.column("size").to_pylist(), strict=True):
        yield Finding("warning", "temporary", f"{size} bytes that a writer has left, which nobody reads", path)
