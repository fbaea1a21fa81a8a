"""Changed rows of a table whose files hold columns of the same rows: what changes is written beside them, column by
column.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.commands.rows.row_changes import FirstPass, Purpose
from alluvium.commands.rows.row_work import RowWork, milliseconds_since
from alluvium.commands.rows.upsert_rows import ensure_stay
from alluvium.commands.write import new_files
from alluvium.plan.changes import TOUCHED_FILES, ChangeKind, Committed, EditFigures, NewFiles, Patches, Preview
from alluvium.plan.ports import RowPlaces
from alluvium.plan.write import WritePlan
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.kept import unpersist_rows
from alluvium.spark.naming.names import quote
from alluvium.spark.placing import place_rows, task_keys
from alluvium.spark.positions import KIND
from alluvium.spark.values.derive import complete

#: The number of the task that wrote a file, in the names that Spark and our workers give.
_TASK = re.compile(r"(?:part-)?(\d+)-")


@dataclass(frozen=True, slots=True)
class PatchRows:
    """`RowChangeMode.PATCH_COLUMNS`."""

    #: A second pass reads all rows of the files that change, also those that stay as they are.
    purpose: ClassVar[Purpose] = Purpose.PLACES
    needs_bits: ClassVar[bool] = False

    work: RowWork

    def preview(self) -> Preview:
        """No file goes: each that has a row that changes gets one beside it."""
        edited = self.work.edited(self.work.located.changed)
        copied = int(pc.sum(edited.left).as_py() or 0)
        return self.work.preview(EditFigures(files_added=len(edited.paths)), copied=copied)

    def apply(self, first: FirstPass) -> Committed:
        """Writes the columns and new rows, in one commit."""
        work = self.work
        if not work.total("updated") and not work.total("inserted"):
            return work.nothing()
        numbers = work.located.changed["file"].combine_chunks()
        chosen = work.changes.candidates.only(numbers)
        keys = task_keys(len(numbers)) if len(numbers) else ()
        placed = chosen.renumbered(pa.array(keys, pa.int64()))
        rows = work.single(first.whole(placed))
        moves = not set(work.target.before_columns).isdisjoint(work.changes.assigned)
        # Several jobs look at them.
        is_kept = moves or work.total("inserted") > 0
        rows = rows.persist() if is_kept else rows
        try:
            if moves:
                ensure_stay(work, rows, "insert the rows into their new partitions, and overwrite the old ones")
            if not self._columns and not work.total("inserted"):
                return work.nothing()
            return self._committed(rows, placed)
        finally:
            if is_kept:
                unpersist_rows(rows)

    @property
    def _columns(self) -> tuple[str, ...]:
        """What is written of rows that stay."""
        stays = self.work.target.before_columns
        return tuple(name for name in self.work.changes.assigned if name not in stays)

    def _committed(self, rows: DataFrame, placed: RowPlaces) -> Committed:
        work, begun, columns = self.work, time.monotonic(), self._columns
        plan, fresh_plan = work.target.plan_write(None, ()).only(columns), work.target.plan_write(None, ())
        inserted, count = work.total("inserted"), placed.files.num_rows
        try:
            fresh = work.write_fresh(rows, fresh_plan) if inserted else NewFiles.none()
            patches = self._patches(rows, placed, plan, columns) if count and columns else None
            live = int(pc.sum(placed.live_counts(placed.files)).as_py() or 0)
            counts = work.counts(inserted, live - work.total("updated"), milliseconds_since(begun))
            changes = work.edit_rows(fresh, TOUCHED_FILES.empty_table(), counts)
            return work.target.commit(replace(changes, patches=patches))
        finally:
            # The commit has moved what is part of the table.
            work.discard(plan, fresh_plan)

    def _patches(self, rows: DataFrame, placed: RowPlaces, plan: WritePlan, columns: tuple[str, ...]) -> Patches:
        """One file for each of the files, by a task of its own, its rows in that file's order."""
        work, names = self.work, placed.columns
        stays = rows.where(f"{KIND} in ({int(ChangeKind.COPY)}, {int(ChangeKind.UPDATE)})")
        # Conditions, and the texts of the files, see the columns alone.
        apart = place_rows(stays, sf.col(quote(names.file)), placed.files.num_rows)
        ordered = apart.sortWithinPartitions(sf.col(quote(names.row)))
        completed = complete(select_texts(ordered, list(map(quote, columns))), plan.schema, plan)
        new = new_files(completed, work.target.store, completed.plan, (), work.verb.open_store)
        tasks = pa.array(tasks_of(new), pa.int64())
        return Patches(new, placed.files["path"].combine_chunks().take(tasks), columns)


def tasks_of(new: NewFiles) -> list[int]:
    """Of each file that a job has left the number of its task."""
    return [int(match[1]) for path in new.table["path"].to_pylist() if (match := _TASK.match(_name(path)))]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
