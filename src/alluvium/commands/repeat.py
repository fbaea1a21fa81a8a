"""A verb whose commit lost to one that touched its rows is carried out anew, on the version that the winner made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import SparkSession

from alluvium.commands.own_reads import OvertakenRead, own_table, unpinned
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.statements.statement import one_statement

#: An application's id, and how far it has come.
Txn: TypeAlias = tuple[str, int]

log = logging.getLogger("alluvium")

#: Where another attempt would say nothing new: it was our own commit, or there were attempts enough.
_FINAL = frozenset({"concurrent-transaction", "attempts-exhausted"})


def until_committed(
    spark: SparkSession,
    snapshot: Snapshot,
    retry: RetryPolicy,
    attempt: Callable[[Snapshot, RetryPolicy], Committed | Preview],
    obstacle: str | None = None,
    txn: Txn | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Committed | Preview:
    """Carries a verb out; again on the newest version where a winner's commit touched what was read.

    A lost attempt leaves nothing, so that the repetition is an execution of its own after the winner: the outcome is
    that of a serial order, whatever the winner did. It means the same only if the expressions do: they are
    deterministic, the time stands still, and the columns are as they were.

    Args:
        spark: The session.
        snapshot: The version to begin with.
        retry: How often to commit, and to repeat.
        attempt: Plans, locates, writes and commits on a version; what it wrote is gone where it raises a conflict.
        obstacle: Why it may not be repeated, whatever its expressions are.
        txn: An application's id and version, which the commit records; where a version has it already, or a later one,
            there is nothing to do.
        sleep: Waits between repetitions (seconds).

    Raises:
        CommitConflict: The verb may not be repeated, or lost every time; the hint says which.
    """
    spent = repeated = 0
    delays = retry.delays_s()
    with one_statement(spark, own_table(snapshot)) as statement:
        while True:
            if snapshot.has_come_to(txn):
                return Committed.nothing(snapshot.version)
            statement.stand_on(snapshot.version)
            try:
                done = attempt(snapshot, replace(retry, max_attempts=retry.max_attempts - spent))
            except OvertakenRead:
                raise
            except CommitConflict as error:
                spent += error.attempts
                if error.code in _FINAL:
                    raise
                reason = obstacle
                if not statement.is_repeatable:
                    reason = "its values are not deterministic"
                elif unpinned(statement.reads.values()):
                    # Perhaps by a view or a frame that shows an older version for ever.
                    reason = "one of its subqueries has read the table itself"
                elif repeated >= retry.max_repeats or spent >= retry.max_attempts:
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
