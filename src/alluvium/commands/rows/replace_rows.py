"""Rows in the place of those for which a condition on data columns is true: a deletion and an append in one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.row_changes import FirstPass, RowChanges, is_recorded
from alluvium.commands.rows.session_rules import may_mask
from alluvium.commands.rows.verb import Counts, Verb
from alluvium.commands.write import WriteRequest, arranged_as, write_here
from alluvium.commands.written import ensure_data_changes, numbered_files, written_files
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.rows.candidates import Candidates, choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.terms.actions import total
from alluvium.delta.view.scan import data_paths
from alluvium.delta.write.target import DeltaTarget
from alluvium.delta.write.write import CHANGE_TYPE, plan_change_files
from alluvium.expr.tree import Expression
from alluvium.plan.changes import ChangeKind, Committed, EditFigures, EditRows, NewFiles, Replace, RowChangeMode
from alluvium.plan.ports import RowPlaces
from alluvium.spark.kept import persist_rows, unpersist_rows
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.values.columns import Assignment
from alluvium.spark.values.conversion import Rules, members
from alluvium.spark.values.derive import complete
from alluvium.storage.locating import locating


def replace_rows(df: DataFrame, target: DeltaTarget, request: WriteRequest) -> Committed:
    """Deletes the rows for which `request.replace.where` is true, and writes rows, in one commit.

    Raises:
        InvalidRequest: The rows do not fit the table or the condition, or the condition does not resolve; the table is
            as it was.
        CommitConflict: Another writer touched what was read.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    snapshot, overwrites = target.snapshot, request.replace
    assert snapshot is not None and overwrites is not None and overwrites.sql is not None
    ensure_data_changes(request)
    with locating(snapshot.store, snapshot.version):
        candidates = choose_candidates(snapshot, overwrites.where)
        deletion = _Deletion(df.sparkSession, target, overwrites)
        return replace_found(df, target, request, candidates, overwrites.where, deletion.rows)


def replace_found(
    df: DataFrame,
    target: DeltaTarget,
    request: WriteRequest,
    candidates: Candidates,
    where: Expression | None,
    found: Callable[[RowPlaces], DataFrame],
) -> Committed:
    """Deletes the rows of which somebody says that they go, and writes rows, in one commit.

    Args:
        df: The rows that are written.
        target: The table.
        request: Of the write.
        candidates: Files that may hold rows that go.
        where: What is true of rows that go, for conflicts; None: nothing is known.
        found: From candidates to their rows, with `KIND` and `MATCHED`: which of them go.

    Raises:
        InvalidRequest: The rows do not fit the table; it is as it was.
        CommitConflict: Another writer touched what was read.
    """
    mode = row_change_mode(target.config, candidates, masks=may_mask(df.sparkSession, "DELETE"))
    fresh = _FreshRows(df, target, request, mode)
    # There are no new rows among those that are found, whatever the purpose.
    changes = RowChanges(lambda some, purpose: FirstPass(found(some), found), candidates, where)
    verb = Verb(request.operation, _no_metrics, time.monotonic(), fresh.complete)
    try:
        done = apply_changes(df.sparkSession, target, changes, verb, mode)
    except NOTHING_STANDS:
        # Certainly not committed. An outcome that is unknown may need the files.
        fresh.discard()
        raise
    assert isinstance(done, Committed)
    return done


def _no_metrics(counts: Counts, figures: EditFigures) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class _Deletion:
    spark: SparkSession
    target: DeltaTarget
    overwrites: Replace

    def rows(self, candidates: RowPlaces) -> DataFrame:
        """The candidates' rows, and whether they go; columns that the commit adds are null in them."""
        rows = read_own_lane(self.spark, candidates)
        return judged_rows(rows, candidates, self.target, sf.expr(f"({self.overwrites.sql})"))


def judged_rows(rows: DataFrame, candidates: RowPlaces, target: DeltaTarget, goes: Column) -> DataFrame:
    """Rows of candidates with `KIND` and `MATCHED`: those go for which a condition is true.

    Args:
        rows: As they were read.
        candidates: Whose rows.
        target: The table; columns that the commit adds are null in the rows.
        goes: The condition.
    """
    # Types only grow, so that every value fits, whatever the session makes of casts.
    known, fits = candidates.table_schema, Rules(lambda source, target: True)
    columns = [sql_column(text).alias(f.name) for f, text in members("", known, target.schema, "", fits)]
    places = [sf.col(quote(name)) for name in candidates.columns.names]
    kind = sf.when(goes, int(ChangeKind.DELETE)).otherwise(int(ChangeKind.COPY))
    return rows.select(*columns, *places, kind.alias(KIND), sf.lit(False).alias(MATCHED))


