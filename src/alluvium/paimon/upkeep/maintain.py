"""What a table's options ask for after a commit: snapshots expire, and changelogs, consumers, partitions, tags.

Specification: `org.apache.paimon.table.sink.TableCommitImpl.maintain`. The commit stands: what fails here is left to
the next one.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Mapping

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
    """Does what the options ask for; nothing of a table that leaves it to a job of its own (`write-only`).

    Raises nothing: whoever is told that a commit failed repeats it, and this one stands.
    """
    now_ms = int(time.time() * 1000)
    for step in (_forget_consumers, _tag, _expire, _expire_changelogs):
        try:
            if not WRITE_ONLY.get(options):
                step(store, options, branch, now_ms)
        except Exception as error:  # noqa: BLE001 - options and documents are of other writers
            log.warning("the table was not tidied up after a commit: %s", error)


def _forget_consumers(store: Store, options: Mapping[str, str], branch: str, now_ms: int) -> None:
    idle_ms = life.CONSUMER_EXPIRATION_MS.get(options)
    if idle_ms is not None:
        expire_consumers(store, now_ms - idle_ms, branch)


def _tag(store: Store, options: Mapping[str, str], branch: str, now_ms: int) -> None:
    """Before snapshots expire: a tag keeps what is about to."""
    if life.TAG_AUTOMATIC_CREATION.get(options) == "none":
        return
    try:
        create_due_tags(store, options, branch)
    finally:
        if life.TAG_TIME_EXPIRE_ENABLED.get(options):
            expire_tags(store, dt.datetime.fromtimestamp(now_ms / 1000), None, branch)


def _expire(store: Store, options: Mapping[str, str], branch: str, now_ms: int) -> None:
    expire_snapshots(store, snapshot_retention(options, now_ms), branch, life.keeps_changelogs(options))


def _expire_changelogs(store: Store, options: Mapping[str, str], branch: str, now_ms: int) -> None:
    if life.keeps_changelogs(options):
        expire_changelogs(store, changelog_retention(options, now_ms), branch)
