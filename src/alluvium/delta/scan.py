"""Snapshot plus predicate to ScanPlan: which files, and how columns come out of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.config import TableConfig
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.registry import SCAN_PASSES
from alluvium.delta.partitions import partition_constants
from alluvium.delta.snapshot import Snapshot
from alluvium.errors import CorruptTable
from alluvium.expr.prune import prune
from alluvium.expr.tree import Expression, column_paths, conjunction, conjuncts
from alluvium.plan.scan import FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.storage.elsewhere import ensure_same_side
from alluvium.storage.paths import decode_uri_paths, is_near


@dataclass(frozen=True, slots=True)
class Selection:
    """The live files that a predicate leaves, and how many it left out by partition and by statistics."""

    files: pa.Table
    by_partition: int
    by_statistics: int


def select_files(snapshot: Snapshot, where: Expression | None) -> Selection:
    """Skips files that cannot hold a row for which `where` is true."""
    files = snapshot.files
    if where is None or files.num_rows == 0:
        return Selection(files, 0, 0)
    # Partition values alone first: statistics need not be decoded for files that go anyway.
    partitions = {(name,) for name in snapshot.config.partition_columns}
    on_partitions = conjunction(tuple(c for c in conjuncts(where) if column_paths(c) <= partitions))
    kept = files if on_partitions is None else _prune(snapshot, files, on_partitions)
    by_partition = files.num_rows - kept.num_rows
    if on_partitions != where and kept.num_rows:
        sharper = _prune(snapshot, kept, where)
        return Selection(sharper, by_partition, kept.num_rows - sharper.num_rows)
    return Selection(kept, by_partition, 0)


def _prune(snapshot: Snapshot, files: pa.Table, where: Expression) -> pa.Table:
    statistics = snapshot.statistics(files)
    # Announced together, the columns are decoded in one pass over the statistics' text.
    statistics.prepare(column_paths(where))
    return files.filter(prune(where, statistics, snapshot.time_zone))


def plan_scan(snapshot: Snapshot, where: Expression | None = None, metadata_columns: tuple[str, ...] = ()) -> ScanPlan:
    """How to read the rows of a snapshot for which `where` may be true, with some columns beside those of its schema.

    "The path is a URI as specified by RFC 2396 URI Generic Syntax, which needs to be decoded to get the data file
    path."
    """
    config = snapshot.config
    selection = select_files(snapshot, where)
    output = tuple(
        OutputColumn(
            f.name,
            f.type,
            f.nullable,
            FileConstant(f.name, f.type) if f.name in config.partition_columns else Physical((f.name,), f.type),
        )
        for f in config.schema.fields
    )
    files = scan_files(selection.files, config, snapshot.time_zone)
    if not is_near(snapshot.store.url):
        local = pc.match_substring_regex(files["path"], "(?i)^(file|memory):/")
        for path in files["path"].filter(local).slice(0, 1).to_pylist():
            ensure_same_side(snapshot.store.url, path)
    plan = ScanPlan(
        root=snapshot.store.url,
        parts=(ScanPart("files", files, "parquet", config.data_columns, output),),
        schema=config.schema,
        partition_columns=config.partition_columns,
        skipped=(("partition", selection.by_partition), ("statistics", selection.by_statistics)),
    )
    context = ScanContext(
        config,
        selection.files,
        snapshot.store,
        snapshot.time_zone,
        snapshot.open_store,
        metadata_columns,
        snapshot.version,
    )
    for edit in SCAN_PASSES:
        plan = edit(plan, context)
    return plan


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
