"""Compaction of tables with a primary key: rows merged by key into files of other levels, and what else comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.write import write_here
from alluvium.commands.written import numbered_files
from alluvium.commit.clear import clear
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms import options as o
from alluvium.paimon.upkeep.keyed.compaction import PLACE, Compaction
from alluvium.paimon.upkeep.keyed.expiry import RowExpiry, row_expiry
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.paimon.upkeep.keyed.vectors import changed_vectors
from alluvium.paimon.view.file_rows import FILE, ROW, FileRows
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.told import apart
from alluvium.plan.changes import ChangeKind, Committed, NewFiles, RowColumns
from alluvium.plan.retry import RetryPolicy
from alluvium.plan.scan import KeyMerge
from alluvium.plan.write import WritePlan
from alluvium.portable.merging.key_merge import merge_rows
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.positions import KIND, MATCHED, locate
from alluvium.spark.regrouped import counted_rows
from alluvium.spark.run_ends import with_ends
from alluvium.storage.store import OpenStore


def keyed_compacted(
    spark: SparkSession, snapshot: Snapshot, asked: Asked, open_store: OpenStore, retry: RetryPolicy
) -> Committed:
    """Compacts once.

    Raises:
        UnsupportedFeature: As of `plan_compaction`, and what rows of a merge are refused for where they are read.
        CommitConflict: Somebody else changed or compacted the files.
    """
    compaction = plan_compaction(snapshot, asked)
    if not compaction.before.num_rows:
        return Committed.nothing(snapshot.version or 0)
    target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry)
    plan = _merging_anywhere(compaction.plan_write())
    assert plan.keyed is not None, "rows of keys are compacted"
    files = _Files(spark, compaction, plan.keyed.merge, row_expiry(compaction.schema), open_store)
    edits = changed_vectors(compaction, files.replaced_rows())
    new = _rewritten(files, plan)
    try:
        added = compaction.added(new.rows.table, new.rows.footers)
        told = None
        if o.CHANGELOG_PRODUCER.get(snapshot.schema.options) in ("lookup", "full-compaction"):
            # How the rows changed is said in files of their own.
            told = (new.changes, compaction.told(new.changes.table, new.changes.footers))
        return target.compact(new.rows, added, compaction.before, edits, compaction.moved, told)
    finally:
        if new.directory is not None:
            # The commit has moved what it took.
            clear(snapshot.store, new.directory)


@dataclass(frozen=True, slots=True)
class _Written:
    """What a job has left.

    Attributes:
        rows: Files of rows.
        changes: Files that tell how rows changed.
        directory: Where; None: no job was run.
    """

    rows: NewFiles
    changes: NewFiles
    directory: str | None = None


def _rewritten(files: _Files, plan: WritePlan) -> _Written:
    """Runs the job that merges the rows, if any are to be merged."""
    compaction, store = files.compaction, files.compaction.snapshot.store
    if not compaction.reads_rows:
        return _Written(NewFiles.none(), NewFiles.none())
    assert plan.keyed is not None, "rows of keys are compacted"
    try:
        counted = write_here(files.rows(), store, plan, files.open_store)
        written, footers, _ = numbered_files(store, plan, (), counted)
        footers = with_ends(files.spark, plan, plan.keyed, written["path"].to_pylist(), footers)
    except BaseException:
        clear(store, plan.directory)
        raise
    return _Written(*apart(NewFiles(written, footers)), plan.directory)


def _merging_anywhere(plan: WritePlan) -> WritePlan:
    """The plan, by which Python workers merge what Spark has no operator for."""
    keyed = plan.keyed
    assert keyed is not None and keyed.regrouped is not None, "rows of keys are compacted"
    return replace(plan, keyed=replace(keyed, regrouped=replace(keyed.regrouped, merges=_merged)))


def _merged(rows: pa.Table, merge: KeyMerge, names: Sequence[str]) -> pa.Table:
    return merge_rows(rows, merge, names, {})


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a compaction.

    Attributes:
        spark: The session.
        compaction: What becomes of them.
        merge: How their rows merge.
        expiry: Which rows are left out, by one look at the clock: a key that asks for its old row is written anew.
        open_store: The table's objects for Python workers.
    """

    spark: SparkSession
    compaction: Compaction
    merge: KeyMerge
    expiry: RowExpiry | None
    open_store: OpenStore

    def rows(self) -> DataFrame:
        """The rows of all groups, and those of levels above that have their keys."""
        rows = self._unexpired(self.compaction.rows)
        above = self.compaction.looked_up
        if above is None:
            return rows
        old = self._unexpired(above)
        if self.compaction.new_keys.size_bytes <= _small(self.spark):
            # What is not of a new key is left where it is, and not moved between tasks.
            old = old.join(self._new_keys(), self._key, "left_semi")
        return rows.unionByName(old.select(*map(quote, rows.columns)))

    def replaced_rows(self) -> Mapping[int, tuple[bytes, int]]:
        """By the number of a file above, its rows whose keys have newer ones."""
        asked = self.compaction.asked
        if asked is None:
            return {}
        rows = read_any(self.spark, asked, self.open_store, is_even=True, reads_whole=True)
        rows = rows.select(*(sf.col(quote(name)) for name in (*self._key, FILE, ROW)))
        found = rows.join(self._new_keys(), self._key, "left_semi")
        placed = found.withColumn(KIND, sf.lit(int(ChangeKind.DELETE))).withColumn(MATCHED, sf.lit(False))
        return locate(placed, RowColumns(file=FILE, row=ROW), with_matches=False).bitmaps()

    @property
    def _key(self) -> list[str]:
        return [PLACE, *self.compaction.schema.trimmed_primary_keys]

    def _new_keys(self) -> DataFrame:
        """The keys that are written anew: others leave the rows alone that they had before."""
        rows = counted_rows(self._unexpired(self.compaction.new_keys, reads_whole=False), self.merge)
        return rows.select(*(sf.col(quote(name)) for name in self._key))

    def _unexpired(self, files: FileRows, *, reads_whole: bool = True) -> DataFrame:
        """All rows of files, but for those whose time has passed."""
        rows = read_any(self.spark, files, self.open_store, is_even=True, reads_whole=reads_whole)
        return rows if self.expiry is None else rows.where(sql_column(self.expiry.stays))


def _small(spark: SparkSession) -> int:
    """Bytes that Spark itself sends to every task."""
    return int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
