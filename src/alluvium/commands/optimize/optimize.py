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

from alluvium.commands.optimize.bins import Order, WrittenBins, write_bins
from alluvium.commands.optimize.chosen import Chosen, choose_files
from alluvium.commands.optimize.cluster import Ordering, ordering_of
from alluvium.commands.optimize.outcome import Optimized, Part
from alluvium.commands.optimize.sort import sort_order, sorting_of
from alluvium.commands.optimize.z_order import z_order
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.description.shown_columns import shown_path
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.clustering.zcubes import (
    DEFAULT_CUBES,
    CubeFigures,
    CubeSizes,
    cube_groups,
    cube_marks,
    kept_marks,
    plan_cubes,
)
from alluvium.delta.upkeep.look_ups import look_ups
from alluvium.delta.upkeep.optimize import (
    DEFAULT_SIZES,
    Bins,
    FileSizes,
    compaction_bins,
    ensure_all_rows,
    joined_bins,
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
from alluvium.errors import CommitConflict
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
#: Rows that make a cube of one file below this size stay in the order that they are in: nobody is saved from opening
#: it, and to order them takes longer than to read and write them.
_UNORDERED_BYTES = 16 << 20
#: The rule that is broken where a winner removed, or masked, one of the files that were written anew.
_TAKEN_AWAY = "concurrent-delete-delete"


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """What the caller asked for.

    Attributes:
        name: Of the table in conditions.
        engine: For the history.
        where: Conditions over partition columns, all of which must hold.
        order_by: Columns to order rows by along a Z-curve; none: files are only put together.
        sort_by: Columns to sort rows by; none: those that the table says.
        purges: Whether it is REORG: files that hold what the table does not show are written anew, and no others.
        sizes: What files should be like.
        needs_statistics: Whether rows may be ordered only by columns that have statistics.
        full: Whether files of a clustered table are clustered anew that others clustered, or by other columns.
        cubes: When files of a clustered table are clustered enough.
        chosen: Files that were chosen already, in the place of `where`: it is auto compaction.
        measures: Whether to tell how many files look-ups open, where rows are put in order.
    """

    name: Qualifier
    engine: str
    where: tuple[str, ...] = ()
    order_by: tuple[tuple[str, ...], ...] = ()
    sort_by: tuple[str, ...] = ()
    purges: bool = False
    sizes: FileSizes = DEFAULT_SIZES
    needs_statistics: bool = True
    full: bool = False
    cubes: CubeSizes = DEFAULT_CUBES
    chosen: Chosen | None = None
    measures: bool = False

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
        asked = (request.order_by, request.where, request.needs_statistics, request.full, request.verb)
        ordering = sorting_of(snapshot, ordering_of(snapshot, *asked), request.sort_by)
        chosen = request.chosen or choose_files(spark, snapshot, request.where, request.name, request.verb)
        operation = _operation(request, ordering, chosen)
        run = _Run(spark, request, ordering, operation, retry)
        bins, cubes = run.plan(snapshot, chosen.files)
    if dry_run:
        return _preview(snapshot, bins, operation)
    parts = run.all_parts(snapshot, bins)
    samples = parts[0].samples if parts and request.measures else ()
    measured = look_ups(snapshot, refresh(snapshot), samples) if samples else ()
    done = _outcome(run, snapshot, parts, chosen.files.num_rows, started_ms)
    return replace(done, cubes=cubes, look_ups=measured)


def _operation(request: OptimizeRequest, ordering: Ordering, chosen: Chosen) -> Operation:
    parameters: dict[str, JsonValue] = {"predicate": _json(chosen.shown)}
    if request.purges:
        parameters["applyPurge"] = True
    else:
        names = [shown_path(c.path) if ordering.clusters else c.name for c in ordering.columns]
        along = [] if ordering.clusters or ordering.sorts else names
        clusters = names if ordering.clusters else []
        parameters |= {"zOrderBy": _json(along), "clusterBy": _json(clusters), "auto": request.chosen is not None}
        parameters |= {"isFull": request.full} if clusters else {}
        parameters |= {"sortBy": _json(names)} if ordering.sorts else {}
    return Operation(request.verb, parameters, engine=request.engine)


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


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
    ordering: Ordering
    operation: Operation
    retry: RetryPolicy

    def plan(self, snapshot: Snapshot, files: pa.Table) -> tuple[Bins, CubeFigures | None]:
        """Which of some files are written anew together; for a clustered table, what its cubes are."""
        request = self.request
        if request.purges:
            spoilt = purgeable(snapshot, files)
            # Rows that lie in a cube stay in it.
            groups = cube_groups(spoilt) if self.ordering.clusters and spoilt.num_rows else [spoilt]
            return joined_bins([purge_bins(snapshot, group, request.sizes) for group in groups]), None
        if self.ordering.clusters:
            cubes = plan_cubes(snapshot, self.ordering.paths, request.cubes, request.sizes.max_bytes, request.full)
            return cubes.bins, cubes.figures
        # By partition columns alone there is nothing to sort.
        orders = request.order_by or (request.sort_by and self.ordering.sorts)
        plan = order_bins if orders else compaction_bins
        return plan(snapshot, files, request.sizes), None

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
                bins, _ = self.plan(snapshot, of_partitions(snapshot, snapshot.files, keys))
        return parts

    def _part(self, snapshot: Snapshot, bins: Bins) -> tuple[Part | None, pa.Table, Snapshot]:
        """One job and its commit: what it came to, the files of bins that it had to leave, and the version after."""
        target = DeltaTarget(snapshot.store, snapshot.config, snapshot, self.retry)
        with locating(snapshot.store, snapshot.version):
            order = self._order(snapshot, bins)
            written = write_bins(self.spark, target, bins, order)
            try:
                ensure_all_rows(snapshot, bins, written.bins, written.table["num_rows"].combine_chunks())
                part, lost, newest = self._commit(target, bins, written)
            except NOTHING_STANDS:
                clear(target.store, written.directory)
                raise
        samples = () if order is None else order.samples
        return None if part is None else replace(part, samples=samples), lost, newest

    def _order(self, snapshot: Snapshot, bins: Bins) -> Order | None:
        request, ordering = self.request, self.ordering
        if request.purges or not ordering.columns:
            return None
        small = max(bins.counts) == 1 and total(bins.files["size"]) < _UNORDERED_BYTES
        if ordering.clusters and small and not request.measures:
            return None
        if ordering.sorts:
            return sort_order(self.spark, snapshot, bins, ordering.columns)
        return z_order(self.spark, snapshot, bins, ordering.columns, ordering.curve)

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

        new = NewFiles(written.table, written.footers)
        marks = None
        if self.ordering.clusters:
            purges, paths = self.request.purges, self.ordering.paths
            marks = kept_marks(bins, written.bins) if purges else cube_marks(written.bins, paths)
        # The rows are the same whatever others add, and what they remove shows in the files.
        return RewriteFiles(new, touched, self.operation, ReadScope.nothing(), describe, marks)


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
        order_by=() if run.ordering.clusters or run.ordering.sorts else tuple(c.name for c in run.ordering.columns),
        columns=(columns, columns if indexed < 0 else min(columns, indexed)),
        parallelism=run.spark.sparkContext.defaultParallelism,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