class _FreshRows:
    """The rows that are written, each value of them computed once."""

    def __init__(self, df: DataFrame, target: DeltaTarget, request: WriteRequest, mode: RowChangeMode) -> None:
        self._target, self._request, self._mode = target, request, mode
        self._plan = arranged_as(request, target.plan_write(request.replace, request.options))
        self._records = plan_change_files(target.plan_write(None, ()))
        self._rows = complete(df, target.schema, self._plan, request.assignment)

    def complete(self, changes: EditRows, counts: Counts) -> EditRows:
        """The changes of the deletion, and the files of these rows; nothing of them is left where that fails."""
        try:
            return self._completed(changes, counts)
        except BaseException:
            self.discard()
            raise

    def _completed(self, changes: EditRows, counts: Counts) -> EditRows:
        recorded = changes.change_files
        # Readers of changes look at nothing else in a version that has change files: then these tell of new rows, too.
        records = is_recorded(self._target) and recorded is not None and recorded.num_rows > 0
        df = persist_rows(self._rows.df) if records else self._rows.df
        try:
            written, footers, reached = self._write(df)
            if records and recorded is not None and written.num_rows:
                recorded = pa.concat_tables([recorded, self._record(df)])
        finally:
            if records:
                unpersist_rows(df)
        new, kept = written, changes.new
        written, footers = pa.concat_tables([written, kept.table]), (*footers, *kept.footers)
        return replace(
            changes,
            new=NewFiles(written, footers, reached, rebalanced=self._plan.rebalance),
            read=changes.read.beside(self._request.read),
            txn=self._request.txn,
            change_files=recorded,
            describe=lambda figures: self._metrics(new, changes, counts, figures),
        )

    def discard(self) -> None:
        """Removes the files of these rows."""
        clear(self._target.store, self._plan.directory, self._records.directory)

    def _write(self, df: DataFrame) -> tuple[pa.Table, tuple[FileFooter, ...], dict[str, int]]:
        write_here(df, self._target.store, self._rows.plan)
        numbered = tuple(n for n in self._plan.numbered if n.column in self._rows.numbered)
        return numbered_files(self._target.store, self._plan, numbered)

    def _record(self, df: DataFrame) -> pa.Table:
        told = df.withColumn(CHANGE_TYPE, sf.lit("insert"))
        completed = complete(told, self._records.schema, self._records, Assignment.CAST)
        write_here(completed.df, self._target.store, completed.plan)
        return written_files(self._target.store, self._records)[0]

    def _metrics(self, new: pa.Table, changes: EditRows, counts: Counts, figures: EditFigures) -> Mapping[str, str]:
        """Under the names of the reference's history; rows are told only where new ones were written."""
        masks = self._mode is RowChangeMode.MASK_ROWS
        found = {
            "numFiles": figures.files_added + figures.masks_added,
            "numRemovedFiles": figures.files_removed,
            "numRemovedBytes": 0 if masks else figures.bytes_removed,
            "numAddedChangeFiles": figures.change_files,
            "numOutputBytes": figures.bytes_added,
        }
        rows = total(new["num_rows"])
        if rows:
            kept = self._kept(changes) - counts.deleted if masks else counts.copied
            found |= {"numCopiedRows": kept, "numDeletedRows": counts.deleted, "numOutputRows": rows + kept}
        return {name: str(value) for name, value in found.items()}

    def _kept(self, changes: EditRows) -> int:
        """Rows that were live in the files that are touched."""
        snapshot, touched = self._target.snapshot, changes.touched
        if snapshot is None or not touched.num_rows:
            return 0
        named = touched["path"].combine_chunks()
        files = snapshot.pick_files(lambda some: some.filter(pc.is_in(data_paths(some), value_set=named)))
        return int(pc.sum(live_counts(snapshot, files)).as_py() or 0)
