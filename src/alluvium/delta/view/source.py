"""A pinned snapshot as a source of scan plans for engines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from alluvium.delta.features.rows.deletion_vectors import is_used, room_for_vectors
from alluvium.delta.terms.actions import total
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import Snapshot, load_snapshot, refresh
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
        follows: Whether the version is a beginning only, and later ones will be read in the same way
            (`plan.ports.FollowedSource`).
    """

    snapshot: Snapshot
    metadata_columns: tuple[str, ...] = ()
    is_pinned: bool = False
    is_exact: bool = False
    follows: bool = False

    @property
    def place(self) -> str:
        return self.snapshot.store.url

    @property
    def version(self) -> int:
        return self.snapshot.version

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
            "follows" if self.follows else "",
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
        if self.follows and is_used(self.snapshot.config):
            plan = _with_masked(plan, self.snapshot)
        if not self.metadata_columns:
            return plan
        shown = tuple(Field(name, LONG, False) for name in self.metadata_columns)
        return replace(plan, schema=Struct((*plan.schema.fields, *shown)))

    def at(self, version: int | None) -> DeltaSource:
        """Another version of the table; None: the newest, reading only the log entries that came since."""
        s = self.snapshot
        if version is None:
            found = refresh(s)
        elif version == s.version:
            found = s
        else:
            found = replace(load_snapshot(s.store, version, time_zone=s.time_zone), open_store=s.open_store)
        return self if found is s else replace(self, snapshot=found)


def _with_masked(plan: ScanPlan, snapshot: Snapshot) -> ScanPlan:
    """The plan with room for deleted rows where no file has any yet: a later version may have some."""
    if any(part.is_masked for part in plan.parts):
        return plan
    s = snapshot
    room = [room_for_vectors(part, s.store, s.open_store, s.version) for part in plan.parts]
    return replace(plan, parts=(*plan.parts, *room))
