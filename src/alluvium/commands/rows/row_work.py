"""What DELETE, UPDATE and MERGE share, by masks or by files anew: counts, files, the commit, and what it says."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.rows.new_values import with_new_rows_filled
from alluvium.commands.rows.row_changes import BEFORE, RowChanges
from alluvium.commands.rows.row_identity import id_columns
from alluvium.commands.rows.verb import Counts, Verb
from alluvium.commands.write import new_files, write_here
from alluvium.commands.written import written_files
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.write.write import CHANGE_TYPE
from alluvium.plan.changes import (
    TOUCHED_FILES,
    ChangeKind,
    Committed,
    EditFigures,
    EditRows,
    NewFiles,
    Preview,
    ReadScope,
)
from alluvium.plan.ports import RowTarget
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, Located
from alluvium.spark.sessions.session import default_parallelism
from alluvium.spark.values.columns import Assignment
from alluvium.spark.values.derive import complete

#: Rows that one task writes, where a change is small: fewer would make files that are small beyond need.
_ROWS_A_TASK = 50_000

_NEW = "__alluvium_new"

_RECORDED = {
    ChangeKind.DELETE: "delete",
    ChangeKind.UPDATE: "update_postimage",
    ChangeKind.INSERT: "insert",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """What is to be written and committed.

    Attributes:
        rows: Rows as they are afterwards, with `KIND`; those that go are not written.
        touched: Live files some of whose rows go, schema `TOUCHED_FILES`.
        live: How many rows there are to write.
        copied: How many of them are as they were.
        inserted: How many are new; None: what was written says it.
        recorded: Rows that say what became of each, for tables that keep change data; None: readers derive it.
        is_spread: Whether rows come in as many tasks as a join has: they are written by as few as they fill.
    """

    rows: DataFrame
    touched: pa.Table
    live: int = 0
    copied: int = 0
    inserted: int | None = None
    recorded: DataFrame | None = None
    is_spread: bool = True


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Live files that lose rows, or whose rows have matches.

    Attributes:
        paths: As the log names them.
        left: Rows of each that stay where they are; null where the file does not say how many it has.
    """

    paths: pa.Array
    left: pa.Array


