"""OPTIMIZE and REORG: plan bins, write them, commit; what others took away meanwhile is planned and written anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from alluvium.commands.optimize.bins import Order, write_bins
from alluvium.commands.optimize.chosen import choose_files
from alluvium.commands.optimize.cluster import Ordering, ordering_of
from alluvium.commands.optimize.outcome import Optimized
from alluvium.commands.optimize.rewriting import (
    Chosen,
    Rewriting,
    WrittenBins,
    now_ms,
    operation_of,
    outcome,
    preview,
    purged_bins,
)
from alluvium.commands.optimize.sort import sort_order, sorting_of
from alluvium.commands.optimize.z_order import z_order
from alluvium.commands.rows_here.optimize import OptimizeAsked, choose_here
from alluvium.delta.description.shown_columns import shown_path
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.terms.actions import total
from alluvium.delta.upkeep.clustering.zcubes import (
    DEFAULT_CUBES,
    CubeFigures,
    CubeSizes,
    plan_cubes,
)
from alluvium.delta.upkeep.look_ups import look_ups
from alluvium.delta.upkeep.optimize import (
    DEFAULT_SIZES,
    Bins,
    FileSizes,
    compaction_bins,
    order_bins,
)
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import (
    Operation,
    Preview,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.session import default_parallelism, ensure_native, is_connect, time_zone
from alluvium.spark.statements.resolve import Qualifier
from alluvium.storage.locating import locating

#: Rows that make a cube of one file below this size stay in the order that they are in: nobody is saved from opening
#: it, and to order them takes longer than to read and write them.
_UNORDERED_BYTES = 16 << 20


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
        spark: A session.
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
    started_ms = now_ms()
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        asked = (request.order_by, request.where, request.needs_statistics, request.full, request.verb)
        ordering = sorting_of(snapshot, ordering_of(snapshot, *asked), request.sort_by)
        chosen = request.chosen or _chosen(spark, snapshot, request)
        operation = _operation(request, ordering, chosen)
        run = _Run(spark, request, ordering, operation)
        bins, cubes = run.plan(snapshot, chosen.files)
    if dry_run:
        return preview(snapshot, bins, operation)
    parts = run.rewriting(retry).all_parts(snapshot, bins)
    samples = parts[0].samples if parts and request.measures else ()
    measured = look_ups(snapshot, refresh(snapshot), samples) if samples else ()
    order_by = () if ordering.clusters or ordering.sorts else tuple(c.name for c in ordering.columns)
    parallelism = default_parallelism(spark) or 1
    done = outcome(snapshot, parts, chosen.files.num_rows, started_ms, parallelism, order_by)
    return replace(done, cubes=cubes, look_ups=measured)


def _chosen(spark: SparkSession, snapshot: Snapshot, request: OptimizeRequest) -> Chosen:
    if not is_connect(spark):
        ensure_native(spark)
        return choose_files(spark, snapshot, request.where, request.name, request.verb)
    asked = OptimizeAsked(request.name[-1], request.engine, request.where, request.purges, time_zone=time_zone(spark))
    return choose_here(snapshot, asked)


def _operation(request: OptimizeRequest, ordering: Ordering, chosen: Chosen) -> Operation:
    names = [shown_path(c.path) if ordering.clusters else c.name for c in ordering.columns]
    return operation_of(
        request.verb,
        request.engine,
        chosen.shown,
        purges=request.purges,
        along=[] if ordering.clusters or ordering.sorts else names,
        clusters=names if ordering.clusters else [],
        sorts=names if ordering.sorts else None,
        is_full=request.full,
        is_auto=request.chosen is not None,
    )


@dataclass(frozen=True, slots=True)
class _Run:
    spark: SparkSession
    request: OptimizeRequest
    ordering: Ordering
    operation: Operation

    def plan(self, snapshot: Snapshot, files: pa.Table) -> tuple[Bins, CubeFigures | None]:
        """Which of some files are written anew together; for a clustered table, what its cubes are."""
        request = self.request
        if request.purges:
            return purged_bins(snapshot, files, request.sizes, clusters=self.ordering.clusters), None
        if self.ordering.clusters:
            cubes = plan_cubes(snapshot, self.ordering.paths, request.cubes, request.sizes.max_bytes, request.full)
            return cubes.bins, cubes.figures
        # By partition columns alone there is nothing to sort.
        orders = request.order_by or (request.sort_by and self.ordering.sorts)
        plan = order_bins if orders else compaction_bins
        return plan(snapshot, files, request.sizes), None

    def write(self, target: DeltaTarget, bins: Bins) -> WrittenBins:
        """The rows of bins as files, in the order that they are to have."""
        assert target.snapshot is not None, "bins are files of a version"
        return write_bins(self.spark, target, bins, self._order(target.snapshot, bins))

    def rewriting(self, retry: RetryPolicy) -> Rewriting:
        """What is done again where others come between."""
        ordering, request = self.ordering, self.request
        return Rewriting(
            request.verb,
            self.operation,
            retry,
            lambda snapshot, files: self.plan(snapshot, files)[0],
            self.write,
            tuple(ordering.paths) if ordering.clusters else None,
            request.purges,
        )

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
