"""DELETE FROM."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.call import Call
from alluvium.api.sql.rows.changed_table import changed_table
from alluvium.api.sql.rows.session_table import SessionTable
from alluvium.plan.changes import Committed, Preview


def run(call: Call) -> DataFrame | None:
    """Carries out `DELETE FROM t [AS a] [WHERE condition]`; the answer is `num_affected_rows`."""
    table = changed_table(call, call.plan.table())
    if table is None:
        return None
    done = _delete(call, table, dry_run=False)
    assert isinstance(done, Committed)
    return call.answer(num_affected_rows=int(done.metrics.get("numDeletedRows", "0")))


def explain(call: Call) -> str | None:
    """What it would do; None where it is about somebody else's table."""
    table = changed_table(call, call.plan.table())
    return None if table is None else str(_delete(call, table, dry_run=True))


def _delete(call: Call, table: DeltaTable | SessionTable, *, dry_run: bool) -> Committed | Preview:
    condition = call.plan.condition()
    # Without WHERE the parser says `true`: all rows, for which no file needs to be read. The text 'true' is printed
    # like it, and is no condition.
    is_all = str(condition.nodeName()) == "Literal" and condition.value() is True
    given = None if is_all else call.column(condition)
    return table.delete(given, dry_run=dry_run)
