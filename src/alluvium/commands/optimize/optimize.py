"""OPTIMIZE and REORG: plan bins, write them, commit; what others took away meanwhile is planned and written anew."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from alluvium.commands.optimize.bins import WrittenBins, write_bins
from alluvium.commands.optimize.chosen import Chosen, choose_files
from alluvium.commands.optimize.outcome import Optimized, Part
from alluvium.commands.optimize.z_order import OrderColumn, order_columns, z_order
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.optimize import (
    DEFAULT_SIZES,
    Bins,
    FileSizes,
    compaction_bins,
    ensure_all_rows,
    of_partitions,
    order_bins,
    purge_bins,
    rewrite_metrics,
    still_live,
    with_vectors,
)
from alluvium.delta.upkeep.purgeable import purgeable
from alluvium.delta.view.partitions import partition_keys
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.plan.changes import (
    TOUCHED_FILES,
    EditFigures,
    NewFiles,
    Operation,
    Preview,
    ReadScope,
    RewriteFiles,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue
from alluvium.spark.sessions.session import ensure_native
from alluvium.spark.statements.resolve import Qualifier
from alluvium.storage.locating import locating

log = logging.getLogger("alluvium")
#: The rule that is broken where a winner removed, or masked, one of the files that were written anew.
_TAKEN_AWAY = "concurrent-delete-delete"


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """What the caller asked for.

    Attributes:
        name: Of the table in conditions.
        engine: For the history.
        where: Conditions over partition columns, all of which must hold.
        order_by: Columns to order rows by; none: files are only put together.
        purges: Whether it is REORG: files that hold what the table does not show are written anew, and no others.
        sizes: What files should be like.
        needs_statistics: Whether rows may be ordered only by columns that have statistics.
    """

    name: Qualifier
    engine: str
    where: tuple[str, ...] = ()
    order_by: tuple[tuple[str, ...], ...] = ()
    purges: bool = False
    sizes: FileSizes = DEFAULT_SIZES
    needs_statistics: bool = True

    @property
    def verb(self) -> str:
        """As the history names it."""
        return "REORG" if self.purges else "OPTIMIZE"


def optimize_table(
    spark: SparkSession,
    snapshot: Snapshot,
    request: OptimizeRequest,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> Optimized | Preview:
    """Writes files anew, rows and their identities as they were.

    Args:
        spark: A classic session.
        snapshot: The newest version.
        request: What to do.
        dry_run: Only tell which files would be written anew.
        retry: How often a commit that lost a race is tried again, and files that others took away are planned anew.

    Raises:
        InvalidRequest: The condition or the columns do not fit (`predicate-on-data`, `invalid-expression`,
            `invalid-zorder-column`); nothing has been written.
        UnsupportedFeature: The table is clustered (`clustered-table`), or needs a writer that we are not.
        CommitConflict: Another writer changed the table's description, or took files away every time.
    """
    ensure_native(spark)
    started_ms = _now_ms()
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        _ensure_unclustered(snapshot, request)
        columns = order_columns(snapshot.config, request.order_by, request.needs_statistics)
        chosen = choose_files(spark, snapshot, request.where, request.name, request.verb)
        operation = _operation(request, columns, chosen)
        bins = _plan(snapshot, request, chosen.files)
    if dry_run:
        return _preview(snapshot, bins, operation)
    run = _Run(spark, request, columns, operation, retry)
    parts = run.all_parts(snapshot, bins)
    return _outcome(run, snapshot, parts, chosen.files.num_rows, started_ms)


def _ensure_unclustered(snapshot: Snapshot, request: OptimizeRequest) -> None:
    clustered = clustering_columns(snapshot.state.domains, snapshot.config)
    if clustered:
        names = ", ".join(".".join(path) for path in clustered)
        asked = " ZORDER BY" if request.order_by else " WHERE" if request.where else ""
        raise UnsupportedFeature(
            f"{request.verb}{asked} of a table that is clustered by {names}: its files would have to be clustered",
            code="clustered-table",
            features=("clustering",),
            hint="let delta-spark optimise it; Alluvium does not cluster yet",
        )


def _operation(request: OptimizeRequest, columns: Sequence[OrderColumn], chosen: Chosen) -> Operation:
    parameters: dict[str, JsonValue] = {"predicate": _json(chosen.shown)}
    if request.purges:
        parameters["applyPurge"] = True
    else:
        parameters |= {"zOrderBy": _json([c.name for c in columns]), "clusterBy": "[]", "auto": False}
    return Operation(request.verb, parameters, engine=request.engine)


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


def _plan(snapshot: Snapshot, request: OptimizeRequest, files: pa.Table) -> Bins:
    if request.purges:
        return purge_bins(snapshot, purgeable(snapshot, files), request.sizes)
    plan = order_bins if request.order_by else compaction_bins
    return plan(snapshot, files, request.sizes)


def _preview(snapshot: Snapshot, bins: Bins, operation: Operation) -> Preview:
    paths = tuple(bins.files["path"].to_pylist())
    metrics = {
        "numRemovedFiles": str(len(paths)),
        "numRemovedBytes": str(total(bins.files["size"])),
        "numDeletionVectorsRemoved": str(with_vectors(bins.files).num_rows),
    }
    told = replace(operation, metrics=metrics)
    return Preview(snapshot.version, told, {}, removed=paths, read=paths, rewritten=paths)


@dataclass(frozen=True, slots=True)
class _Run:
    spark: SparkSession
    request: OptimizeRequest
    columns: Sequence[OrderColumn]
    operation: Operation
    retry: RetryPolicy

    def all_parts(self, snapshot: Snapshot, bins: Bins) -> list[Part]:
        """Writes and commits the bins; those that others took files of, anew on the version that these made."""
        parts: list[Part] = []
        repeated = 0
        while bins.count:
            part, lost, newest = self._part(snapshot, bins)
            parts += [part] if part is not None else []
            if not lost.num_rows:
                break
            repeated += 1
            keys = pc.unique(partition_keys(lost, snapshot.config, snapshot.time_zone))
            snapshot = refresh(newest)
            # Where too many were taken away too often, what is done is done: the rest is left as others left it.
            if repeated > self.retry.max_repeats:
                log.warning("%s left %d files that others changed time and again", self.request.verb, lost.num_rows)
                break
            with locating(snapshot.store, snapshot.version):
                bins = _plan(snapshot, self.request, of_partitions(snapshot, snapshot.files, keys))
        return parts

    def _part(self, snapshot: Snapshot, bins: Bins) -> tuple[Part | None, pa.Table, Snapshot]:
        """One job and its commit: what it came to, the files of bins that it had to leave, and the version after."""
        target = DeltaTarget(snapshot.store, snapshot.config, snapshot, self.retry)
        with locating(snapshot.store, snapshot.version):
            order = z_order(self.spark, snapshot, bins, self.columns) if self.columns else None
            written = write_bins(self.spark, target, bins, order)
            try:
                ensure_all_rows(snapshot, bins, written.bins, written.table["num_rows"].combine_chunks())
                return self._commit(target, bins, written)
            except NOTHING_STANDS:
                clear(target.store, written.directory)
                raise

    def _commit(self, target: DeltaTarget, bins: Bins, written: WrittenBins) -> tuple[Part | None, pa.Table, Snapshot]:
        everything, base = bins, target.snapshot
        assert base is not None, "bins are files of a version"
        while True:
            try:
                done = target.commit(self._changes(base, bins, written))
            except CommitConflict as error:
                if any(c.rule != _TAKEN_AWAY for c in error.conflicts):
                    raise
                newest = refresh(base)
                if newest.config != base.config:
                    raise
                bins, written = _without_lost(newest, bins, written)
                if not bins.count:
                    return None, everything.files, newest
                base, target = newest, replace(target, snapshot=newest)
            else:
                sizes = tuple(written.table["size"].to_pylist())
                lost = everything.files.filter(
                    pc.invert(pc.is_in(everything.numbers, value_set=pc.unique(bins.numbers)))
                )
                return Part(done.version, done.attempts, sizes, bins.files, bins.count), lost, base

    def _changes(self, base: Snapshot, bins: Bins, written: WrittenBins) -> RewriteFiles:
        paths = candidates_of(base, bins.files).paths
        touched = pa.table([paths, pa.nulls(bins.files.num_rows, pa.binary())], schema=TOUCHED_FILES)

        def describe(figures: EditFigures) -> dict[str, str]:
            return rewrite_metrics(figures, written.table["size"])

        # The rows are the same whatever others add, and what they remove shows in the files.
        return RewriteFiles(
            NewFiles(written.table, written.footers), touched, self.operation, ReadScope.nothing(), describe
        )


def _without_lost(newest: Snapshot, bins: Bins, written: WrittenBins) -> tuple[Bins, WrittenBins]:
    """The bins none of whose files others have touched; the new files of the others are removed."""
    lost = pc.unique(bins.numbers.filter(pc.invert(still_live(newest, bins.files))))
    kept = pc.unique(bins.numbers)
    kept = kept.filter(pc.invert(pc.is_in(kept, value_set=lost)))
    if written.bins.null_count or len(lost) == 0:
        # Nobody knows which files are whose, or what was lost.
        kept = kept.slice(0, 0)
    remaining = written.only(kept)
    gone = set(written.table["path"].to_pylist()) - set(remaining.table["path"].to_pylist())
    clear(newest.store, files=sorted(gone))
    return bins.only(kept), remaining


def _outcome(run: _Run, snapshot: Snapshot, parts: Sequence[Part], considered: int, started_ms: int) -> Optimized:
    config = snapshot.config
    removed = pa.concat_tables([p.removed for p in parts]) if parts else snapshot.files.slice(0, 0)
    columns, indexed = len(config.schema.fields), parse_properties(config.metadata.configuration).num_indexed_cols
    masked = with_vectors(removed)
    rows = pc.sum(pc.struct_field(vectors_of(masked), "cardinality")).as_py() if masked.num_rows else 0
    return Optimized(
        version=parts[-1].version if parts else snapshot.version,
        added=tuple(size for p in parts for size in p.added),
        removed=tuple(removed["size"].to_pylist()),
        partitions=len(pc.unique(partition_keys(removed, config, snapshot.time_zone))),
        bins=sum(p.bins for p in parts),
        considered=considered,
        masks=(masked.num_rows, int(rows or 0)),
        attempts=sum(p.attempts for p in parts),
        started_ms=started_ms,
        ended_ms=_now_ms(),
        order_by=tuple(c.name for c in run.columns),
        columns=(columns, columns if indexed < 0 else min(columns, indexed)),
        parallelism=run.spark.sparkContext.defaultParallelism,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
