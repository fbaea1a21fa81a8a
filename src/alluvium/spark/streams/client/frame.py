"""A streamed table as a leaf of a Connect plan: what it reads is said anew for each batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

import pyspark.sql.connect.proto as proto
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.session import SparkSession as ConnectSession

from alluvium.errors import UnsupportedFeature
from alluvium.plan.ports import ScanSource, StreamSource
from alluvium.spark.naming.names import nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.connect_lane.connect_frame import plan_nodes, read_connect
from alluvium.spark.scan.connect_lane.explained import analysed_tree
from alluvium.spark.streams.client.printed_plan import kept_by

#: What Spark says of a stream that is asked for rows.
_ASKED = "Queries with streaming sources must be executed with writeStream.start()"


class StreamedScan(LogicalPlan):
    """A leaf of a Connect plan: the rows of the batch that is being written, and otherwise none that can be had."""

    def __init__(self, spark: SparkSession, stream: StreamSource, shape: Callable[[DataFrame], DataFrame]) -> None:
        super().__init__(None)
        self.spark = spark
        self.stream = stream
        self._shape = shape
        #: Of the thread that builds a batch, its rows: whoever else asks for rows is refused meanwhile.
        self._building = threading.local()
        self._outside = _outside(spark, stream, self.mark)

    @property
    def mark(self) -> str:
        """A word that stands in what the server prints of a plan, for this leaf alone."""
        return f"alluvium-stream-{self._root_plan_id}."

    @contextmanager
    def showing(self, sources: Sequence[ScanSource]) -> Iterator[None]:
        """Within, plans are built with the rows of these."""
        frames = [self._shape(read_connect(self.spark, source, "a batch of a stream")) for source in sources]
        self._building.rows = reduce(DataFrame.union, frames) if frames else _nothing(self.spark, self.stream)
        try:
            yield
        finally:
            self._building.rows = None

    def plan(self, session: SparkConnectClient) -> proto.Relation:
        """The node for the server."""
        now: DataFrame | None = getattr(self._building, "rows", None)
        shown = self._outside if now is None else now
        assert isinstance(shown, ConnectFrame)
        relation = shown._plan.plan(session)
        # Columns that the user took from a frame name its node by this number.
        relation.common.plan_id = self._root_plan_id
        return relation

    def print(self, indent: int = 0) -> str:
        """As `DataFrame.explain` of the client shows it."""
        return f"{' ' * indent}<StreamedScan {self.stream.name}>\n"


class _Fixed(LogicalPlan):
    """A plan as it was built."""

    def __init__(self, relation: proto.Relation) -> None:
        super().__init__(None)
        self._relation = relation
        self._root_plan_id = relation.common.plan_id

    def plan(self, session: SparkConnectClient) -> proto.Relation:
        return self._relation

    def print(self, indent: int = 0) -> str:
        return f"{' ' * indent}<a batch of a stream>\n"


def _nothing(spark: SparkSession, stream: StreamSource) -> DataFrame:
    return spark.createDataFrame([], to_spark(nullable_schema(stream.schema)))


def _outside(spark: SparkSession, stream: StreamSource, mark: str) -> DataFrame:
    """The stream's columns; whoever asks for their rows is told what Spark tells."""
    refuses = sf.assert_true(sf.lit(False), sf.lit(f"{_ASKED} [{mark}]")).isNull()
    schema = to_spark(nullable_schema(stream.schema))
    columns = [sf.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields]
    return _nothing(spark, stream).union(spark.range(1).where(refuses).select(*columns))


def read_stream_by_client(
    spark: SparkSession, stream: StreamSource, shape: Callable[[DataFrame], DataFrame] | None = None
) -> DataFrame:
    """The rows of a stream over Spark Connect, for queries to be started of; arguments as of `read_stream`."""
    assert isinstance(spark, ConnectSession)
    frame = ConnectFrame(StreamedScan(spark, stream, shape or (lambda rows: rows)), spark)
    frame._cached_schema = to_spark(nullable_schema(stream.schema))
    return frame


def scans_of(plan: LogicalPlan) -> list[StreamedScan]:
    """The streams of ours below a plan."""
    return [node for node in plan_nodes(plan) if isinstance(node, StreamedScan)]


def batch_frame(spark: SparkSession, plan: LogicalPlan, scan: StreamedScan, sources: Sequence[ScanSource]) -> DataFrame:
    """A query with the rows of one batch in the place of its stream."""
    assert isinstance(spark, ConnectSession)
    with scan.showing(sources):
        relation = plan.plan(spark.client)
        fixed = proto.Relation()
        fixed.CopyFrom(relation)
    return ConnectFrame(_Fixed(fixed), spark)


def ensure_stateless(spark: SparkSession, plan: LogicalPlan, scan: StreamedScan) -> None:
    """Refuses a query whose rows depend on more than one batch.

    Raises:
        UnsupportedFeature: `"stateful-stream"`: it has such a node, or the server does not tell.
        PySparkException: Spark refuses the query.
    """
    assert isinstance(spark, ConnectSession)
    # Names of columns stand before the tree, and may have lines of their own.
    named = ConnectFrame(plan, spark).select(sf.lit(0).alias("nothing"))
    whole = proto.Plan()
    whole.root.CopyFrom(named._plan.plan(spark.client))
    tree = analysed_tree(str(spark.client.explain_string(whole, "extended")))
    found = None if tree is None else kept_by(tree, scan.mark)
    if found == "":
        return
    raise UnsupportedFeature(
        "a query whose rows depend on more than one batch needs the driver's JVM, which a session of Spark Connect has "
        f"not: {found or 'what the server makes of it is not told'}",
        code="stateful-stream",
        features=("streams",),
        hint="run the query on a classic session; or compute it in foreachBatch, from the table that batches go to",
    )
