"""A CHECK constraint on a table that has rows: they are checked first."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import Change, add_constraint
from alluvium.delta.description.referenced import columns_named
from alluvium.delta.features.columns.check_constraints import constraint_check
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import CONSTRAINT_PREFIX
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.sql_tokens import UnreadableText, without_comments
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.statements.conditions import ensure_condition, ensure_holds
from alluvium.spark.values.checks import with_checks
from alluvium.storage.locating import locating


def add_checked_constraint(
    spark: SparkSession,
    snapshot: Snapshot,
    name: str,
    condition: str,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Checks the rows of a version by Spark and adds the constraint; rows that others add meanwhile are a conflict.

    What is added is what every later write can check; comments are left out, as delta-spark's SQL does.

    Raises:
        InvalidRequest: `"constraint-violated"`, `"invalid-constraint"`, `"constraint-exists"`.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer changed the table meanwhile.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        rows = read_own_lane(spark, DeltaSource(snapshot, is_exact=True))
        condition = _kept_text(rows, name, condition)
        # Whether it may be added at all is known before a pass over the data.
        added = add_constraint(snapshot.config, name, condition).config
        check = constraint_check(CONSTRAINT_PREFIX + name.lower(), condition, added)
        # Writers read it in a session of its own, where it may be none.
        with_checks(rows, [check])
        ensure_holds(rows, name, condition, columns_named(condition, snapshot.config.schema))

    def change(config: TableConfig) -> Change:
        return add_constraint(config, name, condition)

    return apply_change(snapshot, change, engine, dry_run, retry)


def _kept_text(rows: DataFrame, name: str, condition: str) -> str:
    """The condition as it is to stand in the table."""
    ensure_condition(rows, name, condition)
    try:
        kept = without_comments(condition)
    except UnreadableText as error:
        raise _invalid(name, condition, str(error)) from None
    if kept == condition:
        return condition
    ensure_condition(rows, name, kept)
    # Spark has the last word on where a comment ends.
    before, after = (rows.select(sf.expr(text).alias("c")) for text in (condition, kept))
    if not before.sameSemantics(after):
        raise _invalid(name, condition, "it has a comment whose end is not plain")
    return kept


def _invalid(name: str, condition: str, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"the constraint {name!r} ({condition}) cannot be added: {problem}",
        code="invalid-constraint",
        hint="leave the comment out",
    )
