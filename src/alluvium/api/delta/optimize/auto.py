"""What is due after rows were written: auto compaction, where the session or the table asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql import SparkSession

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.optimize.settings import auto_compaction, cube_sizes
from alluvium.api.engine import engine_of
from alluvium.commands.optimize.auto import compact_written
from alluvium.commands.optimize.optimize import OptimizeRequest
from alluvium.commit.afterwards import afterwards
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.changes import Committed, Preview
from alluvium.spark.scan.native_lane.cached_rows import renew_cached_rows

Done = TypeVar("Done", Committed, Committed | Preview)

log = logging.getLogger("alluvium")


def compacting(access: TableAccess, verb: Callable[[Snapshot], Done]) -> Done:
    """Carries out a verb over rows on the newest version, and then what is due after it (`after_rows`)."""
    snapshot = access.snapshot()
    done = verb(snapshot)
    return after_rows(access.spark, snapshot.store.url, snapshot.config.metadata.configuration, done, access.snapshot)


def renewed(spark: SparkSession, url: str, done: Done) -> Done:
    """Has rows of a table in Spark's cache computed anew that its frames show, where a verb has changed it."""
    if isinstance(done, Committed) and done.attempts:
        afterwards(f"version {done.version}", "renewal of cached rows", lambda: renew_cached_rows(spark, url))
    return done


def after_rows(
    spark: SparkSession, url: str, configuration: Mapping[str, str], done: Done, newest: Callable[[], Snapshot]
) -> Done:
    """Renews cached rows (`renewed`), and puts small files together after a commit that added some. It never fails:
    whatever goes wrong is a warning.

    Args:
        spark: The session.
        url: Of the table.
        configuration: The table's, after the commit.
        done: What was written, or would be.
        newest: Opens the newest version.

    Returns:
        `done`.
    """
    renewed(spark, url, done)
    if isinstance(done, Preview) or not done.attempts or not done.files.num_rows:
        return done
    committed: Committed = done

    def act() -> None:
        wanted = auto_compaction(spark, configuration)
        if wanted is None:
            return
        request = OptimizeRequest((), engine_of(spark), cubes=cube_sizes(spark))
        compact_written(spark, newest(), committed.files["path"], wanted, request)

    afterwards(f"version {committed.version}", "auto compaction", act)
    return done
