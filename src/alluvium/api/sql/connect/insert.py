"""INSERT over Spark Connect: into a table by its path, of any query."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.names.catalog_writer import insert_named
from alluvium.api.sql.connect.reads import TableRead
from alluvium.api.sql.rows.insert_columns import InsertColumns, named_rows
from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_column_list
from alluvium.api.sql.text.terms import Settings, SqlText
from alluvium.errors import UnsupportedFeature

#: What a query begins with.
_QUERY = ("SELECT", "VALUES", "TABLE", "FROM", "WITH", "(")


@dataclass(frozen=True, slots=True)
class Insert:
    """What an INSERT says beside its table.

    Attributes:
        overwrites: Whether rows that are there go.
        columns: Where the query's columns go.
        where: Which rows go, of `REPLACE WHERE`.
        query: Where the rows come from.
    """

    overwrites: bool
    columns: InsertColumns
    where: SqlText | None
    query: str


def parse_insert(text: str, target: TableRead, settings: Settings) -> Insert | None:
    """Parses `INSERT INTO | OVERWRITE [TABLE] t [(columns) | BY NAME] [REPLACE WHERE condition] query`.

    Args:
        text: The statement.
        target: The table, which stands in it.
        settings: The session's.

    Returns:
        None: it is no INSERT, or says more than that.
    """
    cursor = Cursor(text, settings)
    if not cursor.take("INSERT") or not (cursor.take("INTO") or cursor.sees("OVERWRITE")):
        return None
    overwrites = cursor.take("OVERWRITE")
    cursor.take("TABLE")
    if cursor.peek().start != target.start:
        return None
    while cursor.peek().start < target.end:
        cursor.advance()
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    listed: tuple[str, ...] = ()
    by_name = cursor.take("BY", "NAME")
    if cursor.sees("(") and cursor.peek(1).word not in _QUERY and cursor.peek(1).text != "(":
        columns = read_column_list(cursor)
        if any(len(path) > 1 for path in columns):
            return None
        listed = tuple(path[0] for path in columns)
    where = _condition(cursor) if cursor.take("REPLACE", "WHERE") else None
    if not any(cursor.sees(word) for word in _QUERY):
        return None
    query = text[cursor.peek().start :].rstrip().rstrip(";")
    return Insert(overwrites or where is not None, InsertColumns(listed, by_name, {}, evolves), where, query)


def _condition(cursor: Cursor) -> SqlText | None:
    """What stands before the query: a bracket after a comparison is still the condition's."""
    outer = cursor.outer_tokens()
    stop = next((n for n in outer if any(cursor.is_at(n, word) for word in _QUERY[:-1])), None)
    return None if stop is None else cursor.sql_until(stop, "a condition")


def insert(spark: SparkSession, access: TableAccess, given: Insert, rows: DataFrame) -> DataFrame:
    """Writes the rows of the query; the answer has no columns.

    Raises:
        InvalidRequest: The rows do not fit the table.
        UnsupportedFeature: A parameter stands in the condition (`no-jvm-for-sql`).
    """
    if given.where is not None and given.where.parameters:
        raise UnsupportedFeature(
            f"{given.where.parameters[0]} stands in REPLACE WHERE: to bind it needs the driver's JVM, which a session "
            "of Spark Connect has not",
            code="no-jvm-for-sql",
            hint='write the value there, or alluvium.write(df, url, mode="overwrite", replaceWhere=...)',
        )
    config = access.snapshot().config
    columns = given.columns.checked(config.schema, config.partition_columns, access.url)
    options: dict[str, object] = {} if given.where is None else {"replaceWhere": given.where.text}
    if columns.evolves:
        options["mergeSchema"] = "true"
    insert_named(named_rows(rows, columns, config.schema, access.url), access, given.overwrites, options)
    return spark.createDataFrame([], StructType())
