"""A verb over a Paimon table whose commit lost is carried out anew, on the state that the winner made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession

from alluvium.commands.own_reads import unpinned
from alluvium.commands.paimon.expired_state import expiry_as_conflict
from alluvium.commands.repeating import OvertakenRead
from alluvium.errors import CommitConflict
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.statements.statement import one_statement

log = logging.getLogger("alluvium")

#: Where another attempt would say nothing new.
_FINAL = frozenset({"concurrent-transaction", "attempts-exhausted", "table-replaced", "metadata-changed"})
_Done = TypeVar("_Done")


def repeated(
    spark: SparkSession,
    snapshot: Snapshot,
    retry: RetryPolicy,
    attempt: Callable[[Snapshot], _Done],
    obstacle: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> _Done:
    """Carries a verb out; again on the newest state where another writer's commit touched what was read.

    Args:
        spark: The session.
        snapshot: The state to begin with.
        retry: How often.
        attempt: Reads, writes and commits on a state; what it wrote is gone where it raises a conflict.
        obstacle: Why it may not be repeated, whatever its expressions are.
        sleep: Waits between repetitions (seconds).

    Raises:
        CommitConflict: Another writer won every time, or the verb may not be repeated.
    """
    delays = retry.delays_s()
    with one_statement(spark, OwnTable(snapshot.store.url)) as statement:
        for count in range(retry.max_repeats + 1):
            try:
                with expiry_as_conflict(snapshot):
                    return attempt(snapshot)
            except OvertakenRead:
                raise
            except CommitConflict as error:
                if unpinned(statement.reads.values()):
                    # Perhaps by a view or a frame that shows an older state for ever.
                    obstacle = "one of its subqueries has read the table itself"
                if obstacle is not None:
                    error.hint = f"not repeated by itself, because {obstacle}: look at the table, then repeat it"
                last = count == retry.max_repeats or error.code in _FINAL or obstacle is not None
                if last or not statement.is_repeatable:
                    raise
                # Before the look: what is read before a pause is old after it.
                sleep(next(delays, 0.0))
                newest = load_snapshot(snapshot.store, At(), snapshot.branch, time_zone=snapshot.time_zone)
                if newest.schema.fields != snapshot.schema.fields:
                    raise
                log.warning("carried out anew on snapshot %s: %s", newest.version, error.message)
                snapshot = newest
    raise AssertionError("the last repetition returns or raises")
