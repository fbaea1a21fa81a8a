"""What holds for one statement, however many jobs it takes and however often it is carried out: the time that its
expressions see, and whether it may be carried out again at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Container, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from alluvium.expr.sql.clocks import Moment, UnsteadyText, at_moment
from alluvium.spark.jvm.expression_classes import PACKAGE
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.scan.native_lane.query_versions import MarkedStatement, marked_statement
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.statements.subqueries import subqueries_of, with_plans
from alluvium.spark.statements.table_reads import TableRead, reads_within

#: Every expression of Spark that asks for the time; others are made of these. The casts are those of texts that are
#: times to Spark, as it makes them itself of `ts < 'now'`.
_CLOCKS = (
    "current_timestamp()", "current_date()", "localtimestamp()", "now()",
    *(
        f"cast('{name}' as {kind})"
        for name in ("now", "today", "yesterday", "tomorrow") for kind in ("date", "timestamp_ltz", "timestamp_ntz")
    ),
)  # fmt: skip
#: The same for a session that shows no literals.
_MOMENT = (
    "unix_micros(current_timestamp())", "unix_date(current_date())",
    "date_format(localtimestamp(), 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
)  # fmt: skip


@dataclass(slots=True)
class Statement:
    """One statement of a caller.

    Spark computes the time anew for each query. A statement of several jobs would see several times: rows that were not
    yet due when files were chosen would be due when these are written.

    Attributes:
        spark: The session.
        own: The table that it is about.
        is_repeatable: Whether all expressions so far give the same values for the same rows.
        reads: What subqueries of expressions so far have read of the table itself, by the scans' identities.
        queries: By which frames that follow their tables know its queries; None: over Spark Connect.
    """

    spark: SparkSession
    own: OwnTable
    is_repeatable: bool = True
    reads: dict[tuple[str, ...] | None, TableRead] = field(default_factory=dict)
    queries: MarkedStatement | None = None
    _times: JavaObject | None = None
    _moment: Moment | None = None

    def stand_on(self, version: int, *, is_planned: bool = False) -> None:
        """Has frames that follow the table show its base, which may be another each time that it is carried out.

        Args:
            version: The base.
            is_planned: Whether the query has been planned that the rows come from: then they show what it has read.
        """
        if self.queries is None:
            return
        seen = self.queries.seen_before(self.own.url) if is_planned else None
        self.queries.stand_on(self.own.url, version if seen is None else seen)

    def settle(self, expression: JavaObject, plan: JavaObject) -> JavaObject:
        """The expression with this statement's time in place of whatever asks for it.

        Args:
            expression: Catalyst's, resolved.
            plan: The projection that it stands in.
        """
        self.is_repeatable = self.is_repeatable and bool(expression.deterministic())
        has_subquery = bool(java_of(self.spark).subquery_expression.hasSubquery(expression))
        if has_subquery:
            found = reads_within(self.spark, plan, self.own)
            self.reads |= {None if read is None else read.identity: read for read in found}
        if not asks_for_time(self.spark, plan):
            return expression
        times = self._known_times()
        if has_subquery:
            within = [(s, s.plan().transformAllExpressionsWithSubqueries(times)) for s in subqueries_of(expression)]
            expression = with_plans(java_of(self.spark), expression, within)
        return expression.transformDown(times)

    def _known_times(self) -> JavaObject:
        """A Scala map, hence a partial function, from clocks to literals."""
        if self._times is None:
            java = java_of(self.spark)
            plan = self.spark.sql(f"select {', '.join(_CLOCKS)}")._jdf.queryExecution().analyzed()
            clocks, settled_plan = plan.expressions(), _at_once(self.spark, plan)
            literals = settled_plan.expressions()
            known = java.jvm.java.util.HashMap()
            for n in range(len(_CLOCKS)):
                known.put(clocks.apply(n).child(), literals.apply(n).child())
            micros, days, local = (int(literals.apply(n).child().value()) for n in range(3))
            self._moment = Moment(micros, days, local)
            self._times = java.python_utils.toScalaMap(known)
        return self._times

    @property
    def moment(self) -> Moment:
        """The statement's time, for a session of either kind."""
        if self._moment is None and is_connect(self.spark):
            micros, days, local = self.spark.sql(f"select {', '.join(_MOMENT)}").collect()[0]
            self._moment = Moment.of(micros, days, local)
        elif self._moment is None:
            self._known_times()
        assert self._moment is not None
        return self._moment

    def at_moment(self, text: str, columns: Container[str]) -> str:
        """An SQL text with this statement's time in place of whatever asks for it.

        Args:
            text: An expression.
            columns: Names that it may mean, in lower case.

        Raises:
            UnsteadyText: As of `expr.sql.clocks.at_moment`.
        """
        return at_moment(text, lambda: self.moment, columns, self._is_own)

    def _is_own(self, name: str) -> bool:
        return str(self.spark.catalog.getFunction(name).className).startswith(PACKAGE)

    def rows_at_moment(self, df: DataFrame) -> DataFrame:
        """The same rows, with this statement's time in place of what asks for it in their query, where something else
        of the statement has asked for it already.

        What is in Spark's cache stays as it is.

        Args:
            df: Of a session of either kind.
        """
        if self._moment is None:
            return df
        if is_connect(self.spark):
            # Loaded by name: it needs packages that a classic session does without.
            connect = importlib.import_module("alluvium.spark.statements.connect_clocks")
            made: DataFrame = connect.rows_at_moment(df, self.moment, self.at_moment)
            return made
        execution = df._jdf.queryExecution()
        if not asks_for_time(self.spark, execution.analyzed()):
            return df
        still = execution.withCachedData().transformAllExpressionsWithSubqueries(self._known_times())
        return DataFrame(java_of(self.spark).dataset.ofRows(self.spark._jsparkSession, still), self.spark)


