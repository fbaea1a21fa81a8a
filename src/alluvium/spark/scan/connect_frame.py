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
from alluvium.expr.parse import parse_predicate
from alluvium.expr.tree import Expression, Unknown, conjunction, walk
from alluvium.plan.ports import ScanSource
from alluvium.plan.scan import ScanPlan
from alluvium.schema.types import Struct
from alluvium.spark.scan.connect import ensure_settings, read_plan
from alluvium.spark.scan.connect_failures import reading, watch
from alluvium.spark.scan.connect_sql import to_sql
from alluvium.spark.scan.names import nullable_schema
from alluvium.spark.session import time_zone
from alluvium.spark.types import to_spark


@dataclass(frozen=True, slots=True)
class _Table:
    """What all nodes of one read have in common."""

    spark: SparkSession
    source: ScanSource
    schema: Struct
    time_zone: str
    why: str


@dataclass(slots=True)
class _Answer:
    """The files of a node, chosen once."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    plan: ScanPlan | None = None
    frame: ConnectFrame | None = None


class PlannedScan(LogicalPlan):
    """A leaf of a Connect plan: the rows of a table version that may meet all of its filters."""

    def __init__(self, table: _Table, filters: tuple[str, ...] = ()) -> None:
        super().__init__(None)
        self.table = table
        #: As SQL; those that we did not understand stand in `unknown`.
        self.filters = filters
        self.unknown: tuple[str, ...] = ()
        self.predicate: Expression | None = None
        self._answer = _Answer()

    def narrowed(self, condition: Column | str) -> PlannedScan:
        """The same node (to Spark, by its number) with one filter more."""
        text = condition if isinstance(condition, str) else to_sql(condition)
        made = copy.copy(self)
        made._answer = _Answer()
        parsed = None if text is None else self._parse(text)
        if text is None or parsed is None or all(isinstance(node, Unknown) for node in walk(parsed)):
            made.unknown = (*self.unknown, text or str(condition))
            return made
        made.filters = (*self.filters, text)
        made.predicate = conjunction(tuple(p for p in (self.predicate, parsed) if p is not None))
        return made

    def _parse(self, text: str) -> Expression | None:
        try:
            return parse_predicate(text, self.table.schema, self.table.time_zone)
        except InvalidRequest:
            # Spark says what is wrong with it, in its own words, when the query is analysed.
            return None

    def choose(self) -> ScanPlan:
        """The files, by the log alone."""
        with self._answer.lock:
            if self._answer.plan is None:
                self._answer.plan = self.table.source.plan_scan(self.predicate)
            return self._answer.plan

    def plan(self, session: SparkConnectClient) -> proto.Relation:
        """The node for the server; the files are chosen at the first call."""
        plan = self.choose()
        # The query may have been moved to another session than it was made in (`clone.with_settings`).
        ensure_settings(RuntimeConf(session), plan)
        with self._answer.lock:
            if self._answer.frame is None:
                with reading(plan.root):
                    frame = read_plan(self.table.spark, plan)
                assert isinstance(frame, ConnectFrame)
                self._answer.frame = frame
            relation = self._answer.frame._plan.plan(session)
        # Columns that the user took from a frame name its node by this number.
        relation.common.plan_id = self._root_plan_id
        return relation

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


def read_connect(spark: SparkSession, source: ScanSource, why: str) -> DataFrame:
    """The rows of a table version as a DataFrame of Spark Connect.

    Columns are those of the plan's schema, in order, all nullable as for any Parquet source.

    Args:
        spark: A Connect session.
        source: The table version.
        why: Why this lane, for `explain`.
    """
    assert isinstance(spark, ConnectSession)
    plan = source.plan_scan(None)
    watch(spark, plan.root)
    frame = PlannedFrame(PlannedScan(_Table(spark, source, plan.schema, time_zone(spark), why)), spark)
    # Known without asking, so that naming a column does not choose files.
    frame._cached_schema = to_spark(nullable_schema(plan.schema))
    return frame


def plan_nodes(df: DataFrame) -> Iterator[LogicalPlan]:
    """The nodes of the plan of a Connect DataFrame, each once; nothing below ours."""
    seen: set[int] = set()
    waiting: list[object] = [getattr(df, "_plan", None)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (list, tuple)):
            waiting.extend(node)
        elif isinstance(node, LogicalPlan) and id(node) not in seen:
            seen.add(id(node))
            yield node
            if not isinstance(node, PlannedScan):
                waiting.extend(vars(node).values())
