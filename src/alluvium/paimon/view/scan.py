"""Snapshot plus predicate to ScanPlan: which files, how columns come out of them, and which rows merge.

Specification: spec/paimon-format.md (d); `org.apache.paimon.table.source`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.compaction_options import num_levels
from alluvium.paimon.view.fallback import with_fallback
from alluvium.paimon.view.scan_parts import plan_selection
from alluvium.paimon.view.selection import in_sections, select_files, unmerged, visible_entries
from alluvium.plan.scan import ScanPlan


def plan_scan(snapshot: Snapshot, where: Expression | None = None) -> ScanPlan:
    """How to read the rows of a snapshot for which `where` may be true."""
    return with_fallback(plan_selection(snapshot, select_files(snapshot, where)), snapshot, where)


def plan_entries(snapshot: Snapshot, entries: pa.Table) -> ScanPlan:
    """How to read some of a snapshot's files."""
    return plan_selection(snapshot, in_sections(snapshot, entries))


def plan_read_optimized(snapshot: Snapshot) -> ScanPlan:
    """Only the files of the highest level, whose rows need no merge. Specification: `ReadOptimizedTable`."""
    entries = visible_entries(snapshot)
    if snapshot.schema.primary_keys:
        entries = entries.filter(pc.equal(entries["level"], num_levels(snapshot.schema.options) - 1))
    return plan_selection(snapshot, unmerged(snapshot, entries))
