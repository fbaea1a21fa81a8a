"""What Spark makes of an SQL text before it is kept: its type, its columns, and the rows for which it is not true."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as s

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.clocks import UnsteadyText
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, Unknown
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.jvm.failures import Unresolvable, analysis_problem
from alluvium.spark.jvm.filters import calls_users
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.names import nullable_schema, plain, quote, unused_name
from alluvium.spark.naming.types import from_spark, to_spark
from alluvium.spark.scan.connect_lane.explained import analysed_tree, is_over_rows, is_without_subquery
from alluvium.spark.sessions.active import active
from alluvium.spark.sessions.readings import read_in, reading_zone
from alluvium.spark.sessions.session import analysed, ensure_native, is_connect, time_zone
from alluvium.spark.statements.resolve import condition_tree, named_rows, resolve_condition
from alluvium.spark.statements.statement import asks_for_time, current_statement

_TABLE = "__alluvium_table"
#: Rows shown in an error.
_SHOWN = 5
#: How Spark prints the cast of a text that is a time only until it is computed again.
_CAST_TO_TIME = re.compile(r"cast\(\s*(?:now|today|yesterday|tomorrow)\b[^()]* as (?:date|timestamp)", re.IGNORECASE)


def ensure_condition(df: DataFrame, name: str, condition: str) -> None:
    """Refuses what is no condition on single rows.

    Raises:
        InvalidRequest: `"invalid-constraint"`.
    """
    try:
        found = df.select(sf.expr(condition).alias("c")).schema["c"].dataType
        df.where(condition)
    except (AnalysisException, ParseException) as error:
        raise InvalidRequest(
            f"the constraint {name!r} ({condition}) is not a condition on rows: {_first_line(error)}",
            code="invalid-constraint",
        ) from None
    if not isinstance(found, s.BooleanType):
        raise InvalidRequest(
            f"the constraint {name!r} ({condition}) is {found.simpleString()}, not boolean", code="invalid-constraint"
        )


def ensure_holds(df: DataFrame, name: str, condition: str, columns: tuple[str, ...]) -> None:
    """Refuses a condition that is not true for some row.

    Args:
        df: The rows.
        name: Of the constraint, for the error.
        condition: Boolean SQL over the rows' columns.
        columns: Those that it names, to be shown.

    Raises:
        InvalidRequest: `"constraint-violated"`, with the number of rows and some of them.
    """
    bad = df.where(~sf.coalesce(sf.expr(condition), sf.lit(False)))
    count = bad.count()
    if count == 0:
        return
    values = sf.struct(*(sf.col(quote(name)) for name in columns))
    shown = bad.select(sf.to_json(values, {"ignoreNullFields": "false"}).alias("r"))
    rows = [str(row["r"]) for row in shown.limit(_SHOWN).collect()] if columns else []
    raise InvalidRequest(
        f"{count} rows of the table violate the constraint {name!r} ({condition})"
        + (f": {', '.join(rows)}" if rows else ""),
        code="constraint-violated",
        hint="nothing was changed; correct or delete these rows first",
    )


def expression_type(spark: SparkSession, schema: Struct, sql: str, column: str) -> DataType:
    """The type of an expression over columns, which gives one value for equal columns.

    Raises:
        InvalidRequest: `"invalid-expression"`: it names unknown columns, is an aggregate, or not deterministic.
    """
    ensure_native(spark)
    rows = spark.createDataFrame([], to_spark(nullable_schema(schema)))
    try:
        selected = rows.select(sf.expr(sql).alias("c"))
    except (AnalysisException, ParseException) as error:
        raise _invalid(sql, column, _first_line(error)) from None
    plan = selected._jdf.queryExecution().analyzed()
    if str(plan.nodeName()) != "Project":
        raise _invalid(sql, column, "it is computed from several rows, or yields several")
    if not plan.expressions().head().deterministic():
        raise _invalid(sql, column, "it is not deterministic")
    return from_spark(selected.schema["c"].dataType)


def _invalid(sql: str, column: str, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"the column cannot be generated as {sql}: {problem}", code="invalid-expression", column=column
    )


def _first_line(error: Exception) -> str:
    return str(error).split("SQLSTATE")[0].splitlines()[0].strip().rstrip(".")


def steady_condition(
    spark: SparkSession, sql: str, schema: Struct, what: str, rows: Callable[[], DataFrame] | None = None
) -> tuple[str, Expression]:
    """A condition that several jobs evaluate, with the time of the statement that is being carried out in its place.

    Args:
        spark: A session, classic or of Connect.
        sql: The condition.
        schema: The columns.
        what: For errors: `"the condition of replaceWhere"`.
        rows: As of `text_condition`.

    Returns:
        The text that jobs shall evaluate, and what Spark makes of it, as far as we understand it.

    Raises:
        InvalidRequest: As of `text_condition`; or it asks for the time in a way that would give each job another one.
    """
    statement = current_statement()
    assert statement is not None, "whoever evaluates a condition in several jobs says that they are one statement"
    try:
        text = statement.at_moment(sql, {f.name.lower() for f in schema.fields})
    except UnsteadyText as problem:
        raise unsteady(what, f" ({problem})") from None
    return text, text_condition(spark, text, schema, what, rows, is_steady=True)


def unsteady(what: str, how: str = "") -> InvalidRequest:
    """The error that something would be another time in each job of one statement."""
    return Unresolvable(
        f"{what} cannot be used: it asks for the time in a way that gives each job another one{how}",
        code="invalid-expression",
        hint="say current_timestamp() or current_date(), or write the time itself",
    )


def text_condition(
    spark: SparkSession,
    sql: str,
    schema: Struct,
    what: str,
    rows: Callable[[], DataFrame] | None = None,
    *,
    is_steady: bool = False,
) -> Expression:
    """What Spark makes of a condition on a table's columns, as far as we understand it.

    Over Connect the text is read here, unless settings of the session give it another meaning.

    Args:
        spark: A session, classic or of Connect.
        sql: The condition.
        schema: The columns.
        what: For errors: `"the condition of replaceWhere"`.
        rows: Makes the frame of the table's rows, of a classic session; None: there is none.
        is_steady: Whether it must not ask for the time.

    Raises:
        InvalidRequest: It is not a condition on single rows, or not deterministic.
    """
    if is_connect(spark):
        return _server_condition(spark, sql, schema, what, is_steady=is_steady)
    frame = spark.createDataFrame([], to_spark(nullable_schema(schema))) if rows is None else rows()
    frame = named_rows(frame, (_TABLE,))
    try:
        found = resolve_condition(frame, sql, what)
    except InvalidRequest:
        # Where we see what is wrong with it, we say it better.
        parse_predicate(sql, schema, time_zone(spark))
        raise
    if is_steady and asks_for_time(spark, found.plan):
        raise unsteady(what)
    return condition_tree(frame, found, schema, (_TABLE,))


def _server_condition(spark: SparkSession, sql: str, schema: Struct, what: str, *, is_steady: bool) -> Expression:
    zone, problem = reading_zone(spark, (sql,)), None
    found: Expression = Unknown(sql)
    if zone is not None:
        try:
            found = read_in(parse_predicate(sql, schema, zone), zone)
        except InvalidRequest as error:
            problem = error
    try:
        condition = _ensure_on_rows(spark, sql, schema, what)
    except InvalidRequest as error:
        # Where we see what is wrong with it, we say it better. What we do not know may be a variable of the session.
        raise problem or error from None
    if is_steady:
        ensure_steady(condition, what)
    return found


def ensure_steady(condition: str, what: str) -> None:
    """Refuses what the server will compute anew in each job: a text that it casts to a time (`ts < 'now'`).

    Args:
        condition: As the server prints it (`ensure_on_rows`).
        what: For errors.
    """
    if _CAST_TO_TIME.search(condition):
        raise unsteady(what)


def _ensure_on_rows(spark: SparkSession, sql: str, schema: Struct, what: str) -> str:
    """Over Connect: a text as a condition on rows of a table; see `ensure_on_rows`."""
    rows = spark.createDataFrame([], to_spark(nullable_schema(schema)))
    return ensure_on_rows(rows, sf.expr(f"({sql})"), what, is_over_rows)


def ensure_on_rows(
    rows: DataFrame,
    condition: Column,
    what: str,
    fits: Callable[[tuple[str, ...], str], bool] = is_without_subquery,
) -> str:
    """Over Connect: what `resolve_condition` sees in the tree, asked of the server; the condition as it prints it.

    Args:
        rows: Whose columns it may name. They are analysed, not read.
        condition: The condition.
        what: For errors: `"the condition of DELETE"`.
        fits: What the tree must be like.

    Raises:
        InvalidRequest: It is not a condition on single rows, or not deterministic.
    """
    asked: Any = rows
    try:
        # Neither an aggregate nor a window or a generator may stand in a filter.
        tree = analysed_tree(str(asked.where(condition)._explain_string(extended=True)))
        # Conditions of joins are the ones that Spark refuses where they are not deterministic.
        other = rows.sparkSession.range(0).toDF(unused_name("__id", rows.columns))
        analysed(asked.join(other, condition))
    except (AnalysisException, ParseException) as error:
        problem = "it is not deterministic, so that it may say something else each time"
        if "NON_DETERMINISTIC" not in str(error.getCondition()):
            problem = analysis_problem(error)
        raise Unresolvable(f"{what} cannot be used: {problem}", code="invalid-expression") from None
    if tree is None or not fits(tree, "Filter"):
        raise Unresolvable(
            f"{what} cannot be used: subqueries are not supported",
            code="invalid-expression",
            hint="run the subquery first, or use a merge",
        )
    return " ".join(tree[:-1])


def condition_text(spark: SparkSession, schema: Struct, condition: Column) -> str | None:
    """A condition over a table's columns as SQL text; None: it is true for every row.

    Args:
        spark: The session.
        schema: The table's columns.
        condition: It names them as they are; columns of other rows, which go by numbers, it cannot name.

    Raises:
        InvalidRequest: `"invalid-condition"`: it does not resolve, is not boolean, has a subquery, or means something
            else as text.
    """
    ensure_native(spark)
    with active(spark):
        return _text_of(spark, schema, condition)


def _text_of(spark: SparkSession, schema: Struct, condition: Column) -> str | None:
    rows = spark.createDataFrame([], to_spark(Struct(tuple(Field(f.name, plain(f.type)) for f in schema.fields))))
    try:
        found = _filter_of(rows, condition)
    except AnalysisException as error:
        raise _unfit(
            f"does not fit the table: {_first_line(error)}", "name the table's columns: sf.col('id') == 1"
        ) from None
    if java_of(spark).subquery_expression.hasSubquery(found):
        raise _unfit("has a subquery", "run the subquery first, or use a merge")
    if calls_users(found):
        # As text it would mean the function that the session has under that name.
        raise _unfit(
            "calls a function of yours, which no text can name",
            "compute a column by it first, or say the condition in functions of Spark",
        )
    text = str(found.sql())
    if not _is_read_as(rows, text, found):
        # What Spark prints of `like all`, collations and lambdas is no SQL; what the column was made of may be.
        own = str(cast(JavaObject, condition)._jc.node().sql())
        if not _is_same(rows, own, found):
            raise _unfit(
                f"would mean something else as text, in this session: {text}",
                "delete the rows that are to go, then append the others",
            )
        text = own
    return None if text.lower() == "true" else text


def _filter_of(rows: DataFrame, condition: Column) -> JavaObject:
    return rows.where(condition)._jdf.queryExecution().analyzed().condition()


def _is_read_as(rows: DataFrame, text: str, meant: JavaObject) -> bool:
    """Whether Spark reads again what it has printed: it does not where the session changes how texts are read, an hour
    comes twice, or a column is called like a constant.
    """
    try:
        found = _filter_of(rows, sf.expr(text))
    except (AnalysisException, ParseException):
        return False
    # A name that it prints of its own (`likeall`) may be that of a function of the session.
    return not calls_users(found) and _misreadable(meant) <= _misreadable(found)


def _is_same(rows: DataFrame, text: str, meant: JavaObject) -> bool:
    """Whether a text is resolved to the very same expression."""
    try:
        return bool(_filter_of(rows, sf.expr(text)).semanticEquals(meant))
    except (AnalysisException, ParseException):
        return False


def _misreadable(expression: JavaObject) -> set[tuple[str, str]]:
    """What may be read as something else: columns, instants of the hour that comes twice, texts with backslashes."""
    found, pending = set(), [expression]
    while pending:
        node = pending.pop()
        kind, children = str(node.nodeName()), node.children()
        if kind == "AttributeReference":
            found.add((kind, str(node.name())))
        elif (
            kind == "Literal"
            and node.value() is not None
            and str(node.dataType().typeName()).startswith(("timestamp", "string"))
        ):
            found.add((kind, str(node.value())))
        pending += [children.apply(n) for n in range(children.size())]
    return found


def _unfit(problem: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"the condition {problem}", code="invalid-condition", hint=hint)
