"""A pinned snapshot as a source of scan plans for engines."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow.compute as pc

from alluvium.expr.tree import Expression
from alluvium.paimon.scan import plan_scan, visible_entries
from alluvium.paimon.snapshot import Snapshot, locating
from alluvium.plan.scan import ScanPart, ScanPlan


@dataclass(frozen=True, slots=True)
class PaimonSource:
    """Implements `plan.ports.ScanSource` for one state of a Paimon table."""

    snapshot: Snapshot

    @property
    def identity(self) -> tuple[str, ...]:
        """The commit tells a table from one that was dropped and made anew at the same place."""
        s = self.snapshot
        commit = "" if s.document is None else f"{s.document.id}.{s.document.commit_user}.{s.document.time_millis}"
        options = ";".join(f"{key}={value}" for key, value in sorted(s.asked.items()))
        return (s.store.url, s.branch, commit, str(s.schema.id), options, s.time_zone)

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(visible_entries(self.snapshot)["file_size"]).as_py() or 0)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        with locating(self.snapshot.store, self.snapshot.version):
            plan = plan_scan(self.snapshot, where)
        names = set(plan.schema.names)
        return replace(plan, parts=tuple(_shown(part, names) for part in plan.parts))


def _shown(part: ScanPart, names: set[str]) -> ScanPart:
    """Parts that merge need their hidden columns; the others leave them out."""
    if part.merge is not None:
        return part
    return replace(part, output=tuple(c for c in part.output if c.name in names))
