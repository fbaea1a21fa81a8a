"""UPDATE without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.commands.rows_here.delete import kinds_where
from alluvium.commands.rows_here.judged import Judged
from alluvium.commands.rows_here.names import Names
from alluvium.commands.rows_here.new_rows import Values
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.changes import ChangeKind


@dataclass(frozen=True, slots=True)
class Update:
    """Implements `Judge`: new values in rows for which a condition is true.

    Attributes:
        where: The condition, over the table's columns; None: all rows change.
        values: What they become.
        names: How values name the table's columns.
        table: The table's name there.
    """

    where: Expression | None
    values: Values
    names: Names
    table: str

    @property
    def columns(self) -> Sequence[str]:
        return [] if self.where is None else sorted({path[0] for path in column_paths(self.where)})

    @property
    def makes_rows(self) -> bool:
        return True

    def judge(self, rows: pa.Table) -> Judged:
        kinds = kinds_where(self.where, rows, self.names.time_zone, ChangeKind.UPDATE)
        judged = Judged(kinds)
        if not set(self.values.schema.names) <= set(rows.column_names):
            return judged
        changed = rows.filter(judged.of(ChangeKind.UPDATE)).select(self.values.schema.names)
        return Judged(kinds, self.values.update(changed, self.names.rows(**{self.table: changed})))

    def inserted(self) -> Sequence[pa.Table]:
        return ()
