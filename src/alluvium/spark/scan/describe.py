"""What the scans below a DataFrame will read: asked of Spark's own plan, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from alluvium.spark.gateway import JavaObject
from alluvium.spark.scan.index import PlannedFiles, columns_of, items, planned_files
from alluvium.spark.session import NATIVE, Lane

_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"


@dataclass(frozen=True, slots=True)
class ScanDescription:
    """One scan of a table.

    Attributes:
        identity: The source's identity: table, version, ...
        files: Files that the scan will read.
        size_bytes: Their total size.
        skipped: Files left out, by reason.
        filters: The filters that Spark handed over, as it prints them.
        lane: What reads the files.
        why: Why this lane.
    """

    identity: tuple[str, ...]
    files: int
    size_bytes: int
    skipped: tuple[tuple[str, int], ...]
    filters: tuple[str, ...]
    lane: Lane = "native"
    why: str = NATIVE


def describe_scans(df: DataFrame) -> tuple[ScanDescription, ...]:
    """The scans of our tables in the physical plan of a DataFrame; its jobs are not run."""
    plan = df._jdf.queryExecution().sparkPlan()
    leaves = plan.collectLeaves()
    nodes = (leaves.apply(i) for i in range(leaves.size()))
    return tuple(found for node in nodes for found in _describe(node))


def _describe(node: JavaObject) -> Iterator[ScanDescription]:
    if node.getClass().getName() != _SCAN:
        return
    index: PlannedFiles | None = planned_files(str(node.relation().location().toString()))
    if index is not None:
        handed_over = (*items(node.partitionFilters()), *items(node.dataFilters()))
        # What leaves out deleted rows is no filter of the user's.
        filters = tuple(str(f.sql()) for f in handed_over if index.internal_columns.isdisjoint(columns_of(f)))
        plan = index.plan(filters)
        # The other parts are scans of their own.
        own = [part for part in plan.parts if part.key in index.part_keys]
        sizes = [part.files.column("size") for part in own]
        files = sum(part.files.num_rows for part in own)
        size_bytes = sum(sum(column.to_pylist()) for column in sizes)
        yield ScanDescription(index.identity, files, size_bytes, plan.skipped, filters)
