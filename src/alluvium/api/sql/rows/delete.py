"""DELETE FROM."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.call import Call
from alluvium.api.sql.rows.changed_table import Needs, changed_table, shown_by_view
from alluvium.api.sql.rows.session_table import SessionTable
from alluvium.commands.rows.row_condition import row_condition
from alluvium.plan.changes import Committed, Preview


def run(call: Call) -> DataFrame | None:
    """Carries out `DELETE FROM t [AS a] [WHERE condition]`; the answer is `num_affected_rows`."""
    table = _table(call)
    if table is None:
        return None
    done = _delete(call, table, dry_run=False)
    assert isinstance(done, Committed)
    return call.answer(num_affected_rows=int(done.metrics.get("numDeletedRows", "0")))


def explain(call: Call) -> str | None:
    """What it would do; None where it is about somebody else's table."""
    table = _table(call)
    return None if table is None else str(_delete(call, table, dry_run=True))


def _table(call: Call) -> DeltaTable | SessionTable | None:
    """The table; of a view that shows some of its columns a condition must name these alone."""
    node = call.plan.table()
    if _is_of_all_rows(call):
        return changed_table(call, node, Needs.NONE)
    found = changed_table(call, node, Needs.NAMED)
    shown = shown_by_view(call, node) if isinstance(found, DeltaTable) else None
    if isinstance(found, DeltaTable) and shown is not None and shown.rows.columns != found.toDF().columns:
        with row_condition(shown.rows, call.column(call.plan.condition()), "the condition of DELETE", shown.name):
            pass  # refused, where it does not resolve
    return found


def _is_of_all_rows(call: Call) -> bool:
    # Without WHERE the parser says `true`: all rows, for which no file needs to be read. The text 'true' is printed
    # like it, and is no condition.
    condition = call.plan.condition()
    return str(condition.nodeName()) == "Literal" and condition.value() is True


def _delete(call: Call, table: DeltaTable | SessionTable, *, dry_run: bool) -> Committed | Preview:
    given = None if _is_of_all_rows(call) else call.column(call.plan.condition())
    return table.delete(given, dry_run=dry_run)
