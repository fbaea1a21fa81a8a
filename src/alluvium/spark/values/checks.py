"""Conditions on every row of a job: raised by the job itself, told with the rows that break them."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import InvalidRequest
from alluvium.plan.checks import SHOWN_ROWS, Row
from alluvium.plan.write import Check
from alluvium.spark.jvm.failures import analysis_problem
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.sessions.session import analysed, is_connect
from alluvium.spark.values.table_sql import first_problem, table_columns

_VIOLATION = re.compile(r"alluvium-check (\d+) (.*?) end-of-check", re.DOTALL)
#: For how long more rows are looked for, once a job has failed on one.
_LOOK_UP_SECONDS = 10.0


def with_checks(df: DataFrame, checks: Sequence[Check]) -> DataFrame:
    """The rows, with filters on top that raise at the first row for which a check is not true.

    Raises:
        InvalidRequest: `"invalid-constraint"`: Spark cannot evaluate a check.
    """
    conditions = _conditions(df, checks)
    for index, (check, condition) in enumerate(zip(checks, conditions, strict=True)):
        message = sf.concat(sf.lit(f"alluvium-check {index} "), _values(df, check), sf.lit(" end-of-check"))
        # spark_partition_id() costs nothing and makes the condition nondeterministic: Spark may then neither move it
        # below a join or limit, where it would see rows that are not written, nor drop it.
        fails = (sf.spark_partition_id() >= 0) & sf.raise_error(message).cast("boolean")
        try:
            df = analysed(df.where(condition | fails))
        except AnalysisException as error:
            raise _not_evaluable(check, error) from error
    return df


def _conditions(df: DataFrame, checks: Sequence[Check]) -> list[Column]:
    """For each check what is true where it holds, and false where it is null."""
    texts = [_sound(check.table_sql) for check in checks if check.table_sql is not None]
    try:
        of_table = iter(table_columns(df, texts))
    except AnalysisException as error:
        position, cause = first_problem(df, texts) or (0, error)
        raise _not_evaluable([check for check in checks if check.table_sql is not None][position], cause) from cause
    return [sql_column(_sound(check.sql)) if check.table_sql is None else next(of_table) for check in checks]


def _sound(condition: str) -> str:
    return f"coalesce( ( {condition} ) , false )"


def _not_evaluable(check: Check, error: AnalysisException) -> InvalidRequest:
    return InvalidRequest(
        f"constraint {check.name!r} ({check.sql}) cannot be evaluated: {analysis_problem(error)}",
        code="invalid-constraint",
        hint="correct or drop the constraint",
    )


def _values(df: DataFrame, check: Check) -> Column:
    if not check.columns:
        return sf.lit("{}")
    # Names in a `Column` never meet Spark's parser.
    shown = (sf.col(_column(df, name)).cast("string").alias(name) for name in check.columns)
    return sf.to_json(sf.struct(*shown), {"ignoreNullFields": "false"})


def _column(df: DataFrame, name: str) -> str:
    return quote(name) if name in df.columns else ".".join(quote(part) for part in name.split("."))


def find_violation(text: str, checks: Sequence[Check]) -> tuple[Check, Row] | None:
    """The check that a job's error speaks of, and the values of the row that broke it."""
    match = _VIOLATION.search(text)
    # The data's own query may raise a text that looks like ours.
    if match is None or int(match[1]) >= len(checks):
        return None
    return checks[int(match[1])], _parse_row(match[2])


def _parse_row(text: str) -> Row:
    try:
        found: Row = msgspec.json.decode(text, type=dict[str, str | None])
        return found
    except msgspec.DecodeError:
        return {"row": text}


def examples(df: DataFrame, check: Check, first: Row) -> list[Row]:
    """Up to five different rows that break a check, the one that stopped the job first.

    A job ends at its first such row, so that the others are looked for by a query of their own: only once the job has
    failed, for a few seconds, and only for the message. Where the data's query gives other rows each time it runs, or
    fails now, the one row is all there is to show.
    """
    if not check.columns:
        return [first]
    found = [first]
    try:
        broken = df.where(~_conditions(df, [check])[0]).select(_values(df, check).alias("shown"))
        with _limited(df, _LOOK_UP_SECONDS):
            rows = broken.limit(4 * SHOWN_ROWS).collect()
    except (PySparkException, Py4JError):
        return found
    for row in rows:
        values = _parse_row(row["shown"])
        if values not in found and len(found) < SHOWN_ROWS:
            found.append(values)
    return found


@contextmanager
def _limited(df: DataFrame, seconds: float) -> Iterator[None]:
    """Cancels the jobs that this thread starts within, when their time is over."""
    if is_connect(df.sparkSession):
        with _limited_on_server(df.sparkSession, seconds):
            yield
        return
    context = df.sparkSession.sparkContext
    keys = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {key: context.getLocalProperty(key) for key in keys}
    group = f"alluvium-{uuid.uuid4()}"
    context.setJobGroup(group, "rows that break a constraint", interruptOnCancel=True)
    try:
        with _after(seconds, context.cancelJobGroup, group):
            yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type] # None removes it


@contextmanager
def _limited_on_server(spark: SparkSession, seconds: float) -> Iterator[None]:
    tag = f"alluvium-{uuid.uuid4()}"
    spark.addTag(tag)
    try:
        with _after(seconds, spark.interruptTag, tag):
            yield
    finally:
        spark.removeTag(tag)


@contextmanager
def _after(seconds: float, act: Callable[[str], object], name: str) -> Iterator[None]:
    """Acts on a name from another thread, unless the work within is over by then."""
    timer = threading.Timer(seconds, act, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
