"""CREATE TEMPORARY VIEW over Spark Connect: the server cannot keep a view of frames that came with its statement."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_column_list, read_name
from alluvium.api.sql.text.terms import Settings
from alluvium.errors import UnsupportedFeature
from alluvium.spark.sessions.catalog import quoted_name


@dataclass(frozen=True, slots=True)
class View:
    """A view that is to be made.

    Attributes:
        name: Without quotes.
        columns: Their names; empty for those of the query.
        replaces: Whether there may be one of that name.
        is_global: Whether other sessions see it.
        query: What it shows.
    """

    name: str
    columns: tuple[str, ...]
    replaces: bool
    is_global: bool
    query: str


def parse_view(text: str, settings: Settings) -> View | None:
    """Parses `CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW v [(columns)] AS query`; None: it is something else.

    Raises:
        UnsupportedFeature: A view that lasts would show frames that do not.
    """
    cursor = Cursor(text, settings)
    if not cursor.take("CREATE"):
        return None
    replaces = cursor.take("OR", "REPLACE")
    is_global = cursor.take("GLOBAL")
    temporary = cursor.take("TEMPORARY") or cursor.take("TEMP")
    if not cursor.take("VIEW"):
        return None
    name = None if cursor.sees("IF") else read_name(cursor, "a view's name", free=True)
    columns = tuple(path[0] for path in read_column_list(cursor)) if cursor.sees("(") else ()
    if not temporary or name is None or len(name) > 1 or not cursor.take("AS"):
        raise UnsupportedFeature(
            "over Spark Connect views of tables of ours are temporary: CREATE [OR REPLACE] TEMPORARY VIEW v AS ...",
            code="no-jvm-for-sql",
            hint="make a view that lasts on a classic session",
        )
    return View(name[0], columns, replaces, is_global, text[cursor.peek().start :])


def create_view(spark: SparkSession, view: View, rows: DataFrame) -> DataFrame:
    """Makes the view; the answer has no columns."""
    shown = rows.toDF(*view.columns) if view.columns else rows
    # The server parses it: a name that is more than a word stands in backquotes.
    name = quoted_name((view.name,))
    if view.is_global:
        (shown.createOrReplaceGlobalTempView if view.replaces else shown.createGlobalTempView)(name)
    else:
        (shown.createOrReplaceTempView if view.replaces else shown.createTempView)(name)
    return spark.createDataFrame([], StructType())