@dataclass(frozen=True, slots=True)
class RowWork:
    """A verb whose rows have been found.

    Attributes:
        spark: The session.
        target: The table.
        changes: What happens to its rows.
        verb: Who asks.
        located: Where rows change.
        scan_ms: How long it took to find that.
    """

    spark: SparkSession
    target: RowTarget
    changes: RowChanges
    verb: Verb
    located: Located
    scan_ms: int

    def total(self, name: str) -> int:
        """The sum of one of `Located`'s counts."""
        return self.located.total(name)

    def single(self, rows: DataFrame) -> DataFrame:
        """Each of the table's rows once, where some have several matches that all come to the same."""
        if self.total("matches") == self.total("matched"):
            return rows
        file, row = self.changes.candidates.columns.file, self.changes.candidates.columns.row
        new = sf.when(sf.col(file).isNull(), sf.monotonically_increasing_id())
        return rows.withColumn(_NEW, new).dropDuplicates([file, row, _NEW]).drop(_NEW)

    def edited(self, touched: pa.Table) -> EditedFiles:
        """The files of `touched` (`file`: their numbers; `gone`: how many rows each loses)."""
        candidates = self.changes.candidates
        files = candidates.files.take(candidates.places(touched["file"].combine_chunks()))
        left = pc.subtract(candidates.live_counts(files), touched["gone"].combine_chunks())
        return EditedFiles(files["path"].combine_chunks(), left)

    def commit(self, edit: Edit) -> Committed:
        """Writes and commits; a verb that turns out to change no row leaves nothing behind."""
        begun = time.monotonic()
        plan = self.target.plan_write(None, ()).with_ids(self.changes.candidates.stored_ids)
        apart = self.target.plan_write(None, ()) if self.writes_apart else None
        records = None if edit.recorded is None else self.target.plan_change_files()
        try:
            new = self._write(edit, plan) if edit.live else NewFiles.none()
            fresh = None if apart is None else self.write_fresh(edit.rows, apart, is_spread=edit.is_spread)
            change_files = None if edit.recorded is None or records is None else self._record(edit.recorded, records)
            came = _rows(new) + (0 if fresh is None else _rows(fresh)) - edit.copied - self.total("updated")
            inserted = came if edit.inserted is None else edit.inserted
            counts = self.counts(inserted, edit.copied, milliseconds_since(begun))
            if counts.is_nothing and self.verb.complete is None:
                self.discard(plan, apart, records)
                return self.nothing()
            changes = replace(self.edit_rows(new, edit.touched, counts), change_files=change_files, fresh=fresh)
            if self.verb.complete is not None:
                changes = self.verb.complete(changes, counts)
        except BaseException:
            self.discard(plan, apart, records)
            raise
        try:
            committed = self.target.commit(changes)
        except BaseException as error:
            # Whoever moved staged files knows whether they may be part of the table.
            if plan.is_staged or isinstance(error, NOTHING_STANDS):
                self.discard(plan, apart, records)
            raise
        if plan.is_staged:
            self.discard(plan, apart)
        return committed

    @property
    def writes_apart(self) -> bool:
        """Whether new rows are written by a job of their own."""
        ids = self.changes.candidates.stored_ids
        return ids is not None and ids.is_apart and self.total("inserted") > 0

    def nothing(self) -> Committed:
        """As the reference, a verb that changes no row makes no commit, unless there is something else to say: the
        table gets new columns, or an application has come further.
        """
        if self.verb.complete is not None:
            return self.commit(Edit(self.spark.range(0).toDF(KIND), TOUCHED_FILES.empty_table(), inserted=0))
        counts = Counts(scan_ms=self.scan_ms)
        if self.target.is_changed or self.verb.txn is not None:
            return self.target.commit(self.edit_rows(NewFiles.none(), TOUCHED_FILES.empty_table(), counts))
        metrics = self._metrics(counts, EditFigures())
        return Committed(self.changes.candidates.version, WRITTEN_FILES.empty_table(), metrics, 0)

    def preview(self, figures: EditFigures, *, copied: int = 0) -> Preview:
        """What the commit would say; which files go, and how, is for the caller to add."""
        candidates, counts = self.changes.candidates, self.counts(self.total("inserted"), copied, 0)
        operation = replace(self.verb.operation, metrics=self._metrics(counts, figures))
        read = tuple(candidates.files["path"].to_pylist())
        return Preview(candidates.version, operation, {}, read=read)

    def edit_rows(self, new: NewFiles, touched: pa.Table, counts: Counts) -> EditRows:
        """What is to be committed."""
        return EditRows(
            new,
            touched,
            self.verb.operation,
            ReadScope.rows(self.changes.where),
            describe=lambda figures: self._metrics(counts, figures),
            txn=self.verb.txn,
        )

    def counts(self, inserted: int, copied: int, rewrite_ms: int) -> Counts:
        """What became of rows."""
        updated = self.total("updated")
        return Counts(
            copied=copied,
            updated=updated,
            deleted=self.total("gone") - updated,
            inserted=inserted,
            unmatched_updated=self.total("unmatched_updated"),
            unmatched_deleted=self.total("unmatched_deleted"),
            scan_ms=self.scan_ms,
            rewrite_ms=rewrite_ms,
        )

    def _write(self, edit: Edit, plan: WritePlan) -> NewFiles:
        """The rows that are there afterwards, without those that `_write_fresh` writes."""
        given = plan.keyed is not None and plan.keyed.kind_column
        goes, live = [ChangeKind.DELETE], edit.live
        if self.writes_apart:
            goes, live = [*goes, ChangeKind.INSERT], live - self.total("inserted")
        if not live:
            return NewFiles.none()
        rows = edit.rows if given else edit.rows.where(f"{KIND} not in ({', '.join(str(int(k)) for k in goes)})")
        if plan.keyed is None:
            # Nobody has asked for other values in the rows that stay.
            rows, plan = with_new_rows_filled(rows, self.target.schema, plan.filled), plan.keeping_nulls()
        columns = [*map(quote, self.target.schema.names), *id_columns(self.changes.candidates)]
        kinds = [f"{row_kind()} as {quote(given)}"] if given else []
        return self._written(select_texts(rows, [*columns, *kinds]), plan, _tasks(live) if edit.is_spread else None)

    def write_fresh(self, rows: DataFrame, plan: WritePlan, *, is_spread: bool = True) -> NewFiles:
        """The rows that were not there before, out of rows that know what becomes of them.

        Args:
            rows: They and others.
            plan: Of the table's columns.
            is_spread: As of `Edit`.
        """
        fresh = rows.where(f"{KIND} = {int(ChangeKind.INSERT)}")
        tasks = _tasks(self.total("inserted")) if is_spread else None
        return self._written(select_texts(fresh, list(map(quote, self.target.schema.names))), plan, tasks)

    def _written(self, rows: DataFrame, plan: WritePlan, tasks: int | None) -> NewFiles:
        completed = complete(rows, plan.schema, plan)
        if tasks is not None:
            completed = replace(completed, df=completed.df.coalesce(tasks))
        new = new_files(completed, self.target.store, plan, self.changes.numbered, self.verb.open_store)
        # These were numbered when they were found.
        return replace(new, numbers=False)

    def _record(self, rows: DataFrame, plan: WritePlan) -> pa.Table:
        """Change data: each changed row, an updated one before and after."""
        names = [sf.col(quote(name)) for name in self.target.schema.names]
        kind = sf.col(KIND)
        change_type = sf.lit(None).cast("string")
        for known, text in _RECORDED.items():
            change_type = sf.when(kind == sf.lit(int(known)), sf.lit(text)).otherwise(change_type)
        images = rows.where(kind != sf.lit(int(ChangeKind.COPY))).select(*names, change_type.alias(CHANGE_TYPE))
        if BEFORE in rows.columns:
            before = [sf.col(BEFORE)[name].alias(name) for name in self.target.schema.names]
            updated = rows.where(kind == sf.lit(int(ChangeKind.UPDATE)))
            images = images.union(updated.select(*before, sf.lit("update_preimage").alias(CHANGE_TYPE)))
        completed = complete(images, plan.schema, plan, Assignment.CAST)
        expected = self.total("gone") + self.total("updated") + self.total("inserted")
        tasks, cores = _tasks(expected), default_parallelism(self.spark)
        few = completed.df.coalesce(tasks if cores is None else min(tasks, cores))
        write_here(few, self.target.store, completed.plan)
        return written_files(self.target.store, plan)[0]

    def discard(self, *plans: WritePlan | None) -> None:
        """Deletes what jobs have left."""
        for plan in plans:
            if plan is not None:
                clear(self.target.store, plan.directory)

    def _metrics(self, counts: Counts, figures: EditFigures) -> dict[str, str]:
        named = {
            **self.verb.metrics(counts, figures),
            "executionTimeMs": milliseconds_since(self.verb.started),
        }
        return {name: str(value) for name, value in named.items()}


def row_kind() -> str:
    """What becomes of a row, as rows of keys say it of themselves (`plan.write.KeyedRows.kind_column`): SQL."""
    return f"case {KIND} when {int(ChangeKind.UPDATE)} then 2 when {int(ChangeKind.DELETE)} then 3 else 0 end"


def _rows(new: NewFiles) -> int:
    return int(pc.sum(new.table["num_rows"]).as_py() or 0)


def _tasks(rows: int) -> int:
    return max(1, -(-rows // _ROWS_A_TASK))


def milliseconds_since(moment: float) -> int:
    """Of a moment by `time.monotonic`."""
    return int((time.monotonic() - moment) * 1000)
