"""One way to apply changed rows to a Delta table, for DELETE, UPDATE and MERGE: masks over rows, or files anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.parquet_footer import FileFooter
from alluvium.commands.row_changes import BEFORE, Counts, Purpose, RowChanges, Verb, is_recorded
from alluvium.commands.row_identity import id_columns, with_ids
from alluvium.commands.write import numbered_files, write_here, written_files
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.candidates import Candidates
from alluvium.delta.row_edits import live_counts
from alluvium.delta.target import DeltaTarget
from alluvium.delta.write import CHANGE_TYPE, plan_change_files
from alluvium.plan.changes import (
    TOUCHED_FILES,
    ChangeKind,
    Committed,
    EditFigures,
    EditRows,
    NewFiles,
    Operation,
    Preview,
    ReadScope,
    RowChangeMode,
)
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.spark.columns import Assignment
from alluvium.spark.derive import complete
from alluvium.spark.positions import KIND, Located, locate
from alluvium.spark.scan.names import quote
from alluvium.spark.session import default_parallelism
from alluvium.spark.write import data_error

#: Rows that one task writes, where a change is small: fewer would make files that are small beyond need.
_ROWS_A_TASK = 50_000

_NEW = "__alluvium_new"
#: Files, their footers, the furthest numbers that were made.
_Written: TypeAlias = tuple[pa.Table, tuple[FileFooter, ...], dict[str, int]]

_RECORDED = {
    ChangeKind.DELETE: "delete",
    ChangeKind.UPDATE: "update_postimage",
    ChangeKind.INSERT: "insert",
}


def apply_changes(
    spark: SparkSession,
    target: DeltaTarget,
    changes: RowChanges,
    verb: Verb,
    mode: RowChangeMode,
    *,
    dry_run: bool = False,
) -> Committed | Preview:
    """Carries the changes out and commits them.

    Raises:
        InvalidRequest: New rows do not fit the table; it is as it was.
        CommitConflict: Another writer touched what was read.
    """
    masks = mode is RowChangeMode.MASK_ROWS
    begun = time.monotonic()
    with ExitStack() as kept:
        with _data_errors(target.url):
            purpose = Purpose.ROWS if masks and not dry_run else Purpose.PLACES
            first = changes.first(changes.candidates, purpose)
            kept.callback(first.release)
            has_matches = changes.join is not None
            located = locate(first.rows, changes.candidates.columns, with_bits=masks, with_matches=has_matches)
        if changes.join is not None:
            changes.join.ensure_single(located)
        touched = _touched(changes, located, masks)
        work = _Work(spark, target, changes, verb, located, touched, masks, _since(begun))
        if dry_run:
            return work.preview()
        return work.mask(first.rows) if masks else work.rewrite(first.whole)


@contextmanager
def _data_errors(url: str) -> Iterator[None]:
    """The first job may be the one that computes new values."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise data_error(error, url) from error


def _touched(changes: RowChanges, located: Located, masks: bool) -> pa.Table:
    """The files that are edited: numbers, and how many rows each loses."""
    if masks or changes.join is None or not changes.join.inserts:
        return located.changed
    met = located.met
    lost = located.changed
    gone = pc.fill_null(lost["gone"].combine_chunks().take(pc.index_in(met, value_set=_chunk(lost["file"]))), 0)
    return pa.table({"file": met, "gone": gone})


