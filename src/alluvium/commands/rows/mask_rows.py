"""Changed rows of a table with deletion vectors: old ones are masked, new ones written into files of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows.row_changes import FirstPass, Purpose, is_recorded
from alluvium.commands.rows.row_work import Edit, RowWork
from alluvium.plan.changes import TOUCHED_FILES, ChangeKind, Committed, EditFigures, Preview
from alluvium.spark.positions import KIND


@dataclass(frozen=True, slots=True)
class MaskRows:
    """`RowChangeMode.MASK_ROWS`."""

    #: The new rows come out of the pass that finds the old ones.
    purpose: ClassVar[Purpose] = Purpose.ROWS
    needs_bits: ClassVar[bool] = True

    work: RowWork

    def preview(self) -> Preview:
        """Which files would get a mask, and which would go: an emptied file goes, wherever its rows went."""
        edited = self.work.edited(self.work.located.changed)
        is_emptied = pc.fill_null(pc.equal(edited.left, 0), False)
        masked = tuple(edited.paths.filter(pc.invert(is_emptied)).to_pylist())
        emptied = tuple(edited.paths.filter(is_emptied).to_pylist())
        told = self.work.preview(EditFigures(masks_added=len(masked), files_removed=len(emptied)))
        return replace(told, added=masked, removed=emptied, masked=masked)

    def apply(self, first: FirstPass) -> Committed:
        """Masks and writes, in one commit."""
        work, candidates = self.work, self.work.changes.candidates
        numbers = work.located.changed["file"].combine_chunks()
        updated, inserted = work.total("updated"), work.total("inserted")
        if not len(numbers) and not inserted:
            return work.nothing()
        bitmaps = work.located.bitmaps()
        masks = pa.array([bitmaps[number][0] for number in numbers.to_pylist()], pa.binary())
        paths = candidates.paths.take(candidates.places(numbers)) if len(numbers) else pa.array([], pa.string())
        # A frame that nobody runs still takes Spark's time to analyse.
        has_rows = bool(updated or inserted)
        changed = work.single(first.rows.where(f"{KIND} <> {int(ChangeKind.COPY)}")) if has_rows else first.rows
        # Where rows only go, or only come, readers derive the changes from masks and files.
        records = bool(updated) and is_recorded(work.target)
        return work.commit(
            Edit(
                changed,
                pa.table([paths, masks], schema=TOUCHED_FILES),
                live=updated + inserted,
                inserted=inserted,
                recorded=changed if records else None,
            )
        )
