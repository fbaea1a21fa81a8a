"""A pinned snapshot as a source of scan plans for engines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from alluvium.delta.terms.actions import total
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import Snapshot
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class DeltaSource:
    """Implements `plan.ports.ScanSource` for one version of a Delta table.

    Attributes:
        snapshot: The version.
        metadata_columns: Columns of the result beside those of the schema (`features.rows.row_tracking`).
        is_pinned: Whether somebody has asked for just this version: what became of the table since is none of the
            business of those who read it.
        is_exact: Whether a file that is gone, or damaged, is an error whatever the session's settings say: who judges
            all rows of a table by what was read must have read all (`plan.scan.ScanPart.is_exact`).
    """

    snapshot: Snapshot
    metadata_columns: tuple[str, ...] = ()
    is_pinned: bool = False
    is_exact: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """The commit's time tells a table from one that was dropped and made anew at the same place.

        A version that was asked for is another relation than the newest one, although the rows are the same: engines
        keep one of those that are equal, and only of one of the two it matters what came since.
        """
        s = self.snapshot
        return (
            s.store.url,
            str(s.version),
            s.config.metadata.id,
            str(s.timestamp_ms),
            s.time_zone,
            "pinned" if self.is_pinned else "",
            "exact" if self.is_exact else "",
            *self.metadata_columns,
        )

    @property
    def size_bytes(self) -> int:
        return total(self.snapshot.files.column("size"))

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        with locating(self.snapshot.store, self.snapshot.version):
            plan = plan_scan(self.snapshot, where, self.metadata_columns)
        if self.is_exact:
            plan = plan.exactly()
        if not self.metadata_columns:
            return plan
        shown = tuple(Field(name, LONG, False) for name in self.metadata_columns)
        return replace(plan, schema=Struct((*plan.schema.fields, *shown)))
