"""Bins of files written anew, in commits that change no row, whoever writes them: by Spark, or by pyarrow.

What others took away meanwhile is planned and written anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.commands.optimize.outcome import Optimized, Part
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.rows.candidates import Candidates, candidates_of
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.clustering.zcubes import cube_groups, cube_marks, kept_marks
from alluvium.delta.upkeep.look_ups import Sampled
from alluvium.delta.upkeep.optimize import (
    Bins,
    FileSizes,
    ensure_all_rows,
    joined_bins,
    of_partitions,
    purge_bins,
    rewrite_metrics,
    still_live,
    with_vectors,
)
from alluvium.delta.upkeep.purgeable import purgeable
from alluvium.delta.view.partitions import partition_keys
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import (
    TOUCHED_FILES,
    EditFigures,
    NewFiles,
    Operation,
    Preview,
    ReadScope,
    RewriteFiles,
)
from alluvium.plan.retry import RetryPolicy
from alluvium.plan.write import WritePlan
from alluvium.schema.edit import Path
from alluvium.schema.types import JsonValue
from alluvium.storage.locating import locating

log = logging.getLogger("alluvium")
#: The rule that is broken where a winner removed, or masked, one of the files that were written anew.
_TAKEN_AWAY = "concurrent-delete-delete"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a predicate comes to.

    Attributes:
        files: Live files (`FILES`) in the partitions for which it is true.
        shown: Its conditions, as the history shows them.
    """

    files: pa.Table
    shown: tuple[str, ...] = ()


def not_of_partitions(column: str, config: TableConfig, verb: str) -> InvalidRequest:
    """A condition names a column that is none of the partition columns."""
    return InvalidRequest(
        # In the words by which callers of the reference know it.
        f"Predicate references non-partition column {column!r}. "
        f"Only the partition columns may be referenced: [{', '.join(config.partition_columns)}]",
        code="predicate-on-data",
        column=column,
        hint=f"{verb} takes or leaves whole partitions",
    )


@dataclass(frozen=True, slots=True)
class WrittenBins:
    """What became of some bins.

    Attributes:
        directory: Where their files are.
        table: The files (`WRITTEN_FILES`).
        footers: One a file.
        bins: The bin of each file.
        samples: Some values of the columns that rows were ordered by.
    """

    directory: str
    table: pa.Table
    footers: tuple[FileFooter, ...]
    bins: pa.Array
    samples: tuple[Sampled, ...] = ()

    def only(self, kept: pa.Array) -> WrittenBins:
        """The files of these bins."""
        chosen = pc.is_in(self.bins, value_set=kept)
        footers = tuple(f for f, is_kept in zip(self.footers, chosen.to_pylist(), strict=True) if is_kept)
        return replace(self, table=self.table.filter(chosen), footers=footers, bins=self.bins.filter(chosen))


def rewrite_plan(target: DeltaTarget, candidates: Candidates) -> WritePlan:
    """How the rows of some files are written once more: they obey the table's conditions already."""
    plan = target.plan_write(None, ()).with_ids(candidates.stored_ids)
    return replace(plan, checks=(), derived=(), rebalance=False, is_arranged=True, sort=())


