"""A verb of a session whose commit lost to one that touched its rows is carried out anew, on the winner's version."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from alluvium.commands.own_reads import own_table, unpinned
from alluvium.commands.repeating import Txn, repeat_until_committed
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.statements.statement import one_statement


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
    with one_statement(spark, own_table(snapshot)) as statement:

        def standing(base: Snapshot, policy: RetryPolicy) -> Committed | Preview:
            statement.stand_on(base.version)
            return attempt(base, policy)

        def why_not() -> str | None:
            if not statement.is_repeatable:
                return "its values are not deterministic"
            # Perhaps by a view or a frame that shows an older version for ever.
            has_read = bool(unpinned(statement.reads.values()))
            return "one of its subqueries has read the table itself" if has_read else obstacle

        return repeat_until_committed(snapshot, retry, standing, why_not, txn, sleep)
