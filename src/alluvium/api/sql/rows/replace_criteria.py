"""What `INSERT ... REPLACE USING | ON` says of the rows that go, as options of a writer."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from alluvium.api.sql.call import Call, some
from alluvium.api.sql.rows.insert_columns import InsertColumns
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import JavaObject


@dataclass(frozen=True, slots=True)
class ReplaceOn:
    """A condition over the rows that are there and those that come.

    Attributes:
        condition: As it was written.
        table: How it calls the table.
        source: How it calls the new rows; None: they have no name.
    """

    condition: str
    table: str
    source: str | None

    def options(self) -> dict[str, object]:
        """Options of a writer that say the same."""
        return {"replaceOn": self.condition, "targetAlias": self.table}

    def named(self, query: DataFrame, rows: DataFrame, columns: InsertColumns, schema: Struct) -> DataFrame:
        """The rows under the name that the condition knows them by.

        Args:
            query: What the query gives.
            rows: The same under the table's columns.
            columns: Where they go.
            schema: The table's.

        Raises:
            InvalidRequest: Columns of the query are called otherwise than those that they go to, so that the condition
                would mean others.
        """
        wanted = columns.wanted(schema)
        if not columns.by_name and [n.lower() for n in query.columns] != [n.lower() for n in wanted]:
            raise InvalidRequest(
                "REPLACE ON takes a query whose columns are called like those of the table that they go to "
                f"({', '.join(wanted)}), not {', '.join(query.columns)}",
                code="schema-mismatch",
                hint="name them by AS",
            )
        return rows if self.source is None else rows.alias(self.source)


def replace_on(call: Call, node: JavaObject, criteria: JavaObject, url: str) -> ReplaceOn:
    """What `REPLACE ON` says.

    Args:
        call: The statement.
        node: The INSERT.
        criteria: Spark's `InsertReplaceOn`.
        url: The table, for errors.

    Raises:
        UnsupportedFeature: The condition's text is not to be had, as where it has parameters.
    """
    alias, names = some(criteria.tableAliasOpt()), call.parts(node.table())
    table = str(alias) if alias is not None else (names or ("",))[-1]
    query = node.query()
    source = str(query.alias()) if str(query.nodeName()) == "SubqueryAlias" else None
    return ReplaceOn(_text_of(call, criteria.cond(), url), table, source)


def _text_of(call: Call, expression: JavaObject, url: str) -> str:
    origin = expression.origin()
    text, start, stop = (some(found) for found in (origin.sqlText(), origin.startIndex(), origin.stopIndex()))
    if text is not None and start is not None and stop is not None:
        written = str(text)[int(start) : int(stop) + 1]
        parsed = call.spark._jsparkSession.sessionState().sqlParser().parseExpression(written)
        if bool(parsed.fastEquals(expression)):
            return written
    raise UnsupportedFeature(
        "the condition of REPLACE ON has parameters",
        code="unsupported-statement",
        url=url,
        hint="write the values into it, or say MERGE",
    )
