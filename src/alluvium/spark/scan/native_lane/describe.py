"""What the scans below a DataFrame will read: asked of Spark's own plan, without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from alluvium.expr.tree import Expression
from alluvium.plan.ports import ScanSource
from alluvium.plan.scan import ScanPlan
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.scan.native_lane.index import PlannedFiles, columns_of, items, planned_files
from alluvium.spark.scan.native_lane.query_versions import whole_query
from alluvium.spark.scan.source import opener_of
from alluvium.spark.sessions.session import Lane, why_native

_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_WORKERS_TABLE = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"
_WORKERS_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
#: An option by which a scan of Python workers tells whoever asks what it is: JSON of an `About`.
ABOUT = "about"


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
    lane: Lane
    why: str


class About(msgspec.Struct, frozen=True):
    """What a scan of Python workers cannot tell by its files.

    Attributes:
        identity: The source's.
        why: Why it is for workers.
        is_pinned: Whether somebody has asked for just this version.
    """

    identity: tuple[str, ...]
    why: str
    is_pinned: bool = False


def describe_scans(df: DataFrame) -> tuple[ScanDescription, ...]:
    """The scans of our tables in the plans of a DataFrame; its jobs are not run."""
    with whole_query(df.sparkSession):
        return tuple(_described(df))


def _described(df: DataFrame) -> Iterator[ScanDescription]:
    execution = df._jdf.queryExecution()
    native = (found for node in items(execution.sparkPlan().collectLeaves()) for found in _describe(node))
    workers = (found for node in items(execution.analyzed().collectLeaves()) for found in _describe_workers(node))
    yield from native
    yield from workers


def filters_of_scans(df: DataFrame) -> tuple[tuple[ScanSource, Expression | None], ...]:
    """The source of each scan in the plans of a DataFrame, and what rows it asks for; None: all, as far as is known."""
    plan = df._jdf.queryExecution().sparkPlan()
    nodes = (node for tree in (plan, *items(plan.subqueriesAll())) for node in items(tree.collectLeaves()))
    return tuple((index.source, index.predicate(filters)) for index, filters in filter(None, map(_scan, nodes)))


def _scan(node: JavaObject) -> tuple[PlannedFiles, list[JavaObject]] | None:
    if node.getClass().getName() != _SCAN:
        return None
    index: PlannedFiles | None = planned_files(str(node.relation().location().toString()))
    if index is None:
        return None
    handed_over = (*items(node.partitionFilters()), *items(node.dataFilters()))
    # What leaves out deleted rows is no filter of the user's.
    return index, [f for f in handed_over if index.internal_columns.isdisjoint(columns_of(f))]


def _describe(node: JavaObject) -> Iterator[ScanDescription]:
    scan = _scan(node)
    if scan is not None:
        index, handed_over = scan
        filters = tuple(str(f.sql()) for f in handed_over)
        source, own = index.plan(handed_over)  # other parts are scans of their own
        yield describe_plan(own, About(source.identity, why_native([index.file_format])), "native", filters)


def about_workers(node: JavaObject) -> About | None:
    """What a relation of Python workers tells of itself; None: it is none of ours."""
    if node.getClass().getName() != _WORKERS_RELATION or node.table().getClass().getName() != _WORKERS_TABLE:
        return None
    options = dict(node.options().asCaseSensitiveMap())
    is_ours = opener_of(str(node.table().name())) is not None and ABOUT in options
    return msgspec.json.decode(options[ABOUT], type=About) if is_ours else None


def _describe_workers(node: JavaObject) -> Iterator[ScanDescription]:
    about = about_workers(node)
    if about is not None and (open_scan := opener_of(str(node.table().name()))) is not None:
        options = dict(node.options().asCaseSensitiveMap())
        filters = (options["where"],) if options.get("where") else ()
        yield describe_plan(open_scan(options).plan, about, "python", filters)


def describe_plan(plan: ScanPlan, about: About, lane: Lane, filters: tuple[str, ...]) -> ScanDescription:
    """What reading a plan comes to."""
    return ScanDescription(
        identity=about.identity,
        files=sum(part.files.num_rows for part in plan.parts),
        size_bytes=sum(pc.sum(part.files["size"]).as_py() or 0 for part in plan.parts),
        skipped=plan.skipped,
        filters=filters,
        lane=lane,
        why=about.why,
    )
