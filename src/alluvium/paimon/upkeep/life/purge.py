"""A table is emptied, and its past with it: only its schemas stay, and the empty state.

Specification: `org.apache.paimon.table.FileStoreTable.purgeFiles`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.log.consumers import clear_consumers
from alluvium.paimon.log.names import directory, list_branches, list_numbers
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.again import again
from alluvium.paimon.upkeep.life.branches import delete_branch, ensure_not_shown
from alluvium.paimon.upkeep.life.tags import delete_tag, list_all_tags
from alluvium.paimon.upkeep.removal.expire import expire_snapshots
from alluvium.paimon.upkeep.removal.orphans import remove_orphan_files
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.paimon.write.target import publish
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.store import Store

_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Purged:
    """What went with the past of a table.

    Attributes:
        version: The snapshot of the empty state; None: the table never had one.
        branches: Names of branches.
        tags: Names of tags.
        consumers: Names of consumers.
    """

    version: int | None
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    consumers: tuple[str, ...]


def purge_files(store: Store, retry: RetryPolicy = DEFAULT_RETRY) -> Purged:
    """Takes all rows out of a table, and forgets how it was: branches, tags, consumers, changelogs, earlier snapshots
    and all files, those of writers that are at work among them.

    The rows go first: whoever reads meanwhile gets none, or a clear error.

    Raises:
        InvalidRequest: The table shows the rows of a branch (`"branch-in-use"`); nothing was done.
        CommitConflict: Others committed every time; the table is as it was.
    """
    ensure_not_shown(store, list_branches(store))
    version = again(lambda: _emptied(store, retry), retry, "emptied")
    branches = list_branches(store)
    for name in branches:
        delete_branch(store, name)
    tags = [tag.name for tag in list_all_tags(store)]
    for name in tags:
        delete_tag(store, name)
    consumers = clear_consumers(store, None, None, MAIN_BRANCH)
    kept = directory(MAIN_BRANCH, "changelog")
    for number in list_numbers(store, kept, "changelog-"):
        store.delete(f"{kept}/changelog-{number}")
    expire_snapshots(store, Retention(1, 1, _ALL, _ALL))
    # Whatever is there by now.
    later_ms = int(time.time() * 1000) + 1
    remove_orphan_files(store, load_snapshot(store, At()).schema, later_ms, later_ms + 1)
    return Purged(version, tuple(branches), tuple(tags), tuple(consumers))


def _emptied(store: Store, retry: RetryPolicy) -> int | None:
    snapshot = load_snapshot(store, At())
    if snapshot.document is None:
        return None
    return publish(store, Draft(snapshot.schema, ENTRIES.empty_table(), Replaced()), snapshot, retry).entry.version
