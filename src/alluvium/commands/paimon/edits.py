"""DELETE and UPDATE of append tables: by files written anew, or by deletion vectors where the table has them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.own_reads import unpinned
from alluvium.commands.paimon.own_reads import ensure_current
from alluvium.commands.paimon.repeated import repeated
from alluvium.commands.paimon.upserts import Change
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.new_values import default_values
from alluvium.commands.rows.row_changes import FirstPass, Purpose, RowChanges, kept_pass, read_places
from alluvium.commands.rows.row_condition import RowCondition, row_condition
from alluvium.commands.rows.verb import Counts, Verb
from alluvium.expr.skipping.whole import decide_whole
from alluvium.expr.tree import Expression
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.candidates import Candidates, PaimonVersion, ensure_append_rows_change
from alluvium.paimon.view.stats import EntryStatistics
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import ensure_writable
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
from alluvium.plan.ports import RowPlaces
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND, MATCHED
from alluvium.spark.scan.numbering import skips_within_files
from alluvium.spark.statements.statement import reads_so_far
from alluvium.spark.values.assign import Assignments, assignments
from alluvium.spark.values.storing import StorePolicy
from alluvium.storage.locating import locating


def edit_rows(
    spark: SparkSession, snapshot: Snapshot, change: Change, retry: RetryPolicy = DEFAULT_RETRY
) -> Committed | Preview:
    """Carries a DELETE or an UPDATE out.

    Raises:
        InvalidRequest: The condition or a value does not resolve (`"invalid-expression"`), or a value does not fit.
        UnsupportedFeature: The table's rows have more to keep than their values (`"unsupported-row-change"`).
        CommitConflict: Another writer won every time, or it may not be repeated.
    """
    return repeated(spark, snapshot, retry, partial(_attempt, spark, change, retry))


def _attempt(spark: SparkSession, change: Change, retry: RetryPolicy, snapshot: Snapshot) -> Committed | Preview:
    started = time.monotonic()
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.schema)
        ensure_append_rows_change(snapshot)
        target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry)
        version = PaimonVersion(snapshot)
        rows = read_any(spark, version.source, change.open_store)
        with row_condition(rows, change.condition, f"the condition of {change.name}", change.alias) as judged:
            edit = _Edit(spark, target, version, change, judged)
            verb = Verb(Operation(change.name), partial(_metrics, change), started, open_store=change.open_store)
            return edit.run(verb, dry_run=change.dry_run)


def _metrics(change: Change, counts: Counts, figures: EditFigures) -> Mapping[str, int]:
    return {
        change.metric: counts.updated if change.values else counts.deleted,
        "numCopiedRows": counts.copied,
        "numAddedFiles": figures.files_added,
        "numRemovedFiles": figures.files_removed,
        "numDeletionVectorsAdded": figures.masks_added,
        "numDeletionVectorsUpdated": figures.masks_updated,
    }


@dataclass(frozen=True, slots=True)
class _Edit:
    spark: SparkSession
    target: PaimonTarget
    version: PaimonVersion
    change: Change
    judged: RowCondition

    def run(self, verb: Verb, *, dry_run: bool) -> Committed | Preview:
        """Finds the rows and changes them; files all of whose rows go are not read."""
        where = self.judged.where(self.version.schema)
        candidates = self.version.files(where)
        if self.change.values:
            # Resolved before anything is run.
            self._assigned(self.judged.first)
        ensure_current(unpinned(reads_so_far()), candidates.snapshot)
        if not self.change.values and (whole := self._whole(candidates, where)) is not None:
            return self._remove(whole, verb, dry_run)
        mode = self.version.mode(candidates)
        if self.change.values and where is None and self.change.condition is None:
            # Where every row changes there is nothing to keep behind masks.
            mode = RowChangeMode.REWRITE_FILES
        skips = skips_within_files(where, tuple(self.version.partition_columns))
        changes = RowChanges(partial(self._first_pass, skips), candidates, where)
        return apply_changes(self.spark, self.target, changes, verb, mode, dry_run=dry_run)

    def _whole(self, candidates: Candidates, where: Expression | None) -> Candidates | None:
        """The candidates all of whose rows go, where that is known of each of them."""
        if self.change.condition is None:
            return candidates
        entries = candidates.entries
        if where is None or not entries.num_rows:
            return None
        snapshot = candidates.snapshot
        statistics = EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))
        found = decide_whole(where, statistics, snapshot.time_zone)
        return candidates if found.is_decided and pc.all(found.every).as_py() else None

    def _remove(self, whole: Candidates, verb: Verb, dry_run: bool) -> Committed | Preview:
        files = whole.files
        counts = Counts(deleted=int(pc.sum(whole.live_counts(files)).as_py() or 0))
        if dry_run:
            told = {k: str(v) for k, v in verb.metrics(counts, EditFigures(files_removed=files.num_rows)).items()}
            removed = tuple(files["path"].to_pylist())
            return Preview(whole.version, Operation(verb.operation.name, metrics=told), {}, removed=removed)
        if not files.num_rows:
            return Committed.nothing(whole.version)
        touched = pa.table([whole.paths, pa.nulls(files.num_rows, pa.binary())], schema=TOUCHED_FILES)

        def told_of(figures: EditFigures) -> Mapping[str, str]:
            return {name: str(value) for name, value in verb.metrics(counts, figures).items()}

        return self.target.commit(
            EditRows(NewFiles.none(), touched, verb.operation, ReadScope.table(), describe=told_of)
        )

    def _first_pass(self, skips: bool, candidates: RowPlaces, purpose: Purpose) -> FirstPass:
        rows = self._rows(candidates, reads_whole=not skips)
        whole = partial(self._rows, reads_whole=False)
        if purpose is Purpose.PLACES or not self.change.values:
            return FirstPass(rows, whole)
        changed = kept_pass(rows, candidates)
        return FirstPass(changed, whole, (changed,))

    def _assigned(self, rows: DataFrame) -> Assignments:
        schema, values = self.target.schema, self.change.values
        defaults = default_values(self.target, rows)
        return assignments(
            values, schema, rows, self.change.alias, "UPDATE", StorePolicy.ANSI, defaults, fills=False, is_update=True
        )

    def _rows(self, candidates: RowPlaces, *, reads_whole: bool) -> DataFrame:
        """The candidates' rows as they are afterwards, and what becomes of each."""
        frame, found = self.judged.over(
            read_places(self.spark, candidates, reads_whole=reads_whole, open_store=self.change.open_store)
        )
        # Null counts as false.
        hit = sf.coalesce(found, sf.lit(False))
        what = ChangeKind.UPDATE if self.change.values else ChangeKind.DELETE
        after: list[Column | str] = [quote(name) for name in self.target.schema.names]
        if self.change.values:
            made = self._assigned(frame)
            for place, f in enumerate(self.target.schema.fields):
                if f.name in made.columns:
                    before = sf.col(quote(f.name))
                    value = made.after(f.name, f.type, before)
                    after[place] = sf.when(hit, value).otherwise(before).alias(f.name)
        kind = sf.when(hit, int(what)).otherwise(int(ChangeKind.COPY)).alias(KIND)
        places = [quote(name) for name in candidates.columns.names]
        return frame.select(*after, *places, kind, sf.lit(False).alias(MATCHED))
