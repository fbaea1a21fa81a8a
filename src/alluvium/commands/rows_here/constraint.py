"""A CHECK constraint on a table that has rows, without Spark: they are checked first, batch by batch."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows_here.names import Names
from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.evolve import Change, add_constraint
from alluvium.delta.features.columns.check_constraints import constraint_check
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import CONSTRAINT_PREFIX
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.sql_tokens import UnreadableText, without_comments
from alluvium.expr.tree import Expression, column_paths, within
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.scan import FILE_COLUMN
from alluvium.portable.reader import read_batches
from alluvium.storage.locating import locating

#: Rows that break it which a message shows.
_SHOWN = 5
_TABLE = "__alluvium_table"


def add_constraint_here(
    snapshot: Snapshot,
    name: str,
    condition: str,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Committed | Preview:
    """Checks the rows of a version and adds the constraint; rows that others add meanwhile are a conflict.

    Raises:
        InvalidRequest: `"constraint-violated"`; `"invalid-constraint"`, `"invalid-predicate"`: it is no condition on a
            row; `"constraint-exists"`.
        UnsupportedFeature: Only Spark evaluates it (`"needs-spark"`), or the table needs a writer that we are not.
        CommitConflict: Another writer changed the table meanwhile.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        _ensure_without_comments(name, condition)
        # Whether it may be added at all is known before a pass over the data.
        added = add_constraint(snapshot.config, name, condition).config
        constraint_check(CONSTRAINT_PREFIX + name.lower(), condition, added)
        names = Names({_TABLE: snapshot.config.schema})
        must_hold = within(names.condition(condition, f"the constraint {name!r}"), _TABLE)
        _ensure_holds(snapshot, name, condition, must_hold)

    def change(config: TableConfig) -> Change:
        return add_constraint(config, name, condition)

    return apply_change(snapshot, change, engine, dry_run, retry)


def _ensure_without_comments(name: str, condition: str) -> None:
    try:
        plain = without_comments(condition) == condition
    except UnreadableText:
        plain = False
    if not plain:
        raise InvalidRequest(
            f"the constraint {name!r} ({condition}) cannot be added: it has a comment, or no plain end",
            code="invalid-constraint",
            hint="leave the comment out",
        )


def _ensure_holds(snapshot: Snapshot, name: str, condition: str, must_hold: Expression) -> None:
    columns = sorted({path[0] for path in column_paths(must_hold)})
    count = 0
    shown: list[object] = []
    batches = read_batches(plan_scan(snapshot), snapshot.store, snapshot.open_store, columns or [FILE_COLUMN])
    for batch in batches:
        broken = batch.filter(pc.invert(pc.fill_null(_holds(must_hold, batch, name, condition), False)))
        count += broken.num_rows
        shown += broken.slice(0, _SHOWN - len(shown)).to_pylist() if columns else []
    if count:
        rows = f": {', '.join(map(str, shown))}" if shown else ""
        raise InvalidRequest(
            f"{count} rows of the table violate the constraint {name!r} ({condition}){rows}",
            code="constraint-violated",
            hint="nothing was changed; correct or delete these rows first",
        )


def _holds(must_hold: Expression, rows: pa.RecordBatch, name: str, condition: str) -> pa.Array:
    try:
        return evaluate(must_hold, rows, "UTC")
    except InvalidRequest as error:
        if error.code != "unsupported-expression":
            raise
        raise UnsupportedFeature(
            f"the constraint {name!r} ({condition}): only Spark can evaluate this",
            code="needs-spark",
            hint="DeltaTable.forPath(spark, path).addConstraint(...)",
        ) from error
