"""Partitions that a table lacks, out of another branch. Specification: `FallbackReadFileStoreTable`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

import pyarrow as pa

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import FALLBACK_BRANCH
from alluvium.paimon.view.scan_parts import plan_selection
from alluvium.paimon.view.selection import in_sections, narrowed, visible_entries
from alluvium.plan.scan import ScanPlan


def with_fallback(plan: ScanPlan, snapshot: Snapshot, where: Expression | None) -> ScanPlan:
    """The plan of a snapshot, and the partitions that only its fallback branch has, if it has one."""
    other = fallback_state(snapshot)
    if other is None:
        return plan
    _ensure_alike(snapshot, other)
    other = replace(other, schema=replace(other.schema, options={**other.schema.options, FALLBACK_BRANCH.key: ""}))
    visible = visible_entries(other)
    own = set(_partition_rows(visible_entries(snapshot)).to_pylist())
    rows = _partition_rows(visible)
    missing = pa.array([row not in own for row in rows.dictionary.to_pylist()], pa.bool_()).take(rows.indices)
    # Numbered behind the table's own sections: what has the same number is merged.
    behind = visible_entries(snapshot).num_rows
    extra = plan_selection(other, narrowed(other, in_sections(other, visible.filter(missing), behind), where))
    renamed = tuple(replace(part, key=f"{other.branch}/{part.key}") for part in extra.parts)
    return replace(plan, parts=(*plan.parts, *renamed))


def _ensure_alike(snapshot: Snapshot, other: Snapshot) -> None:
    """Specification: "the two row types must be equal (nullability aside)"; rows are read by their own branch's.

    Raises:
        InvalidRequest: They are not (`"fallback-schema"`).
    """
    own, theirs = (_columns_of(state) for state in (snapshot, other))
    if own == theirs:
        return
    odd = next((a or b for a, b in zip_longest(own, theirs) if a != b), ("", ""))
    raise InvalidRequest(
        f"the columns of the fallback branch {other.branch!r} are others than those of {snapshot.branch!r}",
        code="fallback-schema",
        url=snapshot.store.url,
        column=odd[0],
        hint=f"alter one of them, or leave the option {FALLBACK_BRANCH.key} out",
    )


def _columns_of(state: Snapshot) -> list[tuple[str, str]]:
    """Names and types, without what may be null."""
    return [(f.name, str(f.type.with_nullable(True)).replace(" NOT NULL", "")) for f in state.schema.fields]


def fallback_branch(snapshot: Snapshot) -> str | None:
    """The branch that shows partitions which the table has not; None: there is none."""
    branch = FALLBACK_BRANCH.get(snapshot.schema.options)
    return branch if branch and branch != snapshot.branch else None


def fallback_state(snapshot: Snapshot) -> Snapshot | None:
    """The state of the fallback branch that is behind a snapshot; None: there is no such branch."""
    branch = fallback_branch(snapshot)
    if branch is None:
        return None
    options = {k: v for k, v in snapshot.asked.items() if k != "branch" and not k.startswith("scan.")}
    return snapshot.beside(branch, lambda: _load_state(snapshot, branch, options))


def _load_state(snapshot: Snapshot, branch: str, options: Mapping[str, str]) -> Snapshot:
    """The branch at the same time: ids of its snapshots are others than the table's.

    What nobody asked for is each one's own: neither follows a point in the other's options.
    """
    rest = (branch, options, snapshot.time_zone, snapshot.open_store)
    if snapshot.fallback_id is not None:
        return load_snapshot(snapshot.store, At(snapshot_id=snapshot.fallback_id), *rest)
    if snapshot.is_own_point:
        return load_snapshot(snapshot.store, None, *rest)
    if snapshot.at.is_latest or snapshot.document is None:
        return load_snapshot(snapshot.store, At(), *rest)
    if snapshot.at.tag_name is not None:
        # A tag is of the table's own snapshots: Java shows no partition of the branch beside it.
        return load_snapshot(snapshot.store, At(), *rest).state(0)
    time_ms = snapshot.at.timestamp_ms
    at = At(timestamp_ms=snapshot.document.time_millis if time_ms is None else time_ms)
    try:
        return load_snapshot(snapshot.store, at, *rest)
    except NotFound as error:
        if error.code != "no-snapshot-before":
            raise
        newest = load_snapshot(snapshot.store, At(), *rest)
        if newest.document is None:
            # There was never a snapshot to be read: the branch gives nothing, then as now.
            return newest
        try:
            first = load_snapshot(snapshot.store, At(snapshot_id=1), *rest)
        except NotFound:
            # It has expired, or never was, since the branch began with a tag.
            raise error from None
        # Specification, `FallbackReadFileStoreTable.rewriteFallbackOptions`: beside an id the first one, where there is
        # none. Rows of after the very time that was asked for are none of it; Java refuses such.
        return first if time_ms is None else first.state(0)


def _partition_rows(entries: pa.Table) -> pa.DictionaryArray:
    """Partitions as the rows of bytes that manifests hold."""
    return entries["partition"].combine_chunks().dictionary_encode()


def ensure_own_rows(schema: TableSchema) -> None:
    """Refuses tables that show partitions of a branch: one row that is written to such a partition hides all others of
    it, and with the last row of a partition of the table's own those of the branch come to light.

    Raises:
        UnsupportedFeature: `"unsupported-row-change"`.
    """
    if FALLBACK_BRANCH.get(schema.options):
        raise UnsupportedFeature(
            f"rows of tables with {FALLBACK_BRANCH.key} do not change one by one: a partition is the table's own or "
            "the branch's, as a whole",
            code="unsupported-row-change",
            features=(FALLBACK_BRANCH.key,),
            hint="overwrite the partition with the rows that shall be there",
        )