def _chunk(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks()


def _since(moment: float) -> int:
    return int((time.monotonic() - moment) * 1000)


@dataclass(frozen=True, slots=True)
class _Work:
    spark: SparkSession
    target: DeltaTarget
    changes: RowChanges
    verb: Verb
    located: Located
    touched: pa.Table
    masks: bool
    scan_ms: int

    def counts(self, inserted: int, copied: int, rewrite_ms: int) -> Counts:
        total = self.located.total
        updated, unmatched = total("updated"), total("unmatched_updated")
        return Counts(
            copied=copied,
            updated=updated,
            deleted=total("gone") - updated,
            inserted=inserted,
            unmatched_updated=unmatched,
            unmatched_deleted=total("unmatched_deleted"),
            scan_ms=self.scan_ms,
            rewrite_ms=rewrite_ms,
        )

    def preview(self) -> Preview:
        candidates, gone = self.changes.candidates, _chunk(self.touched["gone"])
        places = candidates.places(_chunk(self.touched["file"]))
        files = candidates.files.take(places)
        live = live_counts(candidates.snapshot, files) if files.num_rows else pa.array([], pa.int64())
        left = pc.subtract(live, gone)
        # Behind masks an emptied file goes, wherever its rows went; otherwise a file that gives no row to others.
        is_emptied = pc.fill_null(pc.equal(left, 0), False)
        is_whole = is_emptied if self.masks else pc.and_(is_emptied, pa.scalar(not self.located.total("updated")))
        some, whole = (tuple(files["path"].filter(m).to_pylist()) for m in (pc.invert(is_whole), is_whole))
        masked, rewritten = (some, ()) if self.masks else ((), some)
        copied = 0 if self.masks or left.null_count else int(pc.sum(left).as_py() or 0)
        figures = EditFigures(masks_added=len(masked), files_removed=len(rewritten) + len(whole))
        counts = self.counts(self.located.total("inserted"), copied, 0)
        return Preview(
            candidates.snapshot.version,
            self._described(counts, figures),
            {},
            added=masked,
            removed=(*rewritten, *whole),
            read=tuple(candidates.files["path"].to_pylist()),
            masked=masked,
            rewritten=rewritten,
        )

    def mask(self, rows: DataFrame) -> Committed:
        """Old rows are masked, new ones written."""
        inserted = self.located.total("inserted")
        if not self.touched.num_rows and not inserted:
            return self._nothing()
        candidates, numbers = self.changes.candidates, _chunk(self.touched["file"])
        bitmaps = self.located.bitmaps()
        paths = _chunk(candidates.paths).take(candidates.places(numbers)) if len(numbers) else pa.array([], pa.string())
        masks = pa.array([bitmaps[number][0] for number in numbers.to_pylist()], pa.binary())
        touched = pa.table([paths, masks], schema=TOUCHED_FILES)
        updated = self.located.total("updated")
        fresh = updated + inserted
        changed = self._single(rows.where(f"{KIND} <> {int(ChangeKind.COPY)}"))
        # Where rows only go, or only come, readers derive the changes from masks and files.
        return self._commit(changed, touched, fresh, bool(updated) and is_recorded(self.target), inserted, 0)

    def rewrite(self, whole_files: Callable[[Candidates], DataFrame]) -> Committed:
        """Files that lose rows are written anew, without them."""
        candidates, numbers = self.changes.candidates, _chunk(self.touched["file"])
        inserted = self.located.total("inserted")
        if not self.located.total("gone") and not inserted:
            return self._nothing()
        chosen = candidates.only(numbers)
        touched = pa.table([chosen.paths, pa.nulls(len(numbers), pa.binary())], schema=TOUCHED_FILES)
        live = live_counts(candidates.snapshot, chosen.files) if len(numbers) else pa.array([], pa.int64())
        gone = self.located.total("gone")
        whole = None if live.null_count else int(pc.sum(live).as_py() or 0)
        copied = whole - gone if whole is not None else None
        updated = self.located.total("updated")
        is_whole = copied == 0 and not updated and not inserted
        rows = self._single(whole_files(chosen))
        # A file that had matches is written anew, be it that none of its rows goes: without change files readers would
        # take all that it holds for deleted and inserted.
        records = is_recorded(self.target) and not is_whole and bool(len(numbers))
        # Rows of whole files, more than fit into memory: as compressed columns.
        rows = rows.persist() if records else rows
        try:
            if copied is None:
                copied = rows.where(f"{KIND} = {int(ChangeKind.COPY)}").count()
            fresh = copied + updated + inserted
            return self._commit(rows, touched, fresh, records, None, copied)
        finally:
            rows.unpersist()

    def _single(self, rows: DataFrame) -> DataFrame:
        """Each of the table's rows once, where some have several matches that all come to the same."""
        if self.located.total("matches") == self.located.total("matched"):
            return rows
        file, row = self.changes.candidates.columns.file, self.changes.candidates.columns.row
        new = sf.when(sf.col(file).isNull(), sf.monotonically_increasing_id())
        return rows.withColumn(_NEW, new).dropDuplicates([file, row, _NEW]).drop(_NEW)

    def _commit(
        self, rows: DataFrame, touched: pa.Table, fresh: int, records: bool, inserted: int | None, copied: int
    ) -> Committed:
        begun = time.monotonic()
        target = self.target
        plan = with_ids(target.plan_write(None, ()), self.changes.candidates)
        records_plan = plan_change_files(target.plan_write(None, ())) if records else None
        written, footers, reached, recorded = _no_files()
        try:
            if fresh:
                written, footers, reached = self._write(rows, plan, fresh)
            if records_plan is not None:
                recorded = self._record(rows, records_plan)
            came = int(pc.sum(written["num_rows"]).as_py() or 0) - copied - self.located.total("updated")
            counts = self.counts(came if inserted is None else inserted, copied, _since(begun))
            if counts.is_nothing and self.verb.complete is None:
                self._discard(plan, records_plan)
                return self._nothing()
            changes = EditRows(
                NewFiles(written, footers, reached),
                touched,
                self.verb.operation,
                ReadScope.rows(self.changes.where),
                change_files=recorded,
                describe=lambda figures: self._metrics(counts, figures),
                txn=self.verb.txn,
            )
            if self.verb.complete is not None:
                changes = self.verb.complete(changes, counts)
        except BaseException:
            self._discard(plan, records_plan)
            raise
        try:
            return target.commit(changes)
        except NOTHING_STANDS:
            self._discard(plan, records_plan)
            raise

    def _write(self, rows: DataFrame, plan: WritePlan, fresh: int) -> _Written:
        live = rows.where(f"{KIND} <> {int(ChangeKind.DELETE)}")
        columns = [quote(name) for name in self.target.schema.names]
        completed = complete(live.select(*columns, *id_columns(self.changes.candidates)), plan.schema, plan)
        # The rows of a join come from as many tasks as it has, each of which would write a file a partition. But where
        # tasks still have numbers to make, they number by how many there are (`derive.with_numbers`).
        is_spread = self.masks or (self.changes.join is not None and not self.changes.numbered)
        df = completed.df.coalesce(max(1, -(-fresh // _ROWS_A_TASK))) if is_spread else completed.df
        write_here(df, self.target.store, completed.plan)
        return numbered_files(self.target.store, plan, self.changes.numbered)

    def _record(self, rows: DataFrame, plan: WritePlan) -> pa.Table:
        """Change data: each changed row, an updated one before and after."""
        names = [sf.col(quote(name)) for name in self.target.schema.names]
        kind = sf.col(KIND)
        told = sf.lit(None).cast("string")
        for known, text in _RECORDED.items():
            told = sf.when(kind == sf.lit(int(known)), sf.lit(text)).otherwise(told)
        after = rows.where(kind != sf.lit(int(ChangeKind.COPY))).select(*names, told.alias(CHANGE_TYPE))
        if BEFORE in rows.columns:
            before = [sf.col(BEFORE)[name].alias(name) for name in self.target.schema.names]
            updated = rows.where(kind == sf.lit(int(ChangeKind.UPDATE)))
            after = after.union(updated.select(*before, sf.lit("update_preimage").alias(CHANGE_TYPE)))
        completed = complete(after, plan.schema, plan, Assignment.CAST)
        total = self.located.total
        told_rows = total("gone") + total("updated") + total("inserted")
        tasks = max(1, -(-told_rows // _ROWS_A_TASK))
        cores = default_parallelism(self.spark)
        few = completed.df.coalesce(tasks if cores is None else min(tasks, cores))
        write_here(few, self.target.store, completed.plan)
        return written_files(self.target.store, plan)[0]

    def _discard(self, *plans: WritePlan | None) -> None:
        for plan in plans:
            if plan is not None:
                clear(self.target.store, plan.directory)

    def _nothing(self) -> Committed:
        """As the reference, a verb that changes no row makes no commit, unless there is something else to say: the
        table gets new columns, or an application has come further.
        """
        if self.verb.complete is not None:
            none = TOUCHED_FILES.empty_table()
            return self._commit(self.spark.range(0).toDF(KIND), none, 0, False, 0, 0)
        counts = Counts(scan_ms=self.scan_ms)
        if self.target.is_changed or self.verb.txn is not None:
            nothing = EditRows(
                NewFiles.none(),
                TOUCHED_FILES.empty_table(),
                self.verb.operation,
                ReadScope.rows(self.changes.where),
                describe=lambda figures: self._metrics(counts, figures),
                txn=self.verb.txn,
            )
            return self.target.commit(nothing)
        metrics = self._metrics(counts, EditFigures())
        return Committed(self.changes.candidates.snapshot.version, WRITTEN_FILES.empty_table(), metrics, 0)

    def _metrics(self, counts: Counts, figures: EditFigures) -> dict[str, str]:
        found = {**self.verb.metrics(counts, figures), "executionTimeMs": _since(self.verb.started)}
        return {name: str(value) for name, value in found.items()}

    def _described(self, counts: Counts, figures: EditFigures) -> Operation:
        return replace(self.verb.operation, metrics=self._metrics(counts, figures))


def _no_files() -> tuple[pa.Table, tuple[FileFooter, ...], dict[str, int], pa.Table | None]:
    return WRITTEN_FILES.empty_table(), (), {}, None
