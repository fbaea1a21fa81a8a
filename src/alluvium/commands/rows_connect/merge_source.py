"""The source of a MERGE over Spark Connect: kept by the server, its columns known under names of ours, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as s
from pyspark.sql.connect.column import Column as ConnectColumn
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.plan import LogicalPlan, SubqueryAlias

from alluvium.commands.merge.merge_source import NUMBER, MergeSource
from alluvium.commands.own_reads import reads_by_server
from alluvium.commands.rows_connect.columns import renamed
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.failures import Unresolvable, analysis_problem
from alluvium.spark.kept import keep_rows
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.scan.connect_lane.connect_frame import plan_nodes
from alluvium.spark.sessions.session import analysed
from alluvium.spark.values.conversion import value_type

#: The source's name in our own reading of expressions, where the caller gave it none.
_SOURCE = "__alluvium_source"
_COPY = "__alluvium_new"
#: Nodes of a plan, as PySpark calls them, whose columns go on being those of the rows below.
_KEEPING = frozenset(
    (
        "Filter",
        "Drop",
        "Limit",
        "Offset",
        "Tail",
        "Sort",
        "Sample",
        "Deduplicate",
        "Hint",
        "Repartition",
        "RepartitionByExpression",
    )
)


@dataclass(frozen=True, slots=True)
class ServerSource(MergeSource):
    """A source, each of whose columns is there twice: under its own name, and under one that no other rows have.

    Attributes:
        fields: Of the source.
        alias: The caller's name for it; None: it has none.
        frames: Numbers of the frames that it was made of: columns of the caller say by them whose they are.
        given: The caller's frame.
    """

    fields: tuple[s.StructField, ...] = ()
    alias: str | None = None
    frames: frozenset[int] = frozenset()
    given: ConnectFrame | None = None

    @property
    def outputs(self) -> list[Column]:
        return [sf.col(copy_of(number)) for number in range(len(self.fields))]

    @property
    def name(self) -> str:
        """By which our own reading of expressions knows it."""
        return self.alias or _SOURCE

    @property
    def known(self) -> Struct:
        """Its columns, but for those of types that no table has."""
        found = []
        for f in self.fields:
            try:
                found.append(Field(f.name, value_type(f.dataType, f.name)))
            except InvalidRequest:
                continue
        return Struct(tuple(found))

    @property
    def no_rows(self) -> DataFrame:
        """None of its rows: the server says what it makes of expressions over them."""
        frame = self.rows.sparkSession.createDataFrame([], s.StructType(list(self.fields)))
        return named(with_copies(frame, self.fields), self.alias)

    def own_names(self, given: Column) -> Column:
        """An expression with columns of the caller's frames under names that mean them in a join."""
        return renamed(given, self._copy if self.frames else lambda text, frame: None)

    def _copy(self, text: str, frame: int) -> str | None:
        if frame not in self.frames:
            return None
        first, *rest = parse_column_path(text)
        places = [n for n, f in enumerate(self.fields) if f.name.lower() == first.lower()]
        # Of several columns of one name the server says that they are.
        if len(places) != 1:
            return None
        if self.given is not None and frame != self.given._plan._root_plan_id:
            self._ensure_has(self.given, text, frame)
        return ".".join((copy_of(places[0]), *map(quote, rest)))

    @staticmethod
    def _ensure_has(given: ConnectFrame, text: str, frame: int) -> None:
        """Refuses a column of a frame that the source was made of, where another one came under its name."""
        try:
            analysed(given.select(ConnectColumn(ColumnReference(text, frame))))
        except AnalysisException as error:
            raise Unresolvable(
                f"the source has not the column {text!r} of this frame: {analysis_problem(error)}",
                code="invalid-expression",
                column=text,
                hint="take the column from the source itself, or call it by the source's alias",
            ) from None


def copy_of(place: int) -> str:
    """The other name of a column of the source."""
    return f"{_COPY}{place}"


def with_copies(rows: DataFrame, fields: Sequence[s.StructField]) -> DataFrame:
    """Rows with each of their columns a second time: found by its place, for several may have one name."""
    copies = [copy_of(number) for number in range(len(fields))]
    own = [sf.col(copy).alias(f.name) for copy, f in zip(copies, fields, strict=True)]
    return rows.toDF(*copies).select(*own, *copies)


def named(rows: DataFrame, alias: str | None) -> DataFrame:
    """Rows under a name."""
    return rows if alias is None else rows.alias(alias)


def _alias_of(plan: LogicalPlan | None) -> str | None:
    """The name of some rows: what leaves rows or columns out, or moves them, leaves them their name."""
    while type(plan).__name__ in _KEEPING and plan is not None:
        plan = plan._child
    return plan._alias if isinstance(plan, SubqueryAlias) else None


def keep_server_source(source: DataFrame, snapshot: Snapshot) -> ServerSource:
    """Has a source computed once, by the first job that asks for it, and kept by the server.

    Args:
        source: The rows.
        snapshot: Of the table that they are merged into.

    Raises:
        OvertakenRead: It was read from a version of the table that cannot be compared with this one.
    """
    assert isinstance(source, ConnectFrame)
    reads, scope = reads_by_server(source, snapshot)
    fields = tuple(source.schema.fields)
    alias = _alias_of(source._plan)
    number = unused_name(NUMBER, [*source.columns, *snapshot.config.schema.names])
    numbered = with_copies(source, fields).withColumn(number, sf.monotonically_increasing_id())
    kept = named(keep_rows(numbered), alias)
    frames = frozenset(node._root_plan_id for node in plan_nodes(source))
    rows = kept.drop(number, *map(copy_of, range(len(fields))))
    return ServerSource(rows, kept, reads, scope, number, fields, alias, frames, source)
