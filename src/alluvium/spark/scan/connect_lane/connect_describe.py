"""What the scans below a DataFrame of Spark Connect will read: the client itself knows it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql.connect.plan import LogicalPlan

from alluvium.spark.scan.connect_lane.connect_frame import PlannedScan, plan_nodes
from alluvium.spark.scan.native_lane.describe import About, ScanDescription, describe_plan

_NOTED: WeakKeyDictionary[LogicalPlan, ScanDescription] = WeakKeyDictionary()


def describe_scans(df: DataFrame) -> tuple[ScanDescription, ...]:
    """The scans of our tables in the plan of a Connect DataFrame; the server is not asked."""
    found = (_describe(node) if isinstance(node, PlannedScan) else _NOTED.get(node) for node in plan_nodes(df))
    return tuple(scan for scan in found if scan is not None)


def note(df: DataFrame, description: ScanDescription) -> None:
    """Remembers what a DataFrame reads whose leaf is not ours, as long as that leaf lives."""
    _NOTED[next(plan_nodes(df))] = description


def _describe(scan: PlannedScan) -> ScanDescription:
    why = scan.table.why
    if scan.unknown:
        why += f"; no file is skipped by {', '.join(scan.unknown)}, which only Spark understands"
    return describe_plan(scan.choose(), About(scan.table.source.identity, why), "connect", scan.filters)
