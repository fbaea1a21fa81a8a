"""Rows of Spark Connect whose query asks for the time: the same query, with one moment in place of what asks.

The client sees functions that it has written down itself, and SQL texts. What is behind the name of a view asks when
the query is run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container
from typing import Any

import pyspark.sql.connect.proto as proto
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.plan import LogicalPlan

from alluvium.expr.sql.clocks import CLOCKS, Moment, UnsteadyText
from alluvium.spark.sessions.clone import messages_in

#: From an SQL text to the same at the moment, given the names that may be columns.
_AtMoment = Callable[[str, Container[str]], str]


class _AllNames:
    """Of a whole query nobody here knows which bare names are columns: all may be."""

    def __contains__(self, name: object) -> bool:
        return True


_ALL_NAMES = _AllNames()


class _StillPlan(LogicalPlan):
    """The rows of another plan, at one moment."""

    def __init__(self, child: LogicalPlan, moment: Moment, at_moment: _AtMoment) -> None:
        super().__init__(child)
        self._moment, self._at_moment = moment, at_moment

    def plan(self, session: SparkConnectClient) -> proto.Relation:
        """The other plan's message, changed."""
        assert self._child is not None
        relation = copy.deepcopy(self._child.plan(session))
        waiting: list[Any] = [relation]
        while waiting:
            message = waiting.pop()
            self._settle(message)
            waiting.extend(messages_in(message))
        return relation

    def _settle(self, message: Any) -> None:
        if isinstance(message, proto.Expression) and message.WhichOneof("expr_type") == "unresolved_function":
            self._settle_function(message)
        elif isinstance(message, proto.Expression.ExpressionString):
            message.expression = self._text(message.expression)
        elif isinstance(message, proto.SQL):
            message.query = self._text(message.query)

    def _settle_function(self, message: proto.Expression) -> None:
        function = message.unresolved_function
        name = function.function_name.lower()
        if name not in CLOCKS or function.arguments or function.is_user_defined_function:
            return
        if name in ("current_timestamp", "now"):
            message.literal.timestamp = self._moment.micros
        elif name in ("current_date", "curdate"):
            message.literal.date = self._moment.days
        elif name == "localtimestamp":
            message.literal.timestamp_ntz = self._moment.local_micros
        elif name == "unix_timestamp":
            message.literal.long = self._moment.micros // 1_000_000

    def _text(self, text: str) -> str:
        try:
            return self._at_moment(text, _ALL_NAMES)
        except UnsteadyText:
            # It asks when it is run.
            return text


def rows_at_moment(df: DataFrame, moment: Moment, at_moment: _AtMoment) -> DataFrame:
    """The same rows, at one moment, as far as the client sees what asks for it.

    Args:
        df: Of Spark Connect.
        moment: Which.
        at_moment: From an SQL text, and the names in lower case that may be columns, to the text at the moment.
    """
    assert isinstance(df, ConnectFrame)
    made = ConnectFrame(_StillPlan(df._plan, moment, at_moment), df._session)
    try:
        # Columns that nobody has named are called by what computes them.
        return made if made.columns == df.columns else df
    except AnalysisException:
        return df
