"""Statistics of files that have none, or such as do not parse: taken from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn, read_footer
from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.features.rows.deletion_vectors import has_vector, vectors_of
from alluvium.delta.statistics.stats import format_stats
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.checks.checkup import statistics_problem
from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.write.target import publish
from alluvium.delta.write.write import plan_write
from alluvium.errors import AlluviumError, CommitConflict
from alluvium.plan.changes import Committed, Operation, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute, split_file
from alluvium.storage.progress import counting

#: As the reference calls it.
OPERATION = "COMPUTE STATS"
_TOGETHER = 5_000
#: Times that files are looked for again which others took away meanwhile.
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Computed:
    """What came of it.

    Attributes:
        committed: The version, and `numUpdatedFiles`.
        left: Files that cannot be read.
    """

    committed: Committed
    left: tuple[Finding, ...] = ()


def files_without(snapshot: Snapshot) -> pa.Table:
    """The live files that readers can never skip, since nothing, or nothing that parses, is said of them."""
    texts = snapshot.files.column("stats")
    unsaid = texts.is_null()
    if "stats_parsed" in snapshot.files.column_names:
        unsaid = pc.and_(unsaid, snapshot.files.column("stats_parsed").is_null())
    damaged = pa.array([bool(t) and statistics_problem(t) is not None for t in texts.to_pylist()], pa.bool_())
    return snapshot.files.filter(pc.or_(pc.or_(unsaid, pc.fill_null(pc.equal(texts, ""), False)), damaged))


def compute_statistics(
    snapshot: Snapshot, engine: str, every: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> Computed:
    """Commits statistics of live files; no row is touched.

    Args:
        snapshot: The newest version.
        engine: For the history.
        every: Those of all files, not only of files that have none.
        retry: How often a commit is tried.

    Raises:
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Others were faster each time.
    """
    for _ in range(_ROUNDS - 1):
        try:
            return _compute(snapshot, engine, every, retry)
        except CommitConflict as error:
            if error.code != "concurrent-delete-delete":
                raise
            snapshot = refresh(snapshot)
    return _compute(snapshot, engine, every, retry)


def _compute(snapshot: Snapshot, engine: str, every: bool, retry: RetryPolicy) -> Computed:
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        files = snapshot.files if every else files_without(snapshot)
        described, left = _described(snapshot, files)
    if not described.num_rows:
        return Computed(Committed.nothing(snapshot.version), left)
    metrics = {"numUpdatedFiles": str(described.num_rows)}
    operation = Operation(OPERATION, {"predicate": "[]"}, metrics, engine)
    draft = Draft(Actions(added=described), ReadScope.nothing(), operation, snapshot.version)
    published = publish(snapshot.store, draft, snapshot, retry)
    told = Committed(published.entry.version, described.select(["path", "size"]), metrics, published.attempts)
    return Computed(told, left)


def _described(snapshot: Snapshot, files: pa.Table) -> tuple[pa.Table, tuple[Finding, ...]]:
    """The files with their statistics, those left out that cannot be read."""
    indexed = clustering_columns(snapshot.state.domains, snapshot.config)
    columns = plan_write(snapshot.config, snapshot.store.url, indexed=indexed).stats_columns
    parts, left = [FILES.empty_table()], list[Finding]()
    advance = counting("footers read", files.num_rows)
    for start in range(0, files.num_rows, _TOGETHER):
        part = files.slice(start, _TOGETHER)
        footers = map_parallel(partial(_read, snapshot, columns), data_paths(part).to_pylist(), advance=advance)
        left += [found for found in footers if isinstance(found, Finding)]
        is_read = pa.array([isinstance(found, FileFooter) for found in footers])
        read = [found for found in footers if isinstance(found, FileFooter)]
        parts.append(_with_stats(part.filter(is_read), read, snapshot))
    return pa.concat_tables(parts), tuple(summed_up("statistics", left))


def _with_stats(files: pa.Table, footers: Sequence[FileFooter], snapshot: Snapshot) -> pa.Table:
    may_have_vectors = "deletionVectors" in (snapshot.config.protocol.writer_features or ())
    stats = format_stats(footers, True if may_have_vectors else None)
    if may_have_vectors:
        # "wide": of rows that are deleted by now, too.
        stats = pc.if_else(has_vector(vectors_of(files)), format_stats(footers, False), stats)
    computed = {"stats": stats, "dataChange": pa.repeat(pa.scalar(False), files.num_rows)}
    arrays = [computed.get(f.name, files.column(f.name)).cast(f.type) for f in FILES]
    return pa.Table.from_arrays(arrays, schema=FILES)


def _read(snapshot: Snapshot, columns: Sequence[FooterColumn], path: str) -> FileFooter | Finding:
    try:
        directory, name = split_file(path) if is_absolute(path) else ("", path)
        store = snapshot.open_store(directory) if directory else snapshot.store
        return read_footer(store.open_input(name), columns, path)
    except AlluviumError as error:
        return Finding("warning", "statistics", f"its footer cannot be read: {error.message}", path)
