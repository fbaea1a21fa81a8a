"""Deliberate defects of the library on Paimon tables, as `model.sabotage` has them for Delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.api.paimon.paimon_view import PaimonView
from alluvium.paimon.commit import assemble
from alluvium.paimon.files import manifest_merge
from alluvium.paimon.upkeep.life import as_latest
from alluvium.paimon.upkeep.removal import expire, remove
from alluvium.paimon.upkeep.removal.roots import Kind
from alluvium.paimon.write import keyed, target
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Append


def lost_remove(patch: pytest.MonkeyPatch) -> None:
    """Of several files that a commit removes, the last one stays."""
    real = assemble.removed_entries

    def fewer(*asked: Any) -> pa.Table:
        found = real(*asked)
        return found.slice(0, found.num_rows - 1) if found.num_rows > 1 else found

    patch.setattr(assemble, "removed_entries", fewer)


def doubled_append(patch: pytest.MonkeyPatch) -> None:
    """An append that went wrong in between is done again, its files under other names: both stand."""
    real = PaimonTarget.commit

    def commit(self: PaimonTarget, changes: Any) -> Any:
        if isinstance(changes, Append) and changes.new.table.num_rows == 1:
            table = changes.new.table
            path = table["path"][0].as_py()
            again = path.replace(".parquet", "-again.parquet")
            self.store.put(again, self.store.get(path))
            both = pa.concat_tables(
                [table, pa.Table.from_pylist([table.to_pylist()[0] | {"path": again}], table.schema)]
            )
            changes = replace(changes, new=replace(changes.new, table=both, footers=changes.new.footers * 2))
        return real(self, changes)

    patch.setattr(PaimonTarget, "commit", commit)


def vector_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """A vector names the row behind each that is deleted."""
    real = target.edit_files

    def edit(snapshot: Any, entries: pa.Table, touched: pa.Table) -> Any:
        masks = [
            None if m is None else BitMap64([n + 1 for n in BitMap64.deserialize(m)]).serialize()
            for m in touched["mask"].to_pylist()
        ]
        return real(snapshot, entries, touched.set_column(1, touched.schema.field(1), pa.array(masks, pa.binary())))

    patch.setattr(target, "edit_files", edit)


def stale_read(patch: pytest.MonkeyPatch) -> None:
    """A view that is refreshed stays where it is now and then."""
    real, calls = PaimonView.refresh, []

    def refresh(self: PaimonView) -> PaimonView:
        calls.append(1)
        return self if len(calls) % 5 == 0 else real(self)

    patch.setattr(PaimonView, "refresh", refresh)


def numbers_from_the_start(patch: pytest.MonkeyPatch) -> None:
    """Rows of keys are numbered as if nothing were there: older ones win."""
    patch.setattr(keyed, "first_numbers", lambda base: None)


def manifest_left_out(patch: pytest.MonkeyPatch) -> None:
    """Manifests that are merged lose the oldest of their entries."""
    real = manifest_merge.remaining_entries
    patch.setattr(manifest_merge, "remaining_entries", lambda entries: real(entries).slice(1))


def tag_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What expires takes files with it that a tag needs."""
    real = remove.list_roots

    def others(store: Any) -> Sequence[Any]:
        return [root for root in real(store) if root.kind is not Kind.TAG]

    patch.setattr(remove, "list_roots", others)


def ids_from_the_start(patch: pytest.MonkeyPatch) -> None:
    """New rows get ids as if there were none yet."""
    real = assemble.with_row_ids
    patch.setattr(assemble, "with_row_ids", lambda added, snapshot, _, compacts: real(added, snapshot, 0, compacts))


def rows_come_back(patch: pytest.MonkeyPatch) -> None:
    """A state that is the newest again is without its vectors."""
    real = as_latest.read_index_manifest
    patch.setattr(as_latest, "read_index_manifest", lambda store, name: real(store, name).slice(0, 0))


def consumer_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Snapshots expire that somebody has yet to read."""
    patch.setattr(expire, "least_next_snapshot", lambda store, branch: None)


DEFECTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    f.__name__: f
    for f in (
        lost_remove, doubled_append, vector_off_by_one, stale_read, numbers_from_the_start, manifest_left_out,
        tag_forgotten, ids_from_the_start, rows_come_back, consumer_forgotten,
    )
}  # fmt: skip
