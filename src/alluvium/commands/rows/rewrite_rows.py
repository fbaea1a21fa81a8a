"""Changed rows of a table without deletion vectors: each file that loses rows is written anew, without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from alluvium.commands.rows.row_changes import FirstPass, Purpose, is_recorded
from alluvium.commands.rows.row_work import Edit, RowWork
from alluvium.plan.changes import TOUCHED_FILES, ChangeKind, Committed, EditFigures, Preview
from alluvium.spark.kept import persist_rows, unpersist_rows
from alluvium.spark.positions import KIND


@dataclass(frozen=True, slots=True)
class RewriteRows:
    """`RowChangeMode.REWRITE_FILES`."""

    #: A second pass reads the files that are written anew, whole.
    purpose: ClassVar[Purpose] = Purpose.PLACES
    needs_bits: ClassVar[bool] = False

    work: RowWork

    def preview(self) -> Preview:
        """Which files would be written anew, and which would go: those that give no row to others."""
        edited = self.work.edited(self._touched())
        moves_rows = bool(self.work.total("updated"))
        is_whole = pc.and_(pc.fill_null(pc.equal(edited.left, 0), False), pa.scalar(not moves_rows))
        rewritten = tuple(edited.paths.filter(pc.invert(is_whole)).to_pylist())
        whole = tuple(edited.paths.filter(is_whole).to_pylist())
        copied = 0 if edited.left.null_count else int(pc.sum(edited.left).as_py() or 0)
        told = self.work.preview(EditFigures(files_removed=len(rewritten) + len(whole)), copied=copied)
        return replace(told, removed=(*rewritten, *whole), rewritten=rewritten)

    def apply(self, first: FirstPass) -> Committed:
        """Writes the files anew, in one commit."""
        work, updated, inserted = self.work, self.work.total("updated"), self.work.total("inserted")
        if not work.total("gone") and not inserted:
            return work.nothing()
        numbers = self._touched()["file"].combine_chunks()
        chosen = work.changes.candidates.only(numbers)
        touched = pa.table([chosen.paths, pa.nulls(len(numbers), pa.binary())], schema=TOUCHED_FILES)
        live = chosen.live_counts(chosen.files)
        # Of statistics that forget rows more may go than they know of.
        copied = None if live.null_count else max(int(pc.sum(live).as_py() or 0) - work.total("gone"), 0)
        rows = work.single(first.whole(chosen))
        is_whole = copied == 0 and not updated and not inserted
        if is_whole:
            # That no row stays, only the rows can say.
            copied = _copied(rows)
            is_whole = not copied
        # A file that had matches is written anew, be it that none of its rows goes: without change files readers would
        # take all that it holds for deleted and inserted.
        records = is_recorded(work.target) and not is_whole and len(numbers) > 0
        if not records and not work.writes_apart:
            return work.commit(self._edit(rows, touched, copied, records=False))
        rows = persist_rows(rows)
        try:
            return work.commit(self._edit(rows, touched, copied, records=records))
        finally:
            unpersist_rows(rows)

    def _edit(self, rows: DataFrame, touched: pa.Table, copied: int | None, *, records: bool) -> Edit:
        if copied is None:
            copied = _copied(rows)
        join = self.work.changes.join
        return Edit(
            rows,
            touched,
            live=copied + self.work.total("updated") + self.work.total("inserted"),
            copied=copied,
            recorded=rows if records else None,
            # Where tasks still have numbers to make, they number by how many there are (`derive.with_numbers`).
            is_spread=join is not None and not join.numbered,
        )

    def _touched(self) -> pa.Table:
        """Files that lose rows, and, where rows are inserted, those that have matches: `file`, `gone`."""
        located, join = self.work.located, self.work.changes.join
        losing = located.changed
        if join is None or not join.inserts:
            return losing
        matched = located.met
        places = pc.index_in(matched, value_set=losing["file"].combine_chunks())
        return pa.table({"file": matched, "gone": pc.fill_null(losing["gone"].combine_chunks().take(places), 0)})


def _copied(rows: DataFrame) -> int:
    return rows.where(f"{KIND} = {int(ChangeKind.COPY)}").count()
