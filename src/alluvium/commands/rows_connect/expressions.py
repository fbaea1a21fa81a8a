"""Expressions of a caller over Spark Connect: checked by the server before anything is run, and read here for what they
say of a table's columns.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.rows_connect.columns import settled, text_of
from alluvium.commands.rows_here.names import Names
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.clocks import UnsteadyText
from alluvium.expr.tree import Expression, Unknown
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.readings import read_in, reading_zone
from alluvium.spark.statements.conditions import ensure_on_rows, ensure_steady, unsteady
from alluvium.spark.statements.statement import current_statement


@dataclass(frozen=True, slots=True)
class ServerCondition:
    """A condition that the server understands.

    Attributes:
        column: As jobs evaluate it, over rows under the names that it was checked with.
        shown: For the history.
        known: What it says, as far as it is understood here; columns stand behind the names of their rows.
    """

    column: Column
    shown: str
    known: Expression


def no_rows(spark: SparkSession, schema: Struct, name: str) -> DataFrame:
    """Rows of which there are none, under a name: the server says what it makes of expressions over them."""
    return spark.createDataFrame([], to_spark(nullable_schema(schema))).alias(name)


def server_condition(rows: DataFrame, tables: Mapping[str, Struct], given: Column | str, what: str) -> ServerCondition:
    """Has a condition checked.

    Args:
        rows: Whose columns it may name; they are analysed, not read.
        tables: These columns, by the names of rows.
        given: The condition.
        what: For errors: `"the condition of DELETE"`.

    Raises:
        InvalidRequest: `"invalid-expression"`: it is no condition on single rows, or asks for the time in a way that
            gives each job another one.
    """
    column, text = steady(given, _names(tables), what)
    ensure_steady(ensure_on_rows(rows, column, what), what)
    return ServerCondition(column, str(given) if text is None else text, _known(rows.sparkSession, text, tables))


def steady(given: Column | str, names: Container[str], what: str) -> tuple[Column, str | None]:
    """What several jobs evaluate, with the time of the statement in its place; and its text, if it has one.

    Args:
        given: The expression.
        names: What a bare word may mean, in small letters.
        what: For errors.

    Raises:
        InvalidRequest: `"invalid-expression"`: it asks for the time in a way that gives each job another one.
    """
    # Where nothing is carried out (`explain`) there is no statement, and no time.
    statement = current_statement()

    def settle(text: str) -> str:
        return text if statement is None else statement.at_moment(text, names)

    try:
        if isinstance(given, str):
            text = settle(given)
            return sf.expr(text), text
        column = settled(given, settle)
    except UnsteadyText as problem:
        raise unsteady(what, f" ({problem})") from None
    return column, text_of(column)


def _names(tables: Mapping[str, Struct]) -> frozenset[str]:
    return frozenset(f.name.lower() for columns in tables.values() for f in columns.fields)


def _known(spark: SparkSession, text: str | None, tables: Mapping[str, Struct]) -> Expression:
    """What a text says that the server understands."""
    zone = None if text is None else reading_zone(spark, (text,))
    if text is None or zone is None:
        return Unknown(text or "")
    try:
        return read_in(Names(tables, zone).known(text), zone)
    except InvalidRequest:
        # It may name what only the server knows: a variable, a member of a type that no table has.
        return Unknown(text)
