"""DELETE without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows_here.judged import Judged, kinds_of
from alluvium.expr.evaluate import evaluate
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.changes import ChangeKind


@dataclass(frozen=True, slots=True)
class Deletion:
    """Implements `Judge`: rows for which a condition is true go.

    Attributes:
        where: The condition, over the table's columns; None: all rows go.
        time_zone: In which it is evaluated.
    """

    where: Expression | None
    time_zone: str

    @property
    def columns(self) -> Sequence[str]:
        return [] if self.where is None else sorted({path[0] for path in column_paths(self.where)})

    @property
    def makes_rows(self) -> bool:
        return False

    def judge(self, rows: pa.Table) -> Judged:
        return Judged(kinds_where(self.where, rows, self.time_zone, ChangeKind.DELETE))

    def inserted(self) -> Sequence[pa.Table]:
        return ()


def kinds_where(where: Expression | None, rows: pa.Table, time_zone: str, kind: ChangeKind) -> pa.Array:
    """A kind for rows for which a condition is true; the others stay."""
    changed, stays = pa.scalar(int(kind), pa.int8()), pa.scalar(int(ChangeKind.COPY), pa.int8())
    if where is None:
        return kinds_of(rows.num_rows, kind)
    return pc.if_else(pc.fill_null(evaluate(where, rows, time_zone), False), changed, stays)
