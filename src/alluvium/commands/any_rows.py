"""All rows of a source: by Spark's own readers and operators, or by Python workers where these do not do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource
from alluvium.portable.reader import read_batches
from alluvium.spark.scan.native_lane.native import read_native, unreadable
from alluvium.spark.scan.source import OpenedScan
from alluvium.spark.scan.worker_rows import read_by_tasks
from alluvium.spark.sessions.session import ensure_native, time_zone
from alluvium.storage.store import OpenStore


def read_any(
    spark: SparkSession,
    source: ScanSource,
    open_store: OpenStore | None,
    *,
    is_even: bool = False,
    reads_whole: bool = False,
) -> DataFrame:
    """All rows of a source; arguments as of `read_native`.

    Args:
        spark: The session.
        source: What to read.
        open_store: The table's objects for Python workers, who read files of formats that Spark has no reader of, and
            merge rows where it has no operator; None: they are not asked.
        is_even: As of `read_native`.
        reads_whole: As of `read_native`.

    Raises:
        InvalidRequest: `"no-jvm"`: a Spark Connect session.
        UnsupportedFeature: Spark does not do, and workers are not asked.
    """
    ensure_native(spark)
    plan = None if open_store is None else source.plan_scan(None)
    if open_store is None or plan is None or unreadable(plan) is None:
        return read_native(spark, source, is_even=is_even, reads_whole=reads_whole)
    scan = OpenedScan(plan, plan.schema.names, None, time_zone(spark))
    return read_by_tasks(spark, scan, _Reading(open_store))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a worker does with its group of files."""

    open_store: OpenStore

    def __call__(self, scan: OpenedScan) -> Iterator[pa.RecordBatch]:
        yield from read_batches(scan.plan, self.open_store(), self.open_store, scan.columns, scan.where, scan.time_zone)
