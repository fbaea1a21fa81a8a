"""What a table's options ask for after a commit: snapshots expire, and changelogs, consumers, partitions, tags.

Specification: `org.apache.paimon.table.sink.TableCommitImpl.maintain`. The commit stands: what fails here is left to
the next one.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Mapping

from alluvium.errors import AlluviumError
from alluvium.paimon.log.consumers import expire_consumers
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.terms import life_options as life
from alluvium.paimon.terms.options import WRITE_ONLY
from alluvium.paimon.upkeep.life.auto_tags import create_due_tags
from alluvium.paimon.upkeep.life.tags import expire_tags
from alluvium.paimon.upkeep.removal.expire import expire_changelogs, expire_snapshots
from alluvium.paimon.upkeep.removal.retention import changelog_retention, snapshot_retention
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")


def maintain(store: Store, options: Mapping[str, str], branch: str = MAIN_BRANCH) -> None:
    """Does what the options ask for; nothing of a table that leaves it to a job of its own (`write-only`)."""
    if WRITE_ONLY.get(options):
        return
    now_ms = int(time.time() * 1000)
    keeps = life.keeps_changelogs(options)
    idle_ms = life.CONSUMER_EXPIRATION_MS.get(options)
    steps: list[Callable[[], object]] = []
    if idle_ms is not None:
        steps.append(lambda: expire_consumers(store, now_ms - idle_ms, branch))
    # Tags before snapshots: a tag keeps what is about to expire.
    if life.TAG_AUTOMATIC_CREATION.get(options) != "none":
        steps.append(lambda: create_due_tags(store, options, branch))
        if life.TAG_TIME_EXPIRE_ENABLED.get(options):
            now = dt.datetime.fromtimestamp(now_ms / 1000)
            steps.append(lambda: expire_tags(store, now, None, branch))
    steps.append(lambda: expire_snapshots(store, snapshot_retention(options, now_ms), branch, keeps))
    if keeps:
        steps.append(lambda: expire_changelogs(store, changelog_retention(options, now_ms), branch))
    for step in steps:
        try:
            step()
        except AlluviumError as error:
            log.warning("the table was not tidied up after a commit: %s", error)
