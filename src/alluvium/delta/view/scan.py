"""Snapshot plus predicate to ScanPlan: which files, and how columns come out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import repeated
from alluvium.delta.features.columns.generated_partitions import (
    DerivedStatistics,
    PartitionsOnly,
    generated_origins,
    origins_named,
)
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.registry import SCAN_PASSES
from alluvium.delta.log.large.pieces import joined
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.partitions import partition_constants
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable
from alluvium.expr.skipping.prune import Decision, decide
from alluvium.expr.skipping.whole import decide_whole
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.storage.elsewhere import ensure_all_same_side
from alluvium.storage.paths import decode_uri_paths


@dataclass(frozen=True, slots=True)
class Selection:
    """The live files that a predicate leaves, and how many it left out, and why.

    Attributes:
        files: Files that may hold a row for which the predicate is true; schema `FILES`.
        certain: One value a file: whether every row of it makes the predicate true, as far as bounds that others wrote
            are right. Enough to count by, never to remove by: see `whole_files`.
        by_partition: Files left out by their partition values.
        by_statistics: Files left out by their statistics.
    """

    files: pa.Table
    certain: pa.Array
    by_partition: int = 0
    by_statistics: int = 0

    @property
    def skipped(self) -> tuple[tuple[str, int], ...]:
        """How many files were left out, by reason."""
        return (("partition", self.by_partition), ("statistics", self.by_statistics))


def select_files(snapshot: Snapshot, where: Expression | None) -> Selection:
    """Skips files that cannot hold a row for which `where` is true.

    A file stays whose vector deletes as many rows as `numRecords` says that it has: a read without a condition shows
    what a wrong number would hide here.

    Args:
        snapshot: The version.
        where: None: all files.
    """
    if where is not None and snapshot.is_unread:
        return _select_by_pieces(snapshot, where)
    return select_some(snapshot, snapshot.files, where)


def select_some(snapshot: Snapshot, files: pa.Table, where: Expression | None) -> Selection:
    """As `select_files`, out of some of the live files."""
    if where is None or files.num_rows == 0:
        return Selection(files, repeated(where is None, files.num_rows))
    return select_among(files, where, snapshot.config, snapshot.time_zone, snapshot.statistics)


def _select_by_pieces(snapshot: Snapshot, where: Expression) -> Selection:
    """As `select_files`, without holding more than the files that are left."""
    found = snapshot.map_files(lambda files: select_some(snapshot, files, where))
    files = joined([selection.files for selection in found])
    certain = pa.chunked_array([selection.certain for selection in found], pa.bool_()).combine_chunks()
    if len(certain) != files.num_rows:
        # Of files that the checkpoint lists twice nothing is certain.
        certain = repeated(False, files.num_rows)
    by_partition, by_statistics = sum(s.by_partition for s in found), sum(s.by_statistics for s in found)
    return Selection(files, certain, by_partition, by_statistics)


def select_among(
    files: pa.Table,
    where: Expression,
    config: TableConfig,
    time_zone: str,
    statistics_of: Callable[[pa.Table], AddStatistics],
) -> Selection:
    """As `select_files`, of any files of a table (`FILES`).

    Args:
        files: The files.
        where: The predicate.
        config: Of the table.
        time_zone: In which partition values and predicates without a zone are read.
        statistics_of: Statistics of some of the files.
    """
    paths = column_paths(where)
    partitions = {(name,) for name in config.partition_columns}
    origins = origins_named(generated_origins(config), paths)
    certain = repeated(False, files.num_rows)
    kept = files
    if paths & partitions or paths <= partitions or origins:
        # Partition values alone first: statistics need not be decoded for files that go anyway.
        alone = DerivedStatistics(PartitionsOnly(statistics_of(files)), None, origins)
        kept, certain = _keep(files, decide(where, alone, time_zone))
    by_partition = files.num_rows - kept.num_rows
    if paths <= partitions or not kept.num_rows:
        return Selection(kept, certain, by_partition)
    statistics = statistics_of(kept)
    # Announced together, the columns are decoded in one pass over the statistics' text.
    statistics.prepare(paths)
    derived = DerivedStatistics(statistics, statistics, origins) if origins else statistics
    sharper, certain = _keep(kept, decide(where, derived, time_zone))
    return Selection(sharper, certain, by_partition, kept.num_rows - sharper.num_rows)


@dataclass(frozen=True, slots=True)
class WholeSelection:
    """What the partition values of the live files say of a predicate.

    Attributes:
        every: Files all of whose rows make it true (`FILES`).
        undecided: Files of which only their rows can tell.
    """

    every: pa.Table
    undecided: pa.Table


def whole_files(snapshot: Snapshot, where: Expression | None) -> WholeSelection:
    """The live files that go as a whole where all rows go for which `where` is true: what may be removed unread.

    Partition values alone count. Statistics are what some writer found worth telling: good for leaving a file out of a
    read, where an error hides rows until it is mended, but not for removing rows for good (docs/decisions/0018).

    Args:
        snapshot: The version.
        where: None: all files.
    """
    return _whole_among(snapshot, snapshot.files, where)


def decided_files(snapshot: Snapshot, where: Expression | None) -> pa.Table | None:
    """The files of `whole_files` that go; None where those that are undecided are any."""
    if where is None:
        return snapshot.files

    def see(files: pa.Table) -> pa.Table | None:
        found = _whole_among(snapshot, files, where)
        return None if found.undecided.num_rows else found.every

    if not snapshot.is_unread:
        return see(snapshot.files)
    parts = snapshot.map_files(see)
    every = [part for part in parts if part is not None]
    return joined(every) if len(every) == len(parts) else None


def _whole_among(snapshot: Snapshot, files: pa.Table, where: Expression | None) -> WholeSelection:
    if where is None:
        return WholeSelection(files, files.slice(0, 0))
    found = decide_whole(where, snapshot.statistics(files), snapshot.time_zone)
    return WholeSelection(files.filter(found.every), files.filter(found.undecided))


def _keep(files: pa.Table, decision: Decision) -> tuple[pa.Table, pa.Array]:
    if pc.all(decision.keep, min_count=0).as_py():
        return files, decision.certain
    return files.filter(decision.keep), decision.certain.filter(decision.keep)


def plan_scan(snapshot: Snapshot, where: Expression | None = None, metadata_columns: tuple[str, ...] = ()) -> ScanPlan:
    """How to read the rows of a snapshot for which `where` may be true, with some columns beside those of its schema.

    "The path is a URI as specified by RFC 2396 URI Generic Syntax, which needs to be decoded to get the data file
    path."
    """
    selection = select_files(snapshot, where)
    return plan_files(snapshot, selection.files, metadata_columns, selection.skipped)


def plan_files(
    snapshot: Snapshot,
    chosen: pa.Table,
    metadata_columns: tuple[str, ...] = (),
    skipped: tuple[tuple[str, int], ...] = (),
    *,
    are_live: bool = True,
) -> ScanPlan:
    """How to read the rows of some files (`FILES`); other arguments as in `plan_scan`.

    Args:
        snapshot: By whose schema.
        chosen: The files.
        are_live: Whether they are the snapshot's own, and not those of several versions.
    """
    config = snapshot.config
    output = tuple(
        OutputColumn(
            f.name,
            f.type,
            f.nullable,
            FileConstant(f.name, f.type) if f.name in config.partition_columns else Physical((f.name,), f.type),
        )
        for f in config.schema.fields
    )
    files = _scan_files(snapshot, chosen)
    ensure_all_same_side(snapshot.store.url, files["path"])
    plan = ScanPlan(
        root=snapshot.store.url,
        parts=(ScanPart("files", files, "parquet", config.data_columns, output),),
        schema=config.schema,
        partition_columns=config.partition_columns,
        skipped=skipped,
    )
    context = ScanContext(
        config,
        chosen,
        snapshot.store,
        snapshot.time_zone,
        snapshot.open_store,
        metadata_columns,
        snapshot.version if are_live else None,
    )
    for edit in SCAN_PASSES:
        plan = edit(plan, context)
    return plan


def _scan_files(snapshot: Snapshot, chosen: pa.Table) -> pa.Table:
    """Those of all files are made once: every query begins with a plan without a predicate."""

    def make() -> pa.Table:
        return scan_files(chosen, snapshot.config, snapshot.time_zone)

    return snapshot.once("scan_files", make) if snapshot.is_all(chosen) else make()


def scan_files(files: pa.Table, config: TableConfig, time_zone: str) -> pa.Table:
    """Live files (`FILES`) as the waist wants them (`SCAN_FILES`), partition values typed."""
    return pa.table(
        {
            "path": data_paths(files),
            "size": files.column("size"),
            "modification_time_ms": files.column("modificationTime"),
            # Left open: it would cost decoding every file's statistics, and no engine needs it to read.
            "num_rows": pa.nulls(files.num_rows, pa.int64()),
            "constants": partition_constants(files, config, time_zone),
            "mask": pa.nulls(files.num_rows, pa.binary()),
        }
    )


def data_paths(files: pa.Table) -> pa.ChunkedArray:
    """The decoded paths of files, none of which climbs out of its table.

    "`path`: A relative path to a data file from the root of the table or an absolute path to a file".

    Raises:
        CorruptTable: A path with a `..` part, which only somebody who wants to lead readers astray would write, or one
            that names no file.
    """
    paths = decode_uri_paths(files.column("path"))
    senseless = pc.match_substring_regex(paths, r"(^|/)\.\.(/|$)|(^|/)\.?$|\x00")
    if pc.any(senseless).as_py():
        path = paths.filter(senseless)[0].as_py()
        if ".." not in path.split("/"):
            raise CorruptTable(f"the log names a data file by {path!r}", code="malformed-path", path=path)
        raise CorruptTable(
            f"the log names a data file outside the table: {path!r}",
            code="path-escapes-root",
            path=path,
            hint="the log was tampered with, or written by a broken client; do not trust the table",
        )
    return paths
