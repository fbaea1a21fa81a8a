"""A DataFrame of Spark Connect whose files are chosen when its plan is sent, by all filters set on it until then.

On a classic session Spark's planner hands us the filters. Here nobody does; but the client builds the plan, and a node
of it may decide what it is at the moment when it is written for the server. `where` and `filter` on such a frame give
another whose node knows one filter more; any other call (`select`, `join`, ...) builds upon the node as it is. Spark
applies the filters to the rows in any case.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyspark.sql.connect.proto as proto
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.session import SparkSession as ConnectSession

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, Unknown, conjunction, walk
from alluvium.plan.ports import ScanSource
from alluvium.plan.scan import ScanPlan
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.connect_lane.connect import ensure_settings, read_plan
from alluvium.spark.scan.connect_lane.connect_failures import reading, watch
from alluvium.spark.scan.connect_lane.connect_sql import to_sql
from alluvium.spark.scan.connect_lane.marks import Mark, marked
from alluvium.spark.scan.native_lane.describe import About
from alluvium.spark.sessions.readings import read_in, reading_zone


@dataclass(frozen=True, slots=True)
class _Table:
    """What all nodes of one read have in common."""

    spark: SparkSession
    source: ScanSource
    schema: Struct
    why: str
    is_pinned: bool


@dataclass(slots=True)
class _Answer:
    """The files of a node, chosen once for each zone in which its filters are read: the server reads them anew."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    plans: dict[str | None, ScanPlan] = field(default_factory=dict)
    frames: dict[str | None, ConnectFrame] = field(default_factory=dict)


class PlannedScan(LogicalPlan):
    """A leaf of a Connect plan: the rows of a table version that may meet all of its filters."""

    def __init__(self, table: _Table, filters: tuple[str, ...] = ()) -> None:
        super().__init__(None)
        self.table = table
        #: As SQL; those that we did not understand stand in `unknown`.
        self.filters = filters
        self.unknown: tuple[str, ...] = ()
        self._answer = _Answer()

    def narrowed(self, condition: Column | str) -> PlannedScan:
        """The same node (to Spark, by its number) with one filter more."""
        text = condition if isinstance(condition, str) else to_sql(condition)
        made = copy.copy(self)
        made._answer = _Answer()
        # Any zone will do to see what is understood; in which it counts is known when the query is sent.
        parsed = None if text is None else self._parse(text, "UTC")
        if text is None or parsed is None or all(isinstance(node, Unknown) for node in walk(parsed)):
            made.unknown = (*self.unknown, text or str(condition))
            return made
        made.filters = (*self.filters, text)
        return made

    def _parse(self, text: str, zone: str) -> Expression | None:
        try:
            return read_in(parse_predicate(text, self.table.schema, zone), zone)
        except InvalidRequest:
            # Spark says what is wrong with it, in its own words, when the query is analysed.
            return None

    def _zone(self) -> str | None:
        """In which the server would read the filters now; None: it would not read them as we do."""
        return reading_zone(self.table.spark, self.filters) if self.filters else None

    def choose(self) -> ScanPlan:
        """The files, by the log alone."""
        return self._choose(self._zone())

    def _choose(self, zone: str | None) -> ScanPlan:
        with self._answer.lock:
            if zone not in self._answer.plans:
                parsed = () if zone is None else tuple(self._parse(text, zone) for text in self.filters)
                predicate = conjunction(tuple(p for p in parsed if p is not None))
                self._answer.plans[zone] = self.table.source.plan_scan(predicate)
            return self._answer.plans[zone]

    def plan(self, session: SparkConnectClient) -> proto.Relation:
        """The node for the server; the files are chosen at the first call."""
        zone = self._zone()
        plan = self._choose(zone)
        # The query may have been moved to another session than it was made in (`clone.with_settings`).
        ensure_settings(RuntimeConf(session), plan)
        with self._answer.lock:
            if zone not in self._answer.frames:
                with reading(plan.root):
                    frame = marked(read_plan(self.table.spark, plan), self._mark(zone))
                assert isinstance(frame, ConnectFrame)
                self._answer.frames[zone] = frame
            relation = self._answer.frames[zone]._plan.plan(session)
        # Columns that the user took from a frame name its node by this number.
        relation.common.plan_id = self._root_plan_id
        return relation

    def _mark(self, zone: str | None) -> Mark:
        about = About(self.table.source.identity, "", self.table.is_pinned)
        return Mark(about, () if zone is None else self.filters, zone)

    def print(self, indent: int = 0) -> str:
        """As `DataFrame.explain` of the client shows it."""
        return f"{' ' * indent}<PlannedScan identity='{self.table.source.identity}', filters='{self.filters}'>\n"


class PlannedFrame(ConnectFrame):
    """A DataFrame whose `where` and `filter` choose files."""

    def filter(self, condition: Column | str) -> DataFrame:
        """The rows for which a condition is true, from the files that may hold some."""
        filtered = super().filter(condition)
        scan = _scan_of(self._plan)
        if scan is None or not isinstance(condition, (Column, str)):
            return filtered
        assert isinstance(filtered, ConnectFrame)
        made = PlannedFrame(_with_scan(filtered._plan, scan.narrowed(condition)), self._session)
        made._cached_schema = filtered._cached_schema
        return made


def _scan_of(node: LogicalPlan) -> PlannedScan | None:
    """The node below filters only."""
    current: LogicalPlan | None = node
    while current is not None and not isinstance(current, PlannedScan):
        current = current._child
    return current


def _with_scan(node: LogicalPlan, scan: PlannedScan) -> LogicalPlan:
    if isinstance(node, PlannedScan):
        return scan
    made = copy.copy(node)
    assert node._child is not None
    made._child = _with_scan(node._child, scan)
    return made


def read_connect(spark: SparkSession, source: ScanSource, why: str, *, is_pinned: bool = False) -> DataFrame:
    """The rows of a table version as a DataFrame of Spark Connect.

    Columns are those of the plan's schema, in order, all nullable as for any Parquet source.

    Args:
        spark: A Connect session.
        source: The table version.
        why: Why this lane, for `explain`.
        is_pinned: Whether somebody has asked for just this version.
    """
    assert isinstance(spark, ConnectSession)
    plan = source.plan_scan(None)
    watch(spark, plan.root)
    frame = PlannedFrame(PlannedScan(_Table(spark, source, plan.schema, why, is_pinned)), spark)
    # Known without asking, so that naming a column does not choose files.
    frame._cached_schema = to_spark(nullable_schema(plan.schema))
    return frame


def plan_nodes(of: DataFrame | LogicalPlan) -> Iterator[LogicalPlan]:
    """The nodes of a plan, or of that of a Connect DataFrame, each once; nothing below ours."""
    seen: set[int] = set()
    waiting: list[object] = [of if isinstance(of, LogicalPlan) else getattr(of, "_plan", None)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (list, tuple)):
            waiting.extend(node)
        elif isinstance(node, LogicalPlan) and id(node) not in seen:
            seen.add(id(node))
            yield node
            if not isinstance(node, PlannedScan):
                waiting.extend(vars(node).values())
