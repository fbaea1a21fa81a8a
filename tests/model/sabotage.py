"""Deliberate defects of the library, switched on by a monkeypatch: what a model is worth is which of them it catches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.api.delta import table as view
from alluvium.delta.features.rows import row_ids
from alluvium.delta.log_upkeep import checkpoints
from alluvium.delta.rows import row_edits
from alluvium.delta.upkeep import restore
from alluvium.delta.write import target as targets
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Append, FileChanges


def lost_remove(patch: pytest.MonkeyPatch) -> None:
    """Of several files that a commit removes, the last one stays."""
    real = targets.tombstones_of
    patch.setattr(
        targets,
        "tombstones_of",
        lambda files, *more: real(files.slice(0, max(1, files.num_rows - 1)) if files.num_rows > 1 else files, *more),
    )


def doubled_append(patch: pytest.MonkeyPatch) -> None:
    """An append that went wrong in between is done again, its files under other names: both stand."""
    real = DeltaTarget.commit

    def commit(self: DeltaTarget, changes: FileChanges) -> Any:
        if isinstance(changes, Append) and changes.new.table.num_rows == 1:
            path = changes.new.table["path"][0].as_py()
            again = path.replace(".parquet", "-again.parquet")
            self.store.put(again, self.store.get(path))
            row = changes.new.table.to_pylist()[0] | {"path": again}
            both = pa.concat_tables([changes.new.table, pa.Table.from_pylist([row], schema=changes.new.table.schema)])
            changes = replace(changes, new=replace(changes.new, table=both, footers=changes.new.footers * 2))
        return real(self, changes)

    patch.setattr(DeltaTarget, "commit", commit)


def vector_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """A vector names the row behind each that is deleted."""
    real = row_edits.write_vectors

    def write(store: Any, bitmaps: list[tuple[bytes, int]]) -> Any:
        return real(store, [(BitMap64([n + 1 for n in BitMap64.deserialize(b)]).serialize(), c) for b, c in bitmaps])

    patch.setattr(row_edits, "write_vectors", write)


def stale_read(patch: pytest.MonkeyPatch) -> None:
    """A view that is refreshed stays where it is now and then."""
    real, calls = view.refresh, []

    def refresh(snapshot: Any) -> Any:
        calls.append(1)
        return snapshot if len(calls) % 5 == 0 else real(snapshot)

    patch.setattr(view, "refresh", refresh)


def row_id_given_twice(patch: pytest.MonkeyPatch) -> None:
    """The mark up to which ids are given is read one too low."""
    real = row_ids.high_water_mark
    patch.setattr(row_ids, "high_water_mark", lambda domains: max(-1, real(domains) - 1))


def change_row_left_out(patch: pytest.MonkeyPatch) -> None:
    """The feed lacks the last file of changes of a commit."""
    real = targets.change_files
    patch.setattr(
        targets, "change_files", lambda config, written: real(config, written.slice(0, max(0, written.num_rows - 1)))
    )


def tight_statistics(patch: pytest.MonkeyPatch) -> None:
    """Statistics say one row too few, so that answers from the log alone are wrong."""
    real = targets.added_files

    def added(*args: Any, **more: Any) -> pa.Table:
        files = real(*args, **more)
        texts = [t.replace('"numRecords":2', '"numRecords":1') for t in files["stats"].to_pylist()]
        return files.set_column(
            files.schema.get_field_index("stats"), files.schema.field("stats"), pa.array(texts, pa.string())
        )

    patch.setattr(targets, "added_files", added)


def checkpoint_forgets_a_file(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint has all live files but the last."""
    real = checkpoints.checkpoint_files

    def fewer(snapshot: Any, *more: Any) -> Any:
        files = real(snapshot, *more)
        return files.slice(0, files.num_rows - 1) if files.num_rows > 1 else files

    patch.setattr(checkpoints, "checkpoint_files", fewer)


def restore_keeps_a_file(patch: pytest.MonkeyPatch) -> None:
    """RESTORE leaves a file that was not there then."""
    real = restore.plan_restore

    def plan(current: Any, old: Any) -> Any:
        found = real(current, old)
        return replace(found, removed=found.removed.slice(0, max(0, found.removed.num_rows - 1)))

    patch.setattr(restore, "plan_restore", plan)


DEFECTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    f.__name__: f
    for f in (
        lost_remove, doubled_append, vector_off_by_one, stale_read, row_id_given_twice, change_row_left_out,
        tight_statistics, checkpoint_forgets_a_file, restore_keeps_a_file,
    )
}  # fmt: skip
