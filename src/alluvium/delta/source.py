"""A pinned snapshot as a source of scan plans for engines."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.delta.actions import total
from alluvium.delta.scan import plan_scan
from alluvium.delta.snapshot import Snapshot, locating
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan


@dataclass(frozen=True, slots=True)
class DeltaSource:
    """Implements `plan.ports.ScanSource` for one version of a Delta table."""

    snapshot: Snapshot

    @property
    def identity(self) -> tuple[str, ...]:
        """The commit's time tells a table from one that was dropped and made anew at the same place."""
        s = self.snapshot
        return (s.store.url, str(s.version), s.config.metadata.id, str(s.timestamp_ms), s.time_zone)

    @property
    def size_bytes(self) -> int:
        return total(self.snapshot.files.column("size"))

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        with locating(self.snapshot.store, self.snapshot.version):
            return plan_scan(self.snapshot, where)
