"""The files of a verb: rows as they are afterwards, and where the table keeps it, what became of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from alluvium.commands.rows_here.judged import Judged
from alluvium.commands.written import Request, written_files
from alluvium.commit.clear import clear
from alluvium.delta.rows.candidates import Candidates
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.delta.write.target import DeltaTarget
from alluvium.delta.write.write import CHANGE_TYPE
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import ChangeKind, NewFiles
from alluvium.plan.write import WritePlan
from alluvium.portable.writing.complete import Completion, completion
from alluvium.portable.writing.files import FilesInTheMaking, ensure_portable
from alluvium.schema import types as t
from alluvium.schema.walk import holds


@dataclass
class EditedFiles:
    """What a verb writes.

    Attributes:
        target: The table.
        candidates: Files that may hold rows that change.
        time_zone: In which the table's expressions are evaluated.
        writes: Of an overwrite: what was asked for.
        copied: Rows so far that stay what they are.
        inserted: Rows that come.
    """

    target: DeltaTarget
    candidates: Candidates
    time_zone: str
    writes: Request | None = None
    copied: int = field(default=0, init=False)
    inserted: int = field(default=0, init=False)
    _reached: dict[str, int] = field(default_factory=dict, init=False)
    _completions: dict[tuple[bool | str, ...], Completion] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        store, texts = self.target.store, format_partition_values
        asked = (None, ()) if self.writes is None else (self.writes.replace, self.writes.options)
        self._own = self.target.plan_write(*asked)
        # Rows that are there bring their numbers with them.
        self._there = replace(self._own, numbered=())
        ensure_portable(self._own)
        self._new = FilesInTheMaking(self._own.with_ids(self.candidates.stored_ids), store, texts)
        records = self.target.plan_change_files() if self.target.is_recorded else None
        self._records = None if records is None else FilesInTheMaking(records, store, texts)

    def copy(self, rows: pa.Table) -> None:
        """Rows that stay what they are."""
        self._add(rows, lambda name: rows[name])
        self.copied += rows.num_rows

    def update(self, rows: pa.Table, judged: Judged) -> None:
        """Those of rows that are something else now, and those that go."""
        self._record(rows.filter(judged.of(ChangeKind.DELETE)), "delete")
        if judged.after is None or not judged.after.num_rows:
            return
        before, after = rows.filter(judged.of(ChangeKind.UPDATE)), self._completed(judged.after)
        names = self.candidates.columns
        # "the last commit version in which the row was either inserted or updated": null, so that the file's counts.
        self._add(after, lambda name: before[name] if name == names.row_id else None)
        self._record(before, "update_preimage")
        self._record(after, "update_postimage")

    def insert(self, rows: pa.Table) -> None:
        """Rows that come, of some of the table's columns."""
        made = self._completion(rows, self._own, may_lack_partitions=self.writes is None)
        # Numbers go on where those of other rows ended.
        made.rows = self.inserted
        for batch in rows.combine_chunks().to_batches():
            complete = made.complete(batch)
            self._add(complete, lambda name: None)
            self._record(complete, "insert")
        self._reached, self.inserted = {**self._reached, **made.reached}, made.rows

    def finish(self, *, keeps_records: bool) -> tuple[NewFiles, pa.Table | None]:
        """What was written, and what says what became of rows.

        Args:
            keeps_records: False: readers derive it from the other files.
        """
        table, footers = written_files(self.target.store, self._new.plan, self._new.finish())
        new = NewFiles(table, footers, self._reached, bool(self._reached))
        if self._records is None:
            return new, None
        records = self._records.finish()
        if keeps_records:
            return new, written_files(self.target.store, self._records.plan, records)[0]
        clear(self.target.store, self._records.plan.directory)
        return new, None

    def discard(self) -> None:
        """Deletes what was written."""
        plans: list[WritePlan] = [self._new.plan, *([] if self._records is None else [self._records.plan])]
        for plan in plans:
            clear(self.target.store, plan.directory)

    def _completed(self, rows: pa.Table) -> pa.Table:
        made = self._completion(rows, self._there, may_lack_partitions=True)
        return pa.concat_tables([made.complete(batch) for batch in rows.combine_chunks().to_batches()])

    def _completion(self, rows: pa.Table, plan: WritePlan, *, may_lack_partitions: bool) -> Completion:
        key = (plan is self._own, *rows.column_names)
        if key not in self._completions:
            schema, zone = self.target.schema, self.time_zone
            self._completions[key] = completion(
                rows.schema, schema, plan, zone, may_lack_partitions=may_lack_partitions
            )
        return self._completions[key]

    def _add(self, rows: pa.Table, identity: Callable[[str], pa.ChunkedArray | None]) -> None:
        """Rows with their identities: of each of its columns the values, None for none."""
        if not rows.num_rows:
            return
        if holds(self.target.schema, t.VARIANT):
            raise UnsupportedFeature(
                "rows with variants are not written without Spark",
                code="needs-spark",
                hint="use DeltaTable.forPath(spark, path)",
            )
        found, ids, names = rows.select(self.target.schema.names), self.candidates.stored_ids, self.candidates.columns
        if ids is not None:
            for f, name in zip(ids.fields, (names.row_id, names.row_version), strict=True):
                known = None if name is None else identity(name)
                found = found.append_column(f.name, pa.nulls(rows.num_rows, pa.int64()) if known is None else known)
        self._new.add(found)

    def _record(self, rows: pa.Table, change: str) -> None:
        if self._records is not None and rows.num_rows:
            kind = pa.repeat(pa.scalar(change), rows.num_rows)
            self._records.add(rows.select(self.target.schema.names).append_column(CHANGE_TYPE, kind))
