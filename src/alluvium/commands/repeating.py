"""A verb whose commit lost to one that touched its rows is carried out anew, on the version that the winner made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import RetryPolicy

#: An application's id, and how far it has come.
Txn: TypeAlias = tuple[str, int]

log = logging.getLogger("alluvium")

#: Where another attempt would say nothing new: it was our own commit, or there were attempts enough.
_FINAL = frozenset({"concurrent-transaction", "attempts-exhausted"})


class OvertakenRead(CommitConflict):
    """What was read of a table has changed before anything was done with it: trying again would change nothing."""


def repeat_until_committed(
    snapshot: Snapshot,
    retry: RetryPolicy,
    attempt: Callable[[Snapshot, RetryPolicy], Committed | Preview],
    obstacle: Callable[[], str | None],
    txn: Txn | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Committed | Preview:
    """Carries a verb out; again on the newest version where a winner's commit touched what was read.

    Args:
        snapshot: The version to begin with.
        retry: How often to commit, and to repeat.
        attempt: Plans, locates, writes and commits on a version; what it wrote is gone where it raises a conflict.
        obstacle: Why it may not be repeated, once it has been carried out.
        txn: An application's id and version, which the commit records; where a version has it already, or a later one,
            there is nothing to do.
        sleep: Waits between repetitions (seconds).

    Raises:
        CommitConflict: The verb may not be repeated, or lost every time; the hint says which.
    """
    spent = repeated = 0
    delays = retry.delays_s()
    while True:
        if snapshot.has_come_to(txn):
            return Committed.nothing(snapshot.version)
        try:
            done = attempt(snapshot, replace(retry, max_attempts=retry.max_attempts - spent))
        except OvertakenRead:
            raise
        except CommitConflict as error:
            spent += error.attempts
            if error.code in _FINAL:
                raise
            reason = obstacle()
            if reason is None and (repeated >= retry.max_repeats or spent >= retry.max_attempts):
                reason = f"it was carried out {repeated + 1} times, as often as retry allows"
            if reason is None:
                # Before the look: what is read before a pause is old after it.
                sleep(next(delays, 0.0))
                newest = refresh(snapshot)
                if not _is_same_table(snapshot.config, newest.config):
                    reason = "the table's columns are no longer what they were"
            if reason is not None:
                error.hint = f"not repeated by itself, because {reason}: look at the table, then repeat it"
                raise
            log.warning("carried out anew on version %d: %s", newest.version, error.message)
            snapshot = newest
        else:
            return done if isinstance(done, Preview) else replace(done, attempts=done.attempts + spent)
        repeated += 1


def _is_same_table(before: TableConfig, after: TableConfig) -> bool:
    """Whether expressions over the table mean the same: it has every column that it had, as it was."""
    fields = {f.name: f.type for f in after.schema.fields}
    return before.metadata.id == after.metadata.id and all(fields.get(f.name) == f.type for f in before.schema.fields)
