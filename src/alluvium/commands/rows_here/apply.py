"""One way to apply what a verb decides, by masks over rows that go or by files anew; in fixed memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.rows.verb import Counts, Verb
from alluvium.commands.rows_here.edited_files import EditedFiles
from alluvium.commands.rows_here.judged import Judge, Judged
from alluvium.commands.rows_here.places import Places
from alluvium.commands.written import Request
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.rows.candidates import Candidates
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import (
    TOUCHED_FILES,
    ChangeKind,
    Committed,
    EditFigures,
    EditRows,
    NewFiles,
    Preview,
    ReadScope,
    RowChangeMode,
)
from alluvium.plan.write import WRITTEN_FILES
from alluvium.portable.reader import read_batches


@dataclass
class RowsHere:
    """A verb over the rows of a Delta table, without Spark.

    Attributes:
        target: The table.
        candidates: Files that may hold rows that change.
        judge: What the verb decides.
        scope: What rows that change have in common, for conflicts; None: any row may.
        verb: Who asks.
        mode: How the table takes changed rows.
        time_zone: In which expressions are evaluated.
        writes: Of an overwrite: what was asked for; there is a commit then, be it of no row.
        left: Rows that stay, of files that lose some, where these are masked.
    """

    target: DeltaTarget
    candidates: Candidates
    judge: Judge
    scope: Expression | None
    verb: Verb
    mode: RowChangeMode
    time_zone: str
    writes: Request | None = None
    left: int = field(default=0, init=False)
    _counts: Counts = field(default_factory=Counts, init=False)

    def apply(self) -> Committed:
        """Carries it out, in one commit.

        Raises:
            InvalidRequest: New rows do not fit the table; it is as it was.
            UnsupportedFeature: Rows have values that are not written without Spark.
            CommitConflict: Another writer touched what was read.
        """
        files = EditedFiles(self.target, self.candidates, self.time_zone, self.writes)
        try:
            edit = self._edit(files)
        except BaseException:
            files.discard()
            raise
        if edit is None:
            files.discard()
            return self._nothing()
        try:
            return self.target.commit(edit)
        except NOTHING_STANDS:
            files.discard()
            raise

    def preview(self) -> Preview:
        """What it would come to; nothing is written."""
        begun, masks = time.monotonic(), self._masks
        places, candidates = self._first_pass(None), self.candidates
        count = sum(rows.num_rows for rows in self.judge.inserted())
        self._counts = replace(self._counts, scan_ms=_since(begun), inserted=count)
        chosen = candidates.files.take(candidates.places(places.numbers))
        live = candidates.live_counts(chosen)
        emptied = places.emptied(live)
        if not masks and not live.null_count:
            self._counts = replace(self._counts, copied=int(pc.sum(live).as_py() or 0) - places.count)
        some, whole = (tuple(chosen["path"].filter(mask).to_pylist()) for mask in (pc.invert(emptied), emptied))
        gone = whole if masks else (*some, *whole)
        operation = replace(
            self.verb.operation,
            metrics=self._metrics(EditFigures(masks_added=len(some) if masks else 0, files_removed=len(gone))),
        )
        told = Preview(
            candidates.version, operation, {}, removed=gone, read=tuple(candidates.files["path"].to_pylist())
        )
        return replace(told, added=some, masked=some) if masks else replace(told, rewritten=some)

    @property
    def _masks(self) -> bool:
        return self.mode is RowChangeMode.MASK_ROWS

    def _edit(self, files: EditedFiles) -> EditRows | None:
        """Writes all files; None: no row changes."""
        begun = time.monotonic()
        places = self._first_pass(files if self._masks and self.judge.makes_rows else None)
        self._counts = replace(self._counts, scan_ms=_since(begun))
        begun = time.monotonic()
        for rows in self.judge.inserted():
            files.insert(rows)
        if not places.count and not files.inserted and self.writes is None:
            return None
        self.left = self._live(places) - places.count
        if not self._masks:
            self._second_pass(files, places)
        # Where rows only go, or only come, readers derive it from masks and files.
        new, records = files.finish(keeps_records=self._counts.updated > 0 or files.copied > 0)
        self._counts = replace(self._counts, copied=files.copied, inserted=files.inserted, rewrite_ms=_since(begun))
        return EditRows(
            new,
            self._touched(places),
            self.verb.operation,
            ReadScope.rows(self.scope) if self.writes is None else ReadScope.rows(self.scope).beside(self.writes.read),
            records,
            self._metrics,
            self.verb.txn,
        )

    def _first_pass(self, files: EditedFiles | None) -> Places:
        """Finds rows that change; with `files` those that are something else are written on the way."""
        places, names = Places(), self.candidates.columns
        asked = None if files is not None else [*self.judge.columns, names.file, names.row]
        for rows in self._scan(self.candidates, asked, self.judge.where):
            judged = self.judge.judge(rows)
            goes = judged.of(ChangeKind.UPDATE, ChangeKind.DELETE)
            places.add(rows[names.file].filter(goes), rows[names.row].filter(goes))
            self._count(judged)
            if files is not None:
                files.update(rows, judged)
        return places

    def _second_pass(self, files: EditedFiles, places: Places) -> None:
        """Writes the files anew that lose rows."""
        # Also those that have no row left by their statistics: that is for the rows to say.
        for rows in self._scan(self.candidates.only(places.numbers), None, None):
            judged = self.judge.judge(rows)
            files.copy(rows.filter(judged.of(ChangeKind.COPY)))
            files.update(rows, judged)

    def _scan(
        self, candidates: Candidates, columns: Sequence[str] | None, where: Expression | None
    ) -> Iterator[pa.Table]:
        if not candidates.files.num_rows:
            return
        s, names = candidates.snapshot, None if columns is None else list(dict.fromkeys(columns))
        for batch in read_batches(candidates.plan_scan(None), s.store, s.open_store, names, where, self.time_zone):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    def _count(self, judged: Judged) -> None:
        updated, deleted = judged.of(ChangeKind.UPDATE), judged.of(ChangeKind.DELETE)
        lonely = pa.repeat(pa.scalar(False), len(updated)) if judged.lonely is None else judged.lonely
        c = self._counts
        self._counts = replace(
            c,
            updated=c.updated + updated.true_count,
            deleted=c.deleted + deleted.true_count,
            unmatched_updated=c.unmatched_updated + pc.and_(lonely, updated).true_count,
            unmatched_deleted=c.unmatched_deleted + pc.and_(lonely, deleted).true_count,
        )

    def _nothing(self) -> Committed:
        """As the reference, a verb that changes no row makes no commit, unless there is something else to say."""
        if self.verb.txn is None and not self.target.is_changed:
            return Committed(self.candidates.version, WRITTEN_FILES.empty_table(), self._metrics(EditFigures()), 0)
        nothing, scope = TOUCHED_FILES.empty_table(), ReadScope.rows(self.scope)
        return self.target.commit(
            EditRows(NewFiles.none(), nothing, self.verb.operation, scope, None, self._metrics, self.verb.txn)
        )

    def _touched(self, places: Places) -> pa.Table:
        numbers = places.numbers
        if not len(numbers):
            return TOUCHED_FILES.empty_table()
        paths = self.candidates.paths.combine_chunks().take(self.candidates.places(numbers))
        masks = places.masks if self._masks else pa.nulls(len(numbers), pa.binary())
        return pa.table([paths, masks], schema=TOUCHED_FILES)

    def _live(self, places: Places) -> int:
        """Rows of the files that lose some, as far as the files say it."""
        chosen = self.candidates.files.take(self.candidates.places(places.numbers))
        return int(pc.sum(self.candidates.live_counts(chosen)).as_py() or 0)

    def _metrics(self, figures: EditFigures) -> Mapping[str, str]:
        took = {} if self.writes is not None else {"executionTimeMs": _since(self.verb.started)}
        named = {**self.verb.metrics(self._counts, figures), **took}
        return {name: str(value) for name, value in named.items()}


def _since(moment: float) -> int:
    """Milliseconds since a moment of `time.monotonic`."""
    return int((time.monotonic() - moment) * 1000)
