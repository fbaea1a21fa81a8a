"""A pinned snapshot as a source of scan plans for engines: its rows, or one of the other views of its files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow.compute as pc

from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import tracks_rows
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.changes import (
    PLACES,
    placed,
    plan_changes,
    plan_difference,
    plan_overwrite,
    plan_waiting,
)
from alluvium.paimon.view.merge import KIND, SEQUENCE, keep_deletes
from alluvium.paimon.view.scan import plan_read_optimized, plan_scan
from alluvium.paimon.view.selection import visible_entries
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.storage.locating import locating

#: Views: the rows; the rows with their kinds, deletions too; what needs no merge; rows with their ids; the changes of a
#: range; and what only its first state, or its last, has. For followers: the rows that wait for a bucket; and those
#: that went with an overwrite, or came with it.
ROWS, AUDIT, OPTIMIZED, TRACKING, CHANGES = "rows", "audit_log", "ro", "row_tracking", "changes"
#: Changes with their places in files.
PLACED = "placed"
DIFF_BEFORE, DIFF_AFTER = "diff_before", "diff_after"
WAITING, WENT, CAME = "waiting", "went", "came"
#: Views that have the rows' kinds before the table's columns, and those that have more behind them.
_BEFORE = (AUDIT, CHANGES, PLACED, DIFF_BEFORE, DIFF_AFTER, WAITING, WENT, CAME)
_BEHIND = {TRACKING: (ROW_ID, SEQUENCE), PLACED: PLACES}


def named_columns(schema: TableSchema) -> Struct:
    """What conditions may name: the columns, and the ids of rows that have such."""
    return with_named_ids(logical_schema(schema), schema)


def with_named_ids(columns: Struct, schema: TableSchema) -> Struct:
    """Columns of a table, and the ids of its rows behind them."""
    return Struct((*columns.fields, *(Field(n, t.LONG) for n in _BEHIND[TRACKING]))) if has_ids(schema) else columns


def has_ids(schema: TableSchema) -> bool:
    """Whether rows have ids to ask for."""
    return tracks_rows(schema.options) and not schema.primary_keys


@dataclass(frozen=True, slots=True)
class View:
    """Which rows of a table.

    Attributes:
        name: One of the above.
        start: Of a range: the snapshot that comes before it.
        end: The last one; or the overwrite.
        mode: Of changes: `"delta"`, `"changelog"`.
    """

    name: str = ROWS
    start: int = 0
    end: int = 0
    mode: str = ""


@dataclass(frozen=True, slots=True)
class PaimonSource:
    """Implements `plan.ports.ScanSource` for one state of a Paimon table.

    Attributes:
        snapshot: The state.
        view: Which of its rows.
        is_exact: Whether no file is passed over, whatever the session's settings say (`plan.scan.ScanPart.is_exact`).
    """

    snapshot: Snapshot
    view: View = View()
    is_exact: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """The commit tells a table from one that was dropped and made anew at the same place.

        A state that somebody asked for is not the same that happens to be the newest: what reads it may be overtaken.
        """
        s, v = self.snapshot, self.view
        commit = "" if s.document is None else f"{s.document.id}.{s.document.commit_user}.{s.document.time_millis}"
        options = ";".join(f"{key}={value}" for key, value in sorted(s.asked.items()))
        # A state as streams see it has other rows than it has for batches.
        view = f"{v.name}.{v.start}.{v.end}.{v.mode}.{'' if s.lowest_level is None else s.lowest_level}"
        return (s.store.url, "" if s.version is None else str(s.version), s.branch, commit, str(s.schema.id), options,
                s.time_zone, view, "pinned" if self.is_pinned else "", "exact" if self.is_exact else "")  # fmt: skip

    @property
    def is_pinned(self) -> bool:
        """Whether somebody has asked for just this state, whatever becomes of the table."""
        return not self.snapshot.at.is_latest or self.view.name in (
            CHANGES,
            PLACED,
            DIFF_BEFORE,
            DIFF_AFTER,
            WENT,
            CAME,
        )

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(visible_entries(self.snapshot)["file_size"]).as_py() or 0)

    @property
    def schema(self) -> Struct:
        """The view's columns."""
        own = logical_schema(self.snapshot.schema).fields
        before = (Field(KIND, t.BYTE, False),) if self.view.name in _BEFORE else ()
        return Struct((*before, *own, *(Field(name, t.LONG) for name in _BEHIND.get(self.view.name, ()))))

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        """The files, and how the view's columns come out of them.

        Raises:
            InvalidRequest: The table does not track rows (`"row-tracking-disabled"`).
        """
        with locating(self.snapshot.store, self.snapshot.version):
            plan = self._plan(where)
        schema = self.schema
        plan = plan.exactly() if self.is_exact else plan
        return replace(plan, schema=schema, parts=tuple(_shown(part, schema.names) for part in plan.parts))

    def _plan(self, where: Expression | None) -> ScanPlan:
        snapshot, view = self.snapshot, self.view
        if view.name == CHANGES:
            return plan_changes(snapshot, view.start, view.end, view.mode)
        if view.name == PLACED:
            return placed(plan_changes(snapshot, view.start, view.end, view.mode))
        if view.name in (DIFF_BEFORE, DIFF_AFTER):
            both = plan_difference(snapshot, snapshot.state(view.start), snapshot.state(view.end))
            return both[0] if view.name == DIFF_BEFORE else both[1]
        if view.name in (WENT, CAME):
            both = plan_overwrite(snapshot, view.end)
            return both[0] if view.name == WENT else both[1]
        if view.name == WAITING:
            return plan_waiting(snapshot)
        if view.name == OPTIMIZED:
            return plan_read_optimized(snapshot)
        if view.name == TRACKING and not tracks_rows(snapshot.schema.options):
            raise InvalidRequest("the table does not track rows", code="row-tracking-disabled", url=snapshot.store.url)
        plan = plan_scan(snapshot, where)
        return keep_deletes(plan) if view.name == AUDIT else plan


def _shown(part: ScanPart, names: tuple[str, ...]) -> ScanPart:
    """Parts that merge need their hidden columns; the others have the view's, in their order."""
    if part.merge is not None:
        return part
    by_name = {c.name: c for c in part.output}
    return replace(part, output=tuple(by_name[name] for name in names))
