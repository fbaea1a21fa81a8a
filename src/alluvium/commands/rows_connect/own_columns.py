"""Columns of frames that a table has handed out over Spark Connect; see `spark.statements.own_columns`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

from alluvium.commands.rows_connect.columns import renamed
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.connect_lane.connect_frame import plan_nodes
from alluvium.spark.statements.own_columns import OwnColumns
from alluvium.spark.statements.resolve import Qualifier


@dataclass(slots=True)
class ServerColumns(OwnColumns):
    """What one table has handed out: a column says by a number which frame it was taken from."""

    _frames: set[int] = field(default_factory=set)

    def remember(self, rows: DataFrame) -> None:
        """Takes the columns of a frame for the table's own."""
        assert isinstance(rows, ConnectFrame)
        self._frames.add(rows._plan._root_plan_id)

    def by_name(
        self, spark: SparkSession, given: Column | str, name: Qualifier, others: DataFrame | None = None
    ) -> Column | str:
        """The expression with the table's own columns called by name; SQL text is as it was.

        Raises:
            InvalidRequest: `"invalid-expression"`: a column is the table's and the others' at once.
        """
        if isinstance(given, str) or not self._frames:
            return given
        taken = frozenset(n._root_plan_id for n in plan_nodes(others)) if others is not None else frozenset()

        def named(text: str, frame: int) -> str | None:
            if frame not in self._frames:
                return None
            if frame in taken:
                raise Unresolvable(
                    f"the column {text!r} is one of the table's and one of the source's, which was read from it",
                    code="invalid-expression",
                    column=text,
                    hint='give both an alias, and name the column by it: "t.id = s.id"',
                )
            return f"{quote(name[-1])}.{text}"

        return renamed(given, named)