@dataclass(frozen=True, slots=True)
class Rewriting:
    """OPTIMIZE or REORG of a table, on its way.

    Attributes:
        verb: As the history names it.
        operation: For the history; metrics are added.
        retry: How often a commit that lost a race is tried again, and files that others took away are planned anew.
        plan: Which of some live files of a version (`FILES`) are written anew together.
        write: Writes the rows of bins into files; nothing is left where that fails.
        clustered_by: Of a clustered table its columns, so that new files are marked as cubes.
        purges: Whether it is REORG.
    """

    verb: str
    operation: Operation
    retry: RetryPolicy
    plan: Callable[[Snapshot, pa.Table], Bins]
    write: Callable[[DeltaTarget, Bins], WrittenBins]
    clustered_by: tuple[Path, ...] | None = None
    purges: bool = False

    def all_parts(self, snapshot: Snapshot, bins: Bins) -> list[Part]:
        """Writes and commits the bins; those that others took files of, anew on the version that these made.

        Raises:
            CommitConflict: Another writer changed the table's description, or took files away every time.
        """
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
                log.warning("%s left %d files that others changed time and again", self.verb, lost.num_rows)
                break
            with locating(snapshot.store, snapshot.version):
                bins = self.plan(snapshot, of_partitions(snapshot, snapshot.files, keys))
        return parts

    def _part(self, snapshot: Snapshot, bins: Bins) -> tuple[Part | None, pa.Table, Snapshot]:
        """One job and its commit: what it came to, the files of bins that it had to leave, and the version after."""
        target = DeltaTarget(snapshot.store, snapshot.config, snapshot, self.retry)
        with locating(snapshot.store, snapshot.version):
            written = self.write(target, bins)
            try:
                ensure_all_rows(snapshot, bins, written.bins, written.table["num_rows"].combine_chunks())
                part, lost, newest = self._commit(target, bins, written)
            except NOTHING_STANDS:
                clear(target.store, written.directory)
                raise
        return None if part is None else replace(part, samples=written.samples), lost, newest

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
        marks, paths = None, self.clustered_by
        if paths is not None:
            marks = kept_marks(bins, written.bins) if self.purges else cube_marks(written.bins, list(paths))
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


def operation_of(
    verb: str,
    engine: str,
    shown: Sequence[str],
    *,
    purges: bool,
    along: Sequence[str] = (),
    clusters: Sequence[str] = (),
    sorts: Sequence[str] | None = None,
    is_full: bool = False,
    is_auto: bool = False,
) -> Operation:
    """What the history says is done.

    Args:
        verb: `"OPTIMIZE"`, `"REORG"`.
        engine: Who does it.
        shown: The conditions.
        purges: Whether it is REORG.
        along: Columns of a Z-curve.
        clusters: Columns that the table is clustered by.
        sorts: Columns that rows are sorted by; None: they are not.
        is_full: Whether all of a clustered table is clustered anew.
        is_auto: Whether nobody asked for it.
    """
    parameters: dict[str, JsonValue] = {"predicate": _json(shown)}
    if purges:
        parameters["applyPurge"] = True
    else:
        parameters |= {"zOrderBy": _json(along), "clusterBy": _json(clusters), "auto": is_auto}
        parameters |= {"isFull": is_full} if clusters else {}
        parameters |= {} if sorts is None else {"sortBy": _json(sorts)}
    return Operation(verb, parameters, engine=engine)


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


def purged_bins(snapshot: Snapshot, files: pa.Table, sizes: FileSizes, *, clusters: bool) -> Bins:
    """Those of some files (`FILES`) that hold what the table does not show; rows of a cube stay in it."""
    spoilt = purgeable(snapshot, files)
    groups = cube_groups(spoilt) if clusters and spoilt.num_rows else [spoilt]
    return joined_bins([purge_bins(snapshot, group, sizes) for group in groups])


def preview(snapshot: Snapshot, bins: Bins, operation: Operation) -> Preview:
    """Which files would be written anew."""
    paths = tuple(bins.files["path"].to_pylist())
    metrics = {
        "numRemovedFiles": str(len(paths)),
        "numRemovedBytes": str(total(bins.files["size"])),
        "numDeletionVectorsRemoved": str(with_vectors(bins.files).num_rows),
    }
    told = replace(operation, metrics=metrics)
    return Preview(snapshot.version, told, {}, removed=paths, read=paths, rewritten=paths)


def outcome(
    snapshot: Snapshot,
    parts: Sequence[Part],
    considered: int,
    started_ms: int,
    parallelism: int,
    order_by: tuple[str, ...] = (),
) -> Optimized:
    """What the commits came to.

    Args:
        snapshot: The version that it began with.
        parts: The commits.
        considered: How many files there were to look at.
        started_ms: When it began, since 1970 UTC.
        parallelism: How many tasks run at once.
        order_by: Columns that rows were ordered by.
    """
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
        ended_ms=now_ms(),
        order_by=order_by,
        columns=(columns, columns if indexed < 0 else min(columns, indexed)),
        parallelism=parallelism,
    )


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return int(time.time() * 1000)
