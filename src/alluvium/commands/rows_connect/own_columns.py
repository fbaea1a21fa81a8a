"""Columns of frames that a table has handed out over Spark Connect; see `spark.statements.own_columns`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

from alluvium.commands.rows_connect.columns import renamed
from alluvium.spark.naming.names import quote
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
        """The expression with the table's own columns called by name; SQL text is as it was."""
        if isinstance(given, str) or not self._frames:
            return given
        return renamed(given, lambda text, frame: f"{quote(name[-1])}.{text}" if frame in self._frames else None)
