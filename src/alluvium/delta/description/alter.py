"""A change of a table's description, committed; nothing of the table's rows is touched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from alluvium.delta.commit.who_reads import who_reads
from alluvium.delta.description.cluster import ensure_clustering_stays
from alluvium.delta.description.evolve import Change
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Committed, Describe, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating

#: A winner that changed the description is no reason to give up: the change is made anew on what the winner left.
_REPEATABLE = frozenset(("metadata-changed", "protocol-changed", "concurrent-domain"))


def apply_change(
    snapshot: Snapshot,
    change_of: Callable[[TableConfig], Change],
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Commits a change of a table's description.

    Args:
        snapshot: The newest version known.
        change_of: The change, of whatever version it lands on; called again after another writer changed the
            description first.
        engine: For the history.
        dry_run: Only tell what would change.
        retry: How often to try.

    Raises:
        InvalidRequest: The table does not allow the change; nothing was written.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: A winner changed rows that the change depends on, or attempts are exhausted.
        CommitUnknown: The store did not say whether the commit stands.
    """
    return apply_to(snapshot, lambda base: change_of(base.config), engine, dry_run, retry)


def apply_to(
    snapshot: Snapshot,
    change_of: Callable[[Snapshot], Change],
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """The same for a change of more than the configuration says, as of the table's domains."""
    delays = retry.delays_s()
    while True:
        with locating(snapshot.store, snapshot.version):
            ensure_writable(snapshot.config)
            change = change_of(snapshot)
            if not change.domains:
                ensure_clustering_stays(snapshot.state.domains, snapshot.config, change.config)
        # A change of domains alone says nothing of the metadata, as in the reference.
        restates = not change.domains
        target = DeltaTarget(snapshot.store, change.config, snapshot, retry, change.domains, restates)
        read = ReadScope.table() if change.reads else ReadScope.nothing()
        changes = Describe(replace(change.operation, engine=engine), read)
        if dry_run:
            notes = who_reads(snapshot.config.protocol, change.config.protocol)
            return replace(target.preview(changes), notes=notes)
        try:
            return target.commit(changes)
        except CommitConflict as error:
            delay = next(delays, None)
            if change.reads or delay is None or not {c.rule for c in error.conflicts} <= _REPEATABLE:
                raise
            time.sleep(delay)
            snapshot = refresh(snapshot)
