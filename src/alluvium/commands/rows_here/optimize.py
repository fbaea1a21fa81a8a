"""OPTIMIZE and REORG without Spark: the files of a bin read one after the other, batch by batch, into a new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from alluvium.commands.optimize.clustered import clustered_by
from alluvium.commands.optimize.outcome import Optimized
from alluvium.commands.optimize.rewriting import (
    Chosen,
    Rewriting,
    WrittenBins,
    not_of_partitions,
    now_ms,
    operation_of,
    outcome,
    preview,
    purged_bins,
    rewrite_plan,
)
from alluvium.commands.rows_here.names import Names
from alluvium.commands.written import written_files
from alluvium.commit.clear import clear
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.rows.candidates import Candidates, candidates_of
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.file_properties import TARGET_FILE_SIZE, file_properties
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.delta.terms.sort_order import sort_columns
from alluvium.delta.upkeep.optimize import DEFAULT_FILE_BYTES, Bins, FileSizes, compaction_bins
from alluvium.delta.view.scan import whole_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import And, Expression, column_paths, within
from alluvium.plan.changes import Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WritePlan
from alluvium.portable.reader import read_batches
from alluvium.portable.writing.files import FilesInTheMaking, ensure_portable
from alluvium.schema import types as t
from alluvium.schema.edit import Path
from alluvium.schema.walk import holds
from alluvium.storage.locating import locating

#: A bin is a file, as large as it comes to.
_NO_BOUND = 1 << 62


@dataclass(frozen=True, slots=True)
class OptimizeAsked:
    """What the caller asked for.

    Attributes:
        name: Of the table in conditions.
        engine: For the history.
        where: Conditions over partition columns, all of which must hold.
        purges: Whether it is REORG: files that hold what the table does not show are written anew, and no others.
        full: Whether files of a clustered table are clustered anew.
        time_zone: In which times of conditions are read.
    """

    name: str
    engine: str
    where: tuple[str, ...] = ()
    purges: bool = False
    full: bool = False
    time_zone: str = "UTC"

    @property
    def verb(self) -> str:
        """As the history names it."""
        return "REORG" if self.purges else "OPTIMIZE"


def optimize_here(
    snapshot: Snapshot, asked: OptimizeAsked, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> Optimized | Preview:
    """Puts small files of each partition together, rows and their identities as they were.

    Memory holds the new file of a bin, encoded, two or three times, and a row group of those that are read.

    Args:
        snapshot: The newest version.
        asked: What to do.
        dry_run: Only tell which files would be written anew.
        retry: How often a commit that lost a race is tried again, and files that others took away are planned anew.

    Raises:
        InvalidRequest: The condition does not parse, or names a column that is none of the partition columns
            (`predicate-on-data`).
        UnsupportedFeature: Rows are to be put in order, have variants, or only Spark understands the condition
            (`needs-spark`); or the table is clustered, and there is a condition (`clustered-table`).
        CommitConflict: Another writer changed the table's description, or took files away every time.
    """
    started_ms = now_ms()
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        clustered = clustered_by(snapshot, (), asked.where, asked.full, asked.verb)
        _ensure_unordered(snapshot, clustered, asked)
        chosen = choose_here(snapshot, asked)
        operation = operation_of(asked.verb, asked.engine, chosen.shown, purges=asked.purges)
        planner = _Planner(asked.purges, _sizes(snapshot), bool(clustered))
        bins = planner.plan(snapshot, chosen.files)
    if dry_run:
        return preview(snapshot, bins, operation)
    marks = tuple(clustered) if clustered else None
    work = Rewriting(asked.verb, operation, retry, planner.plan, _write, marks, asked.purges)
    return outcome(snapshot, work.all_parts(snapshot, bins), chosen.files.num_rows, started_ms, 1)


def _ensure_unordered(snapshot: Snapshot, clustered: Sequence[Path], asked: OptimizeAsked) -> None:
    config = snapshot.config
    sorts = [n for n in sort_columns(config.metadata.configuration, config.schema) if n not in config.partition_columns]
    if not asked.purges and (clustered or sorts):
        raise UnsupportedFeature(
            f"rows of this table are kept in order, by {', '.join(map('.'.join, clustered)) or ', '.join(sorts)}",
            code="needs-spark",
            hint="DeltaTable.forPath(spark, path).optimize().executeCompaction()",
        )
    if holds(config.schema, t.VARIANT):
        raise UnsupportedFeature(
            "rows with variants are not written without Spark",
            code="needs-spark",
            hint="use DeltaTable.forPath(spark, path)",
        )


def choose_here(snapshot: Snapshot, asked: OptimizeAsked) -> Chosen:
    """The files of the partitions for which all conditions are true.

    Raises:
        InvalidRequest: One does not parse, or names a column that is none of the partition columns.
        UnsupportedFeature: One is not understood here (`needs-spark`).
    """
    where: Expression | None = None
    config = snapshot.config
    for text in asked.where:
        names = Names({asked.name: config.schema}, asked.time_zone)
        found = within(names.condition(text, f"the condition of {asked.verb}"), asked.name)
        others = sorted(path[0] for path in column_paths(found) if path[0] not in config.partition_columns)
        if others:
            raise not_of_partitions(others[0], config, asked.verb)
        where = found if where is None else And(where, found)
    whole = whole_files(snapshot, where)
    if whole.undecided.num_rows:
        raise UnsupportedFeature(
            f"{asked.verb} WHERE {' AND '.join(asked.where)}: values of some partitions are not understood here",
            code="needs-spark",
            hint="DeltaTable.forPath(spark, path).optimize()",
        )
    return Chosen(with_stats_text(whole.every), asked.where)


def _sizes(snapshot: Snapshot) -> FileSizes:
    """What files should be like, as the table says (`delta.targetFileSize`)."""
    configuration = snapshot.config.metadata.configuration
    size = DEFAULT_FILE_BYTES
    if TARGET_FILE_SIZE in configuration:
        size = file_properties(configuration).target_file_bytes
    return FileSizes(size, size)


@dataclass(frozen=True, slots=True)
class _Planner:
    purges: bool
    sizes: FileSizes
    clusters: bool

    def plan(self, snapshot: Snapshot, files: pa.Table) -> Bins:
        if self.purges:
            return purged_bins(snapshot, files, self.sizes, clusters=self.clusters)
        return compaction_bins(snapshot, files, self.sizes)


def _write(target: DeltaTarget, bins: Bins) -> WrittenBins:
    """The rows of each bin as a file; nothing is left where that fails."""
    snapshot = target.snapshot
    assert snapshot is not None, "bins are files of a version"
    candidates = replace(candidates_of(snapshot, bins.files), numbers=bins.numbers)
    plan = replace(rewrite_plan(target, candidates), target_file_bytes=_NO_BOUND)
    ensure_portable(plan)
    files = FilesInTheMaking(plan, target.store, format_partition_values)
    owners: dict[str, int] = {}
    try:
        for number in range(len(bins.counts)):
            for rows in _rows(candidates.only(pa.array([number], pa.int64())), target, plan):
                files.add(rows)
            for path in files.finish():
                owners.setdefault(path, number)
        table, footers = written_files(target.store, plan, files.written)
    except BaseException:
        clear(target.store, plan.directory)
        raise
    of_bins = pa.array([owners[path] for path in table["path"].to_pylist()], pa.int64())
    return WrittenBins(plan.directory, table, footers, of_bins)


def _rows(candidates: Candidates, target: DeltaTarget, plan: WritePlan) -> Iterator[pa.Table]:
    """The live rows of some files, with what tells who they are where the table keeps it."""
    s, places, ids = candidates.snapshot, candidates.columns, candidates.stored_ids
    own = target.schema.names
    kept = [] if ids is None else [name for name in (places.row_id, places.row_version) if name is not None]
    names = [*own, *([] if ids is None else [f.name for f in ids.fields])]
    for batch in read_batches(candidates.plan_scan(None), s.store, s.open_store, [*own, *kept], None, "UTC"):
        if batch.num_rows:
            yield pa.Table.from_batches([batch]).rename_columns(names)
