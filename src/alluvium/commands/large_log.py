"""Logs beyond the driver's memory: Spark reads the checkpoint, the driver gets the files that a query keeps.

Reconciliation is that of any log: "scan all file actions and keep only the newest reference for each logical file".
A checkpoint is reconciled in itself, and commits after it are few and with the driver; so Spark's job leaves out what
the predicate does not need, and what is left of the checkpoint is reconciled with the commits here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from alluvium.delta.features.rows.deletion_vectors import FEATURE as DELETION_VECTORS
from alluvium.delta.features.rows.deletion_vectors import room_for_vectors
from alluvium.delta.log.read_checkpoint import checkpoint_rows
from alluvium.delta.log.replay import overlay, without_repeats
from alluvium.delta.log.state import MAX_CHECKPOINT_BYTES
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.scan import plan_files, plan_scan, select_among
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.spark.log_scan import choose_records
from alluvium.storage.locating import locating
from alluvium.storage.paths import resolve

#: Checkpoints whose files are larger together are read by Spark; bytes. 0: all.
LIMIT_SETTING = "spark.alluvium.log.maxCheckpointBytes"
#: Files of one query that may come to the driver then.
FILES_SETTING = "spark.alluvium.log.maxFiles"
_DEFAULT_FILES = 2_000_000
#: Spark joins nothing by broadcast that is of this size.
_UNKNOWN_SIZE = 1 << 62


def checkpoint_limit(spark: SparkSession) -> int:
    """The largest checkpoint that the driver reads itself, in bytes."""
    return int(str(spark.conf.get(LIMIT_SETTING, str(MAX_CHECKPOINT_BYTES))))


@dataclass(frozen=True, slots=True)
class LargeSource:
    """Implements `plan.ports.ScanSource` for a snapshot some of whose files only Spark has seen.

    Attributes:
        spark: Whose workers read the checkpoint.
        snapshot: With `state.deferred`.
        is_pinned: Whether somebody has asked for just this version.
    """

    spark: SparkSession
    snapshot: Snapshot
    is_pinned: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """As of any source of the same version: the rows are the same."""
        return DeltaSource(self.snapshot, (), self.is_pinned).identity

    @property
    def size_bytes(self) -> int:
        """More than anything that Spark would hold in memory: it is not known."""
        return _UNKNOWN_SIZE

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        """Without a predicate no file is named: all of them would not fit."""
        with locating(self.snapshot.store, self.snapshot.version):
            if where is None:
                return self._outline()
            state = self.snapshot.state
            files = overlay(without_repeats(self._kept(where)), state.files, state.tombstones)
            plan = plan_scan(replace(self.snapshot, state=replace(state, files=files, deferred=())), where)
            known = {part.key for part in self._outline().parts}
            if unknown := {part.key for part in plan.parts} - known:
                raise UnsupportedFeature(f"the log has files of a kind that its features rule out: {sorted(unknown)}")
            return plan

    def _outline(self) -> ScanPlan:
        plan = plan_files(self.snapshot, FILES.empty_table())
        parts = [replace(part, is_complete=False) for part in plan.parts]
        if DELETION_VECTORS.name in (self.snapshot.config.protocol.reader_features or ()):
            s = self.snapshot
            parts += [room_for_vectors(part, s.store, s.open_store, s.version) for part in parts]
        return replace(plan, parts=tuple(parts))

    def _kept(self, where: Expression) -> list[pa.RecordBatch]:
        """The checkpoint's files that may hold a row for which `where` is true."""
        s = self.snapshot
        addresses = [resolve(s.store.url, info.path) for info in s.state.deferred]
        choose = _Choose(s.config, s.time_zone, where)
        limit = int(str(self.spark.conf.get(FILES_SETTING, str(_DEFAULT_FILES))))
        return choose_records(self.spark, addresses, "add", choose, limit)


@dataclass(frozen=True, slots=True)
class _Choose:
    """On a worker: the pruning of any scan, over some thousand files."""

    config: TableConfig
    time_zone: str
    where: Expression

    def __call__(self, rows: pa.StructArray) -> pa.RecordBatch:
        files = pa.Table.from_batches([checkpoint_rows(rows)])
        # A file whose rows are all deleted must come, or a commit that restored them would find nothing to replace.
        kept = select_among(files, self.where, self.config, self.time_zone, self._statistics).files
        whole = kept.select(FILES.names).combine_chunks()
        batches = whole.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=FILES)

    def _statistics(self, files: pa.Table) -> AddStatistics:
        c = self.config
        return AddStatistics(files, c.schema, c.partition_columns, c.physical_paths, self.time_zone)
