"""UPDATE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_table import DeltaTable, update_by_statement
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.rows.changed_table import changed_table
from alluvium.api.sql.rows.session_table import SessionTable
from alluvium.api.sql.rows.set_list import set_list
from alluvium.plan.changes import Committed, Preview


def run(call: Call) -> DataFrame | None:
    """Carries out `UPDATE t [AS a] SET c = value, ... [WHERE condition]`; the answer is `num_affected_rows`."""
    table = changed_table(call, call.plan.table())
    if table is None:
        return None
    done = _update(call, table, dry_run=False)
    assert isinstance(done, Committed)
    return call.answer(num_affected_rows=int(done.metrics.get("numUpdatedRows", "0")))


def explain(call: Call) -> str | None:
    """What it would do; None where it is about somebody else's table."""
    table = changed_table(call, call.plan.table())
    return None if table is None else str(_update(call, table, dry_run=True))


def _update(call: Call, table: DeltaTable | SessionTable, *, dry_run: bool) -> Committed | Preview:
    said = some(call.plan.condition())
    condition = None if said is None else call.column(said)
    values = set_list(call, call.plan.assignments(), "UPDATE")
    if isinstance(table, SessionTable):
        return table.update(condition, values, dry_run=dry_run)
    return update_by_statement(table, condition, values, dry_run)