def asks_for_time(spark: SparkSession, plan: JavaObject) -> bool:
    """Whether something in a plan of Catalyst is another value in each query that computes it.

    Args:
        spark: A classic session.
        plan: Analysed.
    """
    return not _at_once(spark, plan).fastEquals(plan)


def foldable(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """A plan of Catalyst the constants of which can be computed: texts that Spark casts to times only in a query, as of
    `ts < 'now'`, are the statement's time.

    Args:
        spark: A classic session.
        plan: Analysed.
    """
    special, statement = java_of(spark).special_datetime_values, _current.get()
    if special.apply(plan).fastEquals(plan):
        return plan
    return special.apply(plan if statement is None else plan.transformExpressions(statement._known_times()))


def _at_once(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """The plan with the present time in it."""
    java = java_of(spark)
    return java.special_datetime_values.apply(java.compute_current_time.apply(plan))


_current: ContextVar[Statement | None] = ContextVar("statement", default=None)


@contextmanager
def one_statement(spark: SparkSession, own: OwnTable) -> Iterator[Statement]:
    """All expressions that are resolved within belong to one statement about a table."""
    with nullcontext() if is_connect(spark) else marked_statement(spark) as queries:
        statement = Statement(spark, own, queries=queries)
        token = _current.set(statement)
        try:
            yield statement
        finally:
            _current.reset(token)


def current_statement() -> Statement | None:
    """The statement that is being carried out; None: none is."""
    return _current.get()


def reads_so_far() -> tuple[TableRead, ...]:
    """What the statement that is being carried out has read of its table beside the rows that it is about."""
    statement = _current.get()
    return () if statement is None else tuple(statement.reads.values())


def settled(expression: JavaObject, plan: JavaObject) -> JavaObject:
    """The expression as the statement that is being carried out means it; see `Statement.settle`."""
    statement = _current.get()
    return expression if statement is None else statement.settle(expression, plan)


def read_once(text: str) -> str:
    """An expression in which times that Spark makes when it reads the text, as `timestamp'now'`, are the statement's.

    Others that it asks for are settled when it is resolved.
    """
    statement = _current.get()
    try:
        return text if statement is None else at_moment(text, lambda: statement.moment, only_literals=True)
    except UnsteadyText:
        return text


def settled_text(text: str, columns: Container[str]) -> str:
    """The same for a text, where something else of the statement has asked for its time already.

    Args:
        text: An expression.
        columns: Names that it may mean, in lower case.
    """
    statement = _current.get()
    try:
        return text if statement is None or statement._moment is None else statement.at_moment(text, columns)
    except UnsteadyText:
        return text
